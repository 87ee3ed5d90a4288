//! The `plimsoll` command, which programs with policies of their own can run too ([`run`]).
//!
//! Results go to standard output, progress and messages to standard error. Exit codes: 0 success, 1 failure, 2 wrong
//! usage.

/// As the standard library's, but without a panic where nobody reads standard error any more.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod class_file;
mod command_line;
mod commands;
mod error;
mod input;
mod log;
mod out_dir;
mod output;
mod scenario_file;
mod values;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use plimsoll_policy::PolicySpec;

use crate::error::CliError;

/// Load distribution for clusters: simulate policies on your own access log, then balance live traffic with them.
#[derive(Parser)]
#[command(name = "plimsoll", version, max_term_width = 110, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an access log through policies on a simulated cluster
    Simulate(Box<commands::simulate::Args>),
    /// From an access log to advice: which policy, on how many back-ends, with how much memory
    Advise(Box<commands::advise::Args>),
    /// Look at, convert and make traces
    Trace(commands::trace::Args),
    /// Reproduce a paper's simulation study, figure by figure
    Reproduce(commands::reproduce::Args),
    /// Balance live HTTP traffic over back-ends
    Balance(commands::balance::Args),
    /// Check a configuration of the live system and show what it amounts to
    Check(commands::check::Args),
    /// Take connections over from front-ends and have them answered here
    Agent(Box<commands::agent::Args>),
    /// Tell the directory of services what a server offers
    Publish(Box<commands::publish::Args>),
    /// List what the directory of services has
    Services(commands::services::Args),
    /// List the connections that back-ends have
    Flows(commands::flows::Args),
    /// Write the library through which an unmodified server takes connections over
    Shim(commands::shim::Args),
    /// Take packets of a switch out of their tunnel on this machine
    TunnelEnd(commands::tunnel_end::Args),
    /// Put an interface of this machine into a VLAN, where the kernel knows none
    VlanEnd(commands::vlan_end::Args),
    /// Serve files or generated contents, with a memory cache and an emulated disk
    Origin(Box<commands::origin::Args>),
    /// Prove that a decision log comes out the same, or ask other policies about its requests
    Replay(Box<commands::replay::Args>),
    /// Compare policies on live traffic: clients, front-end and back-ends in this process
    Demo(Box<commands::demo::Args>),
    /// A network on this machine: client, front-end and back-ends as nodes of their own
    Lab(Box<commands::lab::Args>),
    /// List the policies with their parameters
    Policies(commands::lists::Args),
    /// List the back-end models with their parameters
    Models(commands::lists::Args),
    /// List the hardware that back-ends may have, with each cost and its source
    Hardware(commands::lists::Args),
    /// Measure what requests cost a server, as parameters of the simulator
    Measure(commands::measure::Args),
    /// Write the requests that pass, at an interface or at a running switch, as a trace
    Record(Box<commands::record::Args>),
    /// Learn from access logs which classes of requests there are, and what they cost
    Classify(Box<commands::classify::Args>),
    /// Print the script by which a shell completes this command line
    Completions(commands::completions::CompletionsArgs),
    /// Write manual pages of all commands
    Man(commands::completions::ManArgs),
}

/// Runs the command with this process's arguments, and with these policies beside the product's: they are known by their names
/// wherever a policy is named. Returns the exit code.
#[must_use]
pub fn run(own: &[&'static PolicySpec]) -> ExitCode {
    if let Err(error) = plimsoll_policy::register(own) {
        log::error(&error);
        return ExitCode::FAILURE;
    }
    // clap prints help and usage errors itself and exits with 0 or 2.
    let args = command_line::joined(std::env::args_os());
    let mut command = Cli::command();
    let matches = command.try_get_matches_from_mut(args);
    let matches = matches.unwrap_or_else(|error| command_line::explained(error, &command).exit());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let result = match cli.command {
        Command::Simulate(args) => commands::simulate::run(&args, matches.subcommand_matches("simulate")),
        Command::Advise(args) => commands::advise::run(&args),
        Command::Trace(args) => commands::trace::run(args),
        Command::Reproduce(args) => commands::reproduce::run(&args),
        Command::Balance(args) => commands::balance::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Agent(args) => commands::agent::run(&args),
        Command::Publish(args) => commands::publish::run(&args),
        Command::Services(args) => commands::services::run(&args),
        Command::Flows(args) => commands::flows::run(&args),
        Command::Shim(args) => commands::shim::run(&args),
        Command::TunnelEnd(args) => commands::tunnel_end::run(&args),
        Command::VlanEnd(args) => commands::vlan_end::run(&args),
        Command::Origin(args) => commands::origin::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Demo(args) => commands::demo::run(&args),
        Command::Lab(args) => commands::lab::run(&args),
        Command::Policies(args) => commands::lists::policies(&args),
        Command::Models(args) => commands::lists::models(&args),
        Command::Hardware(args) => commands::hardware::run(&args),
        Command::Measure(args) => commands::measure::run(&args),
        Command::Record(args) => commands::record::run(&args),
        Command::Classify(args) => commands::classify::run(&args),
        Command::Completions(args) => commands::completions::completions(&args, Cli::command()),
        Command::Man(args) => commands::completions::man(&args, Cli::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of our output has closed it (`plimsoll … | head`).
        Err(CliError::ClosedPipe) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &CliError) -> ExitCode {
    log::error(error);
    error.exit_code()
}
