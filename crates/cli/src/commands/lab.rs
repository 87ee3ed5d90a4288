//! `plimsoll lab`: a network of namespaces on this machine.

mod conditions;
mod control;
mod demo;
mod exec;
mod link;
mod link_report;
mod list;
mod note;
mod up;

use clap::Subcommand;
use plimsoll_lab::{LabError, MOST_BACKENDS};

use crate::error::CliError;

/// Arguments of `lab`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand, Debug)]
enum LabCommand {
    /// Build a lab and keep it until Ctrl-C or SIGTERM
    Up(up::Args),
    /// Run a command in a node of a running lab
    Exec(exec::Args),
    /// Show or change what a node's link does to frames: delay, loss, reordering and more
    Link(link::Args),
    /// List the running labs
    List(list::Args),
    /// Measure a mechanism on a lab: clients, front-end and back-ends as processes in nodes of their own
    Demo(demo::Args),
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        LabCommand::Up(args) => up::run(args),
        LabCommand::Exec(args) => exec::run(args),
        LabCommand::Link(args) => link::run(args),
        LabCommand::List(args) => list::run(args),
        LabCommand::Demo(args) => demo::run(args),
    }
}

impl From<LabError> for CliError {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Invalid(text) => Self::Usage(text),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// A number of back-ends of a lab.
fn backends(text: &str) -> Result<usize, String> {
    let wrong = || format!("expected a number of back-ends from 1 to {MOST_BACKENDS}, not `{text}`");
    text.parse().ok().filter(|n| (1..=MOST_BACKENDS).contains(n)).ok_or_else(wrong)
}
