//! The results of a run.

use plimsoll_policy::{Nanos, PolicyTable, Time};

use crate::measure::{Distribution, LoadOverTime, SLOWDOWN_SCALE};
use crate::model::Usage;
use crate::series::{SeriesPoint, SizeClasses};

/// The results of one back-end.
#[derive(Debug, Clone, PartialEq)]
pub struct BackendOutcome {
    /// Requests answered.
    pub requests: u64,
    /// Reads, joins and busy times.
    pub usage: Usage,
    /// Time average of the load.
    pub mean_load: f64,
    /// Share of time below the idle load.
    pub idle_ratio: f64,
}

/// What load information has cost.
#[derive(Debug, Clone, Default)]
pub struct LoadMessages {
    /// Messages that were sent: inquiries, answers, announcements once for each receiver, and those to and from a load index
    /// manager.
    pub messages: u64,
    /// CPU time that inquiries and announcements took at the back-ends.
    pub cpu: Nanos,
    /// CPU time that announcements took at the front-ends.
    pub receive_cpu: Nanos,
    /// Inquiries.
    pub inquiries: u64,
    /// Those whose answer came too late.
    pub discarded: u64,
    /// Polls for which requests waited.
    pub polls: u64,
    /// Those that ended before all answers had come.
    pub polls_cut_short: u64,
    /// How long requests waited for loads, in nanoseconds.
    pub poll_ns: Distribution,
}

/// What a model of connections tells beyond other models.
#[derive(Debug, Clone, Default)]
pub struct ConnectionOutcome {
    /// From the arrival of a request at the front-end to the first segment of its answer, in nanoseconds. Hyun et al., section 4.2,
    /// call it the server latency.
    pub server_latency_ns: Distribution,
    /// From when a client sends its first SYN, or a further request on its connection, until it has the last byte, in nanoseconds.
    pub user_latency_ns: Distribution,
    /// Connections that were offered to a back-end for the first time.
    pub opened: u64,
    /// Connections that a back-end refused at the first, second and third attempt.
    pub refusals: [u64; 3],
    /// Connections that were refused at the last attempt. They are among the rejected requests.
    pub given_up: u64,
    /// Server processes forked.
    pub forks: u64,
    /// Requests for documents of which the policy predicted whether they are read from disk: by whether it expected that, and whether
    /// they were.
    pub predictions: [[u64; 2]; 2],
}

/// The results of a run, warm-up excluded.
#[derive(Debug, Clone)]
pub struct RunOutcome {
    /// Requests of the input after the warm-up.
    pub requests: u64,
    /// Answered.
    pub completed: u64,
    /// Rejected: no back-end, or no room in the front-end's queue.
    pub rejected: u64,
    /// Lost with a back-end that failed.
    pub lost: u64,
    /// Bytes of the answers.
    pub sent_bytes: u64,
    /// When the last answer came, the warm-up included.
    pub ended: Time,
    /// From the start of the measurement to the last answer.
    pub simulated: Nanos,
    /// From arrival at the front-end to the last byte, in nanoseconds.
    pub response_ns: Distribution,
    /// Response time over the time alone, in thousandths.
    pub slowdown_permille: Distribution,
    /// By back-end.
    pub backends: Vec<BackendOutcome>,
    /// Disks per back-end; 0 where the model has no disks and no cache.
    pub disks: u32,
    /// Load over time.
    pub load_series: LoadOverTime,
    /// The policy's own counters.
    pub policy_stats: Vec<(&'static str, f64)>,
    /// Tables of the policy's state at the end.
    pub policy_tables: Vec<PolicyTable>,
    /// Points along the run, if recorded.
    pub points: Vec<SeriesPoint>,
    /// Slowdown by size of response, if recorded.
    pub size_classes: Option<SizeClasses>,
    /// What load information has cost: nothing where all loads are known at once.
    pub load_messages: LoadMessages,
    /// What became of connections, in models that have them.
    pub connections: Option<Box<ConnectionOutcome>>,
}

impl RunOutcome {
    /// Answers per simulated second; 0 when no time has passed.
    #[must_use]
    pub fn throughput_rps(&self) -> f64 {
        let span_s = self.simulated.as_secs_f64();
        if span_s > 0.0 { self.completed as f64 / span_s } else { 0.0 }
    }

    /// Disk reads per answered request; `None` without disks or answers.
    #[must_use]
    pub fn miss_ratio(&self) -> Option<f64> {
        self.per_request(|usage| usage.reads)
    }

    /// Requests that joined a read under way, per answered request; `None` without disks or answers.
    #[must_use]
    pub fn joined_ratio(&self) -> Option<f64> {
        self.per_request(|usage| usage.joined)
    }

    fn per_request(&self, count: impl Fn(&Usage) -> u64) -> Option<f64> {
        let total: u64 = self.backends.iter().map(|b| count(&b.usage)).sum();
        (self.disks > 0 && self.completed > 0).then(|| total as f64 / self.completed as f64)
    }

    /// Mean share of time below the idle load.
    #[must_use]
    pub fn idle_ratio(&self) -> f64 {
        self.mean(|b| b.idle_ratio)
    }

    /// Mean busy share of the CPUs.
    #[must_use]
    pub fn cpu_utilization(&self) -> f64 {
        self.mean(|b| self.busy(b.usage.cpu, 1))
    }

    /// Mean busy share of the disks; `None` without disks.
    #[must_use]
    pub fn disk_utilization(&self) -> Option<f64> {
        (self.disks > 0).then(|| self.mean(|b| self.busy(b.usage.disk, self.disks)))
    }

    /// The busy share of `units` units that were busy for `time` in total.
    #[must_use]
    pub fn busy(&self, time: Nanos, units: u32) -> f64 {
        time.as_secs_f64() / self.simulated.as_secs_f64().max(1e-9) / f64::from(units.max(1))
    }

    /// Mean slowdown, if anything was answered.
    #[must_use]
    pub fn mean_slowdown(&self) -> Option<f64> {
        self.slowdown_permille.mean().map(|s| s / SLOWDOWN_SCALE)
    }

    fn mean(&self, value: impl Fn(&BackendOutcome) -> f64) -> f64 {
        self.backends.iter().map(value).sum::<f64>() / self.backends.len().max(1) as f64
    }
}
