//! `plimsoll trace`: look at, convert and make traces.

mod convert;
mod destination;
mod ranked;
mod stats;
mod stats_check;
mod stats_report;
mod stats_text;
mod synth;
mod synth_list;

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
}

pub(crate) fn run(args: Args) -> Result<(), CliError> {
    match args.command {
        TraceCommand::Stats(args) => stats::run(&args),
        TraceCommand::Convert(args) => convert::run(&args),
        TraceCommand::Synth(args) => synth::run(&args),
    }
}

/// Width of text in columns: the terminal's, or 100 without one.
fn text_width() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0).clamp(40, 140))
}
