//! `plimsoll trace convert`: a trace in another format.

use std::path::PathBuf;

use plimsoll_report::format::count;

use crate::commands::destination::DestinationArgs;
use crate::error::CliError;
use crate::input::{self, ReadArgs};

/// Arguments of `trace convert`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Times are written as the input stamps them: whole seconds stay whole seconds.

Examples:
  plimsoll trace convert access.log.1 access.log --to day.csv.zst
  plimsoll trace convert wc_day66_1.gz --to day66.parquet
  zcat access.log.gz | plimsoll trace convert - --to - --to-format time-id-size | head")]
pub(crate) struct Args {
    /// Traces, read as one; `-` for standard input; `synth:NAME[,key=value…]` for a synthetic workload
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<String>,

    /// File to write, compressed when its name ends in .gz, .zst or .xz; `-` for standard output
    #[arg(long, value_name = "FILE")]
    to: PathBuf,

    #[command(flatten)]
    destination: DestinationArgs,

    /// Seed of a synthetic workload
    #[arg(long, default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let destination = args.destination.resolve(&args.to, &args.traces, None)?;
    let trace = input::workload(&args.traces, &args.read.options(args.seed))?.trace;
    for warning in input::warnings(&trace) {
        eprintln!("plimsoll: warning: {warning}");
    }
    destination.begin()?;
    plimsoll_trace::convert(&trace, destination.format, &destination.path)
        .map_err(|error| destination.failed(error))?;
    for note in input::notes(&trace.report) {
        eprintln!("{note}");
    }
    if trace.report.times_spread {
        eprintln!(
            "All times are whole seconds and were written so; a simulation spreads requests within their second."
        );
    }
    eprintln!(
        "Wrote {} requests for {} targets to {} as {}.{}",
        count(trace.len()),
        count(trace.targets.len() as u64),
        destination.name(),
        destination.format,
        destination.loss()
    );
    Ok(())
}
