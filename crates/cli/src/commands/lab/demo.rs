//! `plimsoll lab demo`: a mechanism measured on a lab, beside `proxy`.

mod args;
mod show;

use std::path::Path;

use plimsoll_experiments::block_on;
use plimsoll_experiments::lab_trial::{self, LabLoad, LabTrial};
use plimsoll_lab::{Conditions, CpuPlan, LabConfig, Node, check_privileges};

use crate::error::CliError;
use crate::output;

pub(super) use args::Args;

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    check_privileges()?;
    if plimsoll_balancer::raise_open_file_limit().is_some_and(|most| most < u64::from(args.connections) + 256)
    {
        return Err(CliError::Failed(
            "the limit of open files is too low; raise it with `ulimit -n`".to_owned(),
        ));
    }
    let program = output::this_program()?;
    let cpus = cpus();
    if let Some(plan) = &cpus {
        // Keeps this process and what it starts off the front-end's CPU.
        plan.pin_this_thread(Node::Client)?;
    }
    eprintln!("plimsoll: {}", show::setting(args, cpus.as_ref()));
    let trial = trial(args, cpus, &program);
    let tell = |line: &str| eprintln!("{line}");
    let measured = block_on(async {
        let mut measured = Vec::new();
        for mechanism in args.mechanism.with_baseline() {
            measured.push((mechanism, lab_trial::run(&trial, mechanism, &tell).await?));
        }
        Ok::<_, CliError>(measured)
    })?;
    for warning in measured.iter().flat_map(show::warnings) {
        eprintln!("plimsoll: warning: {warning}");
    }
    if args.json {
        return measured.iter().try_for_each(|one| output::print(&show::json(args, one)));
    }
    output::print(&show::table(&measured))
}

/// A CPU for the front-end, if there is one to spare.
fn cpus() -> Option<CpuPlan> {
    match CpuPlan::of_this_machine() {
        Ok(plan) => Some(plan),
        Err(error) => {
            eprintln!("plimsoll: {error}; the front-end's cost is not measured");
            None
        }
    }
}

fn trial<'a>(args: &'a Args, cpus: Option<CpuPlan>, program: &'a Path) -> LabTrial<'a> {
    let load = LabLoad {
        size_bytes: args.size,
        measured_s: args.seconds,
        connections: args.connections as usize,
        keep_alive: !args.new_connections,
    };
    let links = Conditions { rate: args.rate, ..Conditions::default() };
    let lab = LabConfig { backends: args.backends, links, cpus, ..LabConfig::default() };
    LabTrial { program, lab, policy: args.policy(), load }
}
