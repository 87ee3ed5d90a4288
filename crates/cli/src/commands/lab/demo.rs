//! `plimsoll lab demo`: a mechanism measured on a lab, beside `proxy`.

mod measure;
mod show;

use plimsoll_lab::{CpuPlan, Lab, LabConfig, Node, Rate, check_privileges};

use crate::error::CliError;
use crate::lab_cluster::{Cluster, ClusterConfig, Contents, Mechanism};
use crate::{output, values};
use measure::Measured;

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
    mechanism: Mechanism,

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
    let cpus = cpus();
    if let Some(plan) = &cpus {
        // What this process does, and what it starts unless told otherwise, is not the front-end's work.
        plan.pin_this_thread(Node::Client)?;
    }
    eprintln!("plimsoll: {}", show::setting(args, cpus.as_ref()));
    let measured = crate::testbed::block_on(async {
        let mut measured = Vec::new();
        for mechanism in args.mechanism.with_baseline() {
            measured.push(one(args, cpus.clone(), mechanism).await?);
        }
        Ok(measured)
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

/// A fresh lab with everything on it, measured, and torn down.
async fn one(args: &Args, cpus: Option<CpuPlan>, mechanism: Mechanism) -> Result<Measured, CliError> {
    eprintln!("plimsoll: {mechanism}: building the lab");
    let config = LabConfig { backends: args.backends, rate: args.rate, cpus, ..LabConfig::default() };
    let lab = Lab::build(&config)?;
    lab.count_traffic()?;
    let contents = Contents::Files(args.size);
    let cluster = ClusterConfig::new(mechanism, args.backends, &args.policy, contents);
    let cluster = Cluster::start(&lab, &cluster).await?;
    let result = measure::run(&lab, &cluster, args, mechanism).await;
    match result {
        Ok(measured) if measured.summary.succeeded == 0 => Err(CliError::Failed(format!(
            "no request was answered by {mechanism}: {}\n{}",
            measured.summary,
            cluster.last_words()
        ))),
        other => other,
    }
}
