//! Estimates the load of back-ends from the requests that pass on their way to them, without asking the back-ends.
//!
//! Source: Hyun, Jung, Lee and Maeng, "Content sniffer based load distribution in a web server cluster", IEICE Transactions on
//! Information and Systems 2003, section 3.3: the load estimator. Each part can be used alone.
//!
//! ```text
//! a request of back-end k passes at t, with CPU cost c and size s:
//!     T_C[k] <- max(T_C[k], t);  CPU board[k] at T_C[k] += c;  T_C[k] += c;  T_D[k] <- max(T_D[k], T_C[k])
//!     dynamic:  disk board[k] at T_D[k] += d;  T_D[k] += d
//!     static, never asked for at k, or k has read more than its cache holds since then:
//!         d <- time to read s;  disk board[k] at T_D[k] += d;  T_D[k] += d;  history[k] += s
//!     c <- time to send s, in one part (s within the send buffer), or in slow start's parts a round trip apart
//!     CPU board[k] at T_C[k] += first part;  T_C[k] += first part;  the other parts at their times
//! at the end of each period:  load of k <- figure 5 over its boards from now on; clear what is past
//! ```
//!
//! The paper takes the requests of a period from a queue at its end. Here each one enters the boards when it passes, which gives the
//! same boards and needs no queue: the slots of the period that begins are cleared at its beginning in place of its end.

pub mod aggregate;
mod cost_board;
mod cost_table;
mod read_history;
mod references;
mod setup;
mod transmission;
mod work_ahead;

pub use self::cost_board::CostBoard;
pub use self::cost_table::{ClassCost, CostTable};
pub use self::read_history::ReadHistory;
pub use self::references::{Reference, References};
use self::setup::LATEST;
pub use self::setup::{EstimatorSetup, MissPredictor};
pub use self::transmission::SlowStart;
use self::work_ahead::WorkAhead;

use self::aggregate::{ClusterState, load_index};
use crate::cluster::BackendId;
use crate::sniffed::{SniffedKind, SniffedRequest};
use crate::time::{Nanos, Time};

/// See the module's documentation.
pub struct Estimator {
    setup: EstimatorSetup,
    backends: Vec<WorkAhead>,
    references: References,
    state: RecentState,
    /// When the period began.
    began: Time,
    miss: Option<bool>,
}

/// Averages over recent periods, each period weighing [`LATEST`].
#[derive(Debug, Clone, Copy, Default)]
struct RecentState {
    periods: u64,
    requests: f64,
    connections: f64,
    cpu_s: f64,
    statics: f64,
    misses: f64,
    disk_s: f64,
    /// The same sums over the period under way.
    now: PeriodSums,
}

/// What has passed in a period.
#[derive(Debug, Clone, Copy, Default)]
struct PeriodSums {
    requests: u64,
    connections: u64,
    cpu: Nanos,
    statics: u64,
    misses: u64,
    disk: Nanos,
}

impl RecentState {
    fn end_period(&mut self) {
        // The first periods are averaged evenly, so that the zeros before them do not count.
        let weight = LATEST.max(1.0 / (self.periods + 1) as f64);
        let now = std::mem::take(&mut self.now);
        let mean = |of: &mut f64, latest: f64| *of += weight * (latest - *of);
        mean(&mut self.requests, now.requests as f64);
        mean(&mut self.connections, now.connections as f64);
        mean(&mut self.cpu_s, now.cpu.as_secs_f64());
        mean(&mut self.statics, now.statics as f64);
        mean(&mut self.misses, now.misses as f64);
        mean(&mut self.disk_s, now.disk.as_secs_f64());
        self.periods += 1;
    }
}

impl Estimator {
    /// An estimator for `backends` back-ends without requests.
    #[must_use]
    pub fn new(setup: EstimatorSetup, backends: usize) -> Self {
        let mut estimator = Self {
            references: References::new(setup.documents, setup.table_seed),
            setup,
            backends: Vec::new(),
            state: RecentState::default(),
            began: Time::ZERO,
            miss: None,
        };
        estimator.resize(backends);
        estimator
    }

    /// From now on there are this many back-ends.
    pub fn resize(&mut self, backends: usize) {
        let setup = &self.setup;
        self.backends.resize_with(backends, || WorkAhead::new(setup));
    }

    /// A back-end has lost its requests and its memory, or another one has its index.
    pub fn restart(&mut self, b: BackendId) {
        if let Some(ahead) = self.backends.get_mut(b.index()) {
            *ahead = WorkAhead::new(&self.setup);
            self.references.forget(b);
        }
    }

    /// `sniffed` passes at `now`; a dynamic one costs `class` beside the basic steps.
    #[inline]
    pub fn pass(&mut self, sniffed: &SniffedRequest, class: ClassCost, now: Time) {
        let Some(ahead) = self.backends.get_mut(sniffed.backend.index()) else { return };
        let costs = &self.setup.costs;
        let sums = &mut self.state.now;
        let is_connection = sniffed.kind == SniffedKind::Connection;
        sums.requests += u64::from(!is_connection);
        let mut cpu = costs.before_response(sniffed.kind);
        if sniffed.kind == SniffedKind::Dynamic {
            cpu += class.cpu;
        }
        ahead.compute(now, cpu);
        self.miss = None;
        let size_bytes = match sniffed.kind {
            SniffedKind::Static => {
                let size_bytes = sniffed.size_bytes.unwrap_or(0);
                let reference = self.references.of(sniffed.target, sniffed.backend);
                let missed = ahead.ask_for(size_bytes, reference, &self.setup);
                sums.statics += 1;
                sums.misses += u64::from(missed.is_some());
                sums.disk += missed.unwrap_or(Nanos::ZERO);
                self.miss = Some(missed.is_some());
                size_bytes
            }
            SniffedKind::Dynamic => {
                ahead.read(class.disk);
                class.size_bytes
            }
            _ => 0,
        };
        let sending = costs.sending(size_bytes);
        if size_bytes <= costs.send_buffer_bytes || sniffed.round_trip.is_zero() {
            ahead.compute(now, sending);
        } else {
            ahead.send(SlowStart::new(size_bytes, sniffed.round_trip), costs);
        }
        sums.cpu += cpu + sending;
    }

    /// A connection was given to a back-end; its packets pass as others do.
    pub fn connected(&mut self) {
        self.state.now.connections += 1;
    }

    /// Whether the request that passed last is expected to come from disk; `None` if it was not for a document.
    #[must_use]
    pub fn expects_miss(&self) -> Option<bool> {
        self.miss
    }

    /// A period ends at `now`. Returns the load of each back-end, in requests.
    pub fn end_period(&mut self, now: Time) -> Vec<f64> {
        self.state.end_period();
        let cluster = self.cluster();
        let thresholds = self.setup.thresholds;
        let per_period = (self.setup.period.as_nanos() / self.setup.slot.as_nanos().max(1)).max(1);
        let loads: Vec<f64> = self
            .backends
            .iter()
            .map(|ahead| load_index(&cluster, &ahead.totals(now, per_period), &thresholds))
            .collect();
        for ahead in &mut self.backends {
            ahead.end_period(self.began, now, per_period, self.setup.clear_past);
        }
        self.began = now;
        loads
    }

    /// The state of the cluster over recent periods.
    #[must_use]
    pub fn cluster(&self) -> ClusterState {
        let RecentState { requests, cpu_s, statics, misses, disk_s, .. } = self.state;
        let of = |sum: f64, count: f64| if count > 0.0 { sum / count } else { 0.0 };
        let all_s = self.setup.period.as_secs_f64() * self.backends.len() as f64;
        ClusterState {
            miss_ratio: of(misses, statics),
            load: of(cpu_s, all_s),
            request_cpu_s: of(cpu_s, requests),
            miss_disk_s: of(disk_s, misses),
        }
    }

    /// `N_r`: requests of a period, on average over recent ones.
    #[must_use]
    pub fn requests(&self) -> f64 {
        self.state.requests
    }

    /// Connections of a period, on average over recent ones.
    #[must_use]
    pub fn connections(&self) -> f64 {
        self.state.connections
    }

    /// Documents whose references are kept.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.references.len()
    }

    /// How much work is ahead of a back-end at `now`: CPU time and disk time.
    #[must_use]
    pub fn work_ahead(&self, b: BackendId, now: Time) -> (Nanos, Nanos) {
        self.backends.get(b.index()).map_or((Nanos::ZERO, Nanos::ZERO), |ahead| ahead.until_done(now))
    }
}

#[cfg(test)]
mod tests;
