//! What the command line of `demo` takes.

use std::path::PathBuf;

use plimsoll_experiments::compare::{CELLS, PeerProgram};
use plimsoll_experiments::loopback;

/// Arguments of `demo`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Clients, front-end and back-ends all run in this process, on ports of loopback that the system chooses. The requests are \
real HTTP through the proxy of `plimsoll balance`; disks and CPUs of the back-ends are emulated. With --compare, HAProxy and nginx run as processes of their own before the same origins.")]
pub(crate) struct Args {
    /// Policies to compare, by name or alias (see `plimsoll policies`), each on a fresh cluster
    #[arg(short, long, visible_alias = "policies", value_delimiter = ',', default_value = "wrr,lard_r")]
    pub(super) policy: Vec<String>,

    /// Compare with other balancers where one way of choosing is known to lose: haproxy, nginx, or both. Each is started by its own
    /// binary, and takes its turn before origins of its own
    #[arg(long, value_name = "PROGRAMS", value_delimiter = ',', value_parser = peer, conflicts_with_all = ["policy", "backends", "all_rows"])]
    pub(super) compare: Vec<PeerProgram>,

    /// With --compare: only these cells, by number (docs/demo.md lists them)
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "compare", value_parser = clap::value_parser!(u16).range(1..=CELLS.len() as i64))]
    pub(super) cell: Vec<u16>,

    /// Number of back-ends, 1 to 64
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=loopback::MOST_BACKENDS as i64))]
    pub(super) backends: u16,

    /// Seconds measured for each policy; 0.8 times as many of warm-up come before. 9 unless given, with --compare 4
    #[arg(long, value_parser = seconds)]
    pub(super) seconds: Option<f64>,

    /// Disks and CPUs emulated this many times as fast as in the LARD paper
    #[arg(long, default_value = "2", value_parser = speed)]
    pub(super) speed: f64,

    /// Seed of contents, requests and policies
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,

    /// Write the report and the data of the runs into this directory; out/demo-live unless given, with --compare out/demo-compare
    #[arg(short, long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,

    /// Overwrite files of --out that no report of plimsoll lists as its own
    #[arg(long)]
    pub(super) force: bool,

    /// Print the rows of all policies; by default those that matter most where there are more than eight
    #[arg(long)]
    pub(super) all_rows: bool,

    /// Print one JSON object per policy instead of the table
    #[arg(long)]
    pub(super) json: bool,
}

fn within(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let wrong = || format!("expected a number from {least} to {most}, not `{text}`");
    text.parse().ok().filter(|x| (least..=most).contains(x)).ok_or_else(wrong)
}

fn seconds(text: &str) -> Result<f64, String> {
    within(text, 1.0, 3600.0)
}

fn speed(text: &str) -> Result<f64, String> {
    within(text, 0.1, 100.0)
}

fn peer(text: &str) -> Result<PeerProgram, String> {
    PeerProgram::ALL.into_iter().find(|program| program.name() == text.trim()).ok_or_else(|| {
        let known = PeerProgram::ALL.map(PeerProgram::name).join(", ");
        format!("there is no balancer `{text}` to compare with; there are {known}")
    })
}

/// Share of the measurement that its warm-up takes before.
pub(super) const WARMUP_SHARE: f64 = 0.8;

impl Args {
    pub(super) fn measured_s(&self) -> f64 {
        self.seconds.unwrap_or(if self.compare.is_empty() { 9.0 } else { 4.0 })
    }

    pub(super) fn directory(&self) -> PathBuf {
        let usual = if self.compare.is_empty() { "out/demo-live" } else { "out/demo-compare" };
        self.out.clone().unwrap_or_else(|| usual.into())
    }
}
