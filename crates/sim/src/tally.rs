//! What is counted from the start of the measurement.

use plimsoll_policy::{BackendId, FrontEnd, Time};

use crate::jobs::Job;
use crate::measure::{Distribution, LoadMeters};
use crate::model::Model;
use crate::outcome::{BackendOutcome, Outcome, SLOWDOWN_SCALE};

/// See the module's documentation.
pub(crate) struct Tally {
    /// Completions that are not measured.
    warmup: u64,
    measuring: bool,
    /// Requests that ended before the measurement.
    before: u64,
    started: Time,
    ended: Time,
    pub(crate) completed: u64,
    pub(crate) rejected: u64,
    pub(crate) lost: u64,
    per_backend: Vec<u64>,
    response: Distribution,
    slowdown: Distribution,
    loads: LoadMeters,
}

impl Tally {
    pub(crate) fn new(backends: usize, warmup: u64, idle_below: f64) -> Self {
        Self {
            warmup,
            measuring: warmup == 0,
            before: 0,
            started: Time::ZERO,
            ended: Time::ZERO,
            completed: 0,
            rejected: 0,
            lost: 0,
            per_backend: vec![0; backends],
            response: Distribution::default(),
            slowdown: Distribution::default(),
            loads: LoadMeters::new(backends, idle_below),
        }
    }

    /// Counts an answer; `true` when it was the last one of the warm-up.
    #[inline]
    pub(crate) fn answered(&mut self, job: &Job, now: Time) -> bool {
        self.completed += 1;
        self.per_backend[job.backend.index()] += 1;
        let response_ns = now.since(job.arrived).as_nanos();
        self.response.record(response_ns);
        let alone_ns = job.alone.as_nanos().max(1);
        self.slowdown.record((response_ns as f64 * SLOWDOWN_SCALE / alone_ns as f64) as u64);
        !self.measuring && self.completed >= self.warmup
    }

    /// Starts the measurement.
    pub(crate) fn restart(&mut self, now: Time) {
        self.measuring = true;
        self.before = self.completed + self.rejected + self.lost;
        (self.completed, self.rejected, self.lost) = (0, 0, 0);
        (self.started, self.ended) = (now, now);
        self.per_backend.fill(0);
        self.response.reset();
        self.slowdown.reset();
        self.loads.restart(now);
    }

    /// The load of a back-end has changed, because a request was assigned to it or has ended.
    #[inline]
    pub(crate) fn load_changed(&mut self, backend: BackendId, load: u32, now: Time) {
        self.ended = now;
        self.loads.set(backend.index(), load, now);
    }

    /// Requests measured so far, or `None` when the warm-up has not ended.
    pub(crate) fn measured(&self) -> Option<u64> {
        self.measuring.then_some(self.completed)
    }

    /// Closes the books: `requests` of the input have ended one way or another.
    pub(crate) fn finish(self, requests: u64, front_end: &FrontEnd, model: &impl Model) -> Outcome {
        debug_assert_eq!(
            requests,
            self.before + self.completed + self.rejected + self.lost,
            "a request is missing"
        );
        let (loads, load_series) = self.loads.finish(self.ended);
        let backends = front_end
            .view()
            .ids()
            .zip(loads)
            .map(|(b, (mean_load, idle_ratio))| BackendOutcome {
                requests: self.per_backend[b.index()],
                usage: model.usage(b, self.ended),
                mean_load,
                idle_ratio,
            })
            .collect();
        Outcome {
            requests: requests - self.before,
            completed: self.completed,
            rejected: self.rejected,
            lost: self.lost,
            simulated: self.ended.since(self.started),
            response_ns: self.response,
            slowdown_permille: self.slowdown,
            backends,
            disks: model.disks(),
            load_series,
            policy_stats: front_end.policy().stats(),
        }
    }
}
