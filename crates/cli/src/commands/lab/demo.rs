//! `plimsoll lab demo`: a mechanism measured on a lab, beside `proxy`.

mod show;

use std::path::Path;

use plimsoll_config::MechanismKind;
use plimsoll_experiments::block_on;
use plimsoll_experiments::lab_trial::{self, LabLoad, LabMeasures, LabTrial};
use plimsoll_lab::{CpuPlan, LabConfig, Node, Rate, check_privileges};

use crate::error::CliError;
use crate::{output, values};

/// Most back-ends of the demo: each is a process.
const MOST_BACKENDS: usize = 16;
/// Largest document: each back-end has some in memory.
const MOST_BYTES: u64 = 64 << 20;

/// Arguments of `lab demo`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Needs root. With --mechanism handoff the same load is also put on a front-end that proxies, and the results stand side by \
side. Where there are two CPUs, the front-end's node has one to itself, so that its cost can be told, the kernel's work \
for its packets included.")]
pub(super) struct Args {
    /// How a chosen back-end gets the request
    #[arg(long, value_enum, default_value = "handoff")]
    mechanism: MechanismName,

    /// Number of back-ends, 1 to 16
    #[arg(long, default_value = "2", value_parser = backends)]
    backends: usize,

    /// Seconds measured for each mechanism, 1 to 3600; one of warm-up comes before
    #[arg(long, default_value = "5", value_parser = seconds)]
    seconds: f64,

    /// Size of each document, at most 64MiB
    #[arg(long, default_value = "100KiB", value_parser = size)]
    size: u64,

    /// Connections of the client, 1 to 10000, each with one request at a time
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,

    /// Make a connection for each request, instead of keeping it for the next one
    #[arg(long)]
    new_connections: bool,

    /// Policy of the front-end (see `plimsoll policies`)
    #[arg(long, default_value = "lard_r")]
    policy: String,

    /// Rate of every link, each way, such as 1gbit; as fast as the machine by default
    #[arg(long)]
    rate: Option<Rate>,

    /// Print one JSON object per mechanism instead of the table
    #[arg(long)]
    json: bool,
}

/// A mechanism on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum MechanismName {
    /// The front-end passes requests and responses on
    Proxy,
    /// The back-end gets the client's connection and answers the client directly
    Handoff,
}

impl MechanismName {
    /// This one, after the one that it is compared with.
    fn with_baseline(self) -> Vec<MechanismKind> {
        match self {
            Self::Proxy => vec![MechanismKind::Proxy],
            Self::Handoff => vec![MechanismKind::Proxy, MechanismKind::Handoff],
        }
    }
}

/// A mechanism with its measurements.
type MeasuredMechanism = (MechanismKind, LabMeasures);

fn backends(text: &str) -> Result<usize, String> {
    let wrong = || format!("expected a number of back-ends from 1 to {MOST_BACKENDS}, not `{text}`");
    text.parse().ok().filter(|n| (1..=MOST_BACKENDS).contains(n)).ok_or_else(wrong)
}

fn seconds(text: &str) -> Result<f64, String> {
    let wrong = || format!("expected a number of seconds from 1 to 3600, not `{text}`");
    text.parse().ok().filter(|s| (1.0..=3600.0).contains(s)).ok_or_else(wrong)
}

fn size(text: &str) -> Result<u64, String> {
    let size = values::size(text)?;
    if (1..=MOST_BYTES).contains(&size) {
        Ok(size)
    } else {
        Err("expected a size from 1 to 64MiB".to_owned())
    }
}

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
    let lab = LabConfig { backends: args.backends, rate: args.rate, cpus, ..LabConfig::default() };
    LabTrial { program, lab, policy: &args.policy, load }
}
