//! Figures 8 and 9 measured on a lab. Measurements are not made here: the caller makes them and passes them in.

pub(super) mod claims;
mod explain;
pub(super) mod figures;
pub(super) mod results;
pub(super) mod scaled;
#[cfg(test)]
mod tests;

use super::micro::MicroMechanism;
use super::plan::NodeStrategy;

/// Divides documents, memory and requests of the log, so that caches are warm soon.
pub const SCALE: u32 = 16;

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct LiveCloning {
    /// The setting of figure 9, in words.
    pub nodes_setting: String,
    /// Requests before each run of figure 9 is measured.
    pub warmup_requests: u64,
    /// Runs of figure 9.
    pub nodes: Vec<LiveRun>,
    /// Runs in which small documents are answered where they are asked for.
    pub thresholds: Vec<LiveRun>,
    /// The setting of figure 8, in words.
    pub micro_setting: String,
    /// Rounds of figure 8.
    pub micro: Vec<LiveRound>,
    /// What a clone costs to start.
    pub startup: Option<LiveStartup>,
    /// Why something is missing, on one line.
    pub left_out: Option<String>,
}

/// How a run of figure 9 was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveSetting {
    /// How nodes share their memory.
    pub strategy: NodeStrategy,
    /// Number of nodes.
    pub nodes: usize,
    /// Smaller documents are answered where they are asked for: 0 for none.
    pub min_bytes: u64,
    /// Whether nodes that clone fetch documents from one another, too.
    pub fetches: bool,
}

impl LiveSetting {
    /// As in the figure.
    #[must_use]
    pub const fn new(strategy: NodeStrategy, nodes: usize) -> Self {
        Self { strategy, nodes, min_bytes: 0, fetches: false }
    }
}

/// One run of figure 9.
#[derive(Debug, Clone)]
pub struct LiveRun {
    /// How it was made.
    pub setting: LiveSetting,
    /// The seed of the workload.
    pub seed: u64,
    /// Correct answers per second.
    pub throughput_rps: f64,
    /// Correct answers in the measured time.
    pub answers: u64,
    /// Requests without one.
    pub failed: u64,
    /// Documents read from the file server, for each request.
    pub read_share: f64,
    /// Documents fetched from other nodes, for each request.
    pub fetched_share: f64,
    /// Requests that clones have answered, for each request.
    pub cloned_share: f64,
    /// Share of the time for which the file server's link was full.
    pub file_server_busy: f64,
    /// Share of the time for which the links of nodes were full with what they sent to clients.
    pub sending: f64,
    /// Share of the time in which nodes had used up their CPU time, the most of all nodes.
    pub throttled: f64,
    /// Share of the time that the CPUs of the machine were busy.
    pub machine_busy: Option<f64>,
}

/// One round of figure 8: with a mechanism for each request, and straight afterwards by a single web server.
#[derive(Debug, Clone, Copy)]
pub struct LiveRound {
    /// The mechanism.
    pub mechanism: MicroMechanism,
    /// Size of the documents.
    pub size_bytes: u64,
    /// The round, from 1.
    pub round: u64,
    /// Requests per second with it.
    pub with_rps: f64,
    /// Requests per second of a single web server.
    pub alone_rps: f64,
}

/// Startup cost of a clone: from the decision until its node has said that it is there.
#[derive(Debug, Clone, Copy)]
pub struct LiveStartup {
    /// How many were made.
    pub clones: usize,
    /// The median in µs.
    pub median_us: f64,
    /// 99 % took no longer, in µs.
    pub p99_us: f64,
}
