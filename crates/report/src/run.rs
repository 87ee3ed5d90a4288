//! The result of one run, in the stable shape that `--json` prints: SI units, `null` where a value does not apply.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Summary of a distribution; the unit is in the name of the field that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest value.
    pub max: f64,
}

/// Share of time a resource was busy, averaged over back-ends; 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Utilization {
    /// CPUs.
    pub cpu: f64,
    /// Disks; `None` where the model has none.
    pub disk: Option<f64>,
}

/// What one back-end did during a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PerBackend {
    /// Requests completed.
    pub requests: u64,
    /// Disk reads per request; `None` where the model has no cache.
    pub miss_ratio: Option<f64>,
    /// Share of time with a load below 40 % of `t_low`.
    pub idle_ratio: f64,
    /// Share of time the CPU was busy.
    pub cpu: f64,
    /// Share of time the disks were busy.
    pub disk: Option<f64>,
    /// Time average of the load (requests assigned and not completed).
    pub mean_load: f64,
}

/// Where the requests came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceInfo {
    /// The file as named by the user, `-` for standard input, or the name of a synthetic workload.
    pub path: String,
    /// SHA-256 of the input bytes as read (before decompression), in hex; `None` for synthetic workloads.
    pub sha256: Option<String>,
    /// Lines or records that could not be used.
    pub lines_rejected: u64,
}

/// Load of every back-end over time: `load[backend][bucket]` is the mean load in that time bucket.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadSeries {
    /// Width of one bucket in seconds of simulated (or real) time.
    pub bucket_s: f64,
    /// Mean load per back-end and bucket.
    pub load: Vec<Vec<f64>>,
}

/// What load information has cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadTraffic {
    /// Messages: inquiries, answers, announcements once for each receiver, and those to and from a load index manager.
    pub messages: u64,
    /// Messages per simulated second.
    pub messages_rps: f64,
    /// CPU time of inquiries and announcements at the back-ends, per simulated second of one of them.
    pub cpu: f64,
    /// CPU time of announcements at the front-ends, per simulated second of one of them.
    #[serde(default)]
    pub receive_cpu: f64,
    /// Inquiries.
    pub inquiries: u64,
    /// Those whose answer came too late.
    pub discarded: u64,
    /// Polls for which requests waited.
    pub polls: u64,
    /// Those that ended before all answers had come.
    pub polls_cut_short: u64,
    /// How long requests waited for loads, in seconds; `None` where none did.
    pub poll_time_s: Option<Summary>,
}

/// What became of connections, in models that have them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConnectionFigures {
    /// From the arrival of a request at the front-end to the first segment of its answer, in seconds.
    pub server_latency_s: Option<Summary>,
    /// From when a client sends its first SYN, or a further request on its connection, until it has the last byte, in seconds.
    pub user_latency_s: Option<Summary>,
    /// Connections that were offered to a back-end for the first time.
    pub opened: u64,
    /// Connections that a back-end refused at the first, second and third attempt.
    pub refusals: [u64; 3],
    /// Connections that were refused at the last attempt; they are among the rejected requests.
    pub given_up: u64,
    /// Server processes forked.
    pub forks: u64,
    /// Requests for documents of which the policy predicted whether they are read from disk: by whether it expected that, and whether
    /// they were.
    #[serde(default)]
    pub predictions: [[u64; 2]; 2],
}

/// Part of a policy's inner state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateTable {
    /// Its name.
    pub name: String,
    /// Names of the columns, with units.
    pub columns: Vec<String>,
    /// Rows of as many numbers; `None` for an interval without an upper end.
    pub rows: Vec<Vec<Option<f64>>>,
}

/// The result of one run: one policy on one number of back-ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Policy name as in the registry (or `wrr_gms`).
    pub policy: String,
    /// Back-end model, e.g. `lard`.
    pub model: String,
    /// Number of back-ends.
    pub backends: usize,
    /// Where the front-ends' loads came from, e.g. `poll`.
    #[serde(default = "exact")]
    pub load_information: String,
    /// Number of front-ends.
    #[serde(default = "one")]
    pub front_ends: usize,
    /// Seed of every random choice in the run.
    pub seed: u64,
    /// Parameters of policy and model, by `policy.key` or `model.key`.
    pub params: BTreeMap<String, serde_json::Value>,
    /// Requests taken from the trace (warm-up excluded).
    pub requests: u64,
    /// Requests that were answered.
    pub completed: u64,
    /// Requests refused, or never let in.
    pub rejected: u64,
    /// Requests lost with a back-end that failed.
    #[serde(default)]
    pub lost: u64,
    /// Bytes of the answers; 0 where they were not counted.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Simulated seconds from the start of the run (the end of the warm-up, if there is one) to the last completion.
    pub simulated_s: f64,
    /// Simulated second of the last completion, the warm-up included; kept out of `--json`, and 0 where it is not known.
    #[serde(skip)]
    pub ended_s: f64,
    /// Completed requests per simulated second.
    pub throughput_rps: f64,
    /// Disk reads per request; `None` where the model has no cache.
    pub miss_ratio: Option<f64>,
    /// Requests that waited for a disk read already under way, per request.
    pub joined_ratio: Option<f64>,
    /// Share of time with a load below 40 % of `t_low`, averaged over back-ends.
    pub idle_ratio: f64,
    /// Time from assignment to completion plus time waiting at the front-end, in seconds.
    pub response_time_s: Option<Summary>,
    /// Response time over the time alone on an idle back-end with the document cached.
    pub slowdown: Option<Summary>,
    /// Busy shares.
    pub utilization: Utilization,
    /// What load information has cost; `None` where all loads are known at once and for nothing.
    #[serde(default)]
    pub load_traffic: Option<LoadTraffic>,
    /// What became of connections; `None` in models without them.
    #[serde(default)]
    pub connections: Option<ConnectionFigures>,
    /// One entry per back-end, in index order.
    pub per_backend: Vec<PerBackend>,
    /// Counters of the policy itself, e.g. `reassignments`, `replicas_mean`.
    pub policy_stats: BTreeMap<String, f64>,
    /// Tables of the policy's state at the end, such as boundaries; not in CSV and Parquet.
    #[serde(default)]
    pub policy_tables: Vec<StateTable>,
    /// Wall-clock seconds the run took; `None` unless asked for (`--timing`), so that equal runs print equal bytes.
    pub wall_s: Option<f64>,
    /// Requests per wall-clock second; `None` like `wall_s`.
    pub requests_per_wall_s: Option<f64>,
    /// The input.
    pub trace: TraceInfo,
    /// Load over time; kept out of `--json` (the report and its CSV hold it).
    #[serde(skip)]
    pub load_series: LoadSeries,
}

fn exact() -> String {
    "exact".to_owned()
}

fn one() -> usize {
    1
}

impl Run {
    /// The hardware whose costs the back-ends have; `None` for models without such costs, and for live runs.
    #[must_use]
    pub fn hardware(&self) -> Option<&str> {
        self.params.get("hardware")?.as_str()
    }

    /// Requests that were not answered: rejected or lost.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.rejected.saturating_add(self.lost)
    }
}
