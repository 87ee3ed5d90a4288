//! `plimsoll trace`: look at, convert and make traces.

mod convert;
mod formats;
mod ranked;
mod stats;
mod stats_check;
mod stats_report;
mod stats_text;
mod synth;
mod synth_list;
mod text;

use super::lists;
use crate::error::CliError;

/// Arguments of `trace`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(clap::Subcommand)]
enum TraceCommand {
    /// Say what a trace is like: sizes, popularity, memory it needs, arrivals, errors
    Stats(Box<stats::Args>),
    /// Write a trace in another format
    Convert(Box<convert::Args>),
    /// Make a synthetic workload calibrated to published statistics
    Synth(Box<synth::Args>),
    /// List the trace formats
    Formats(lists::Args),
}

pub(crate) fn run(args: Args) -> Result<(), CliError> {
    match args.command {
        TraceCommand::Stats(args) => stats::run(&args),
        TraceCommand::Convert(args) => convert::run(&args),
        TraceCommand::Synth(args) => synth::run(&args),
        TraceCommand::Formats(args) => formats::run(&args),
    }
}
