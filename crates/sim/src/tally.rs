//! The counts from the start of the measurement on.

use plimsoll_policy::{BackendId, Policy, Time};

use crate::jobs::Job;
use crate::measure::{Distribution, LoadMeters, SLOWDOWN_SCALE};
use crate::model::{Model, Usage};
use crate::outcome::{BackendOutcome, LoadMessages, RunOutcome};
use crate::series::{Recording, SeriesRecorder, SizeClasses, slowdown_permille};

/// See the module's documentation.
pub(crate) struct RunTally {
    /// Completions before the measurement starts.
    warmup: u64,
    measuring: bool,
    /// Requests that ended before the measurement.
    before: u64,
    started: Time,
    ended: Time,
    pub(crate) completed: u64,
    /// Bytes of the answers.
    sent_bytes: u64,
    pub(crate) rejected: u64,
    pub(crate) lost: u64,
    per_backend: Vec<u64>,
    response: Distribution,
    slowdown: Distribution,
    loads: LoadMeters,
    series: Option<SeriesRecorder>,
    size_classes: Option<Box<SizeClasses>>,
}

impl RunTally {
    pub(crate) fn new(
        backends: usize,
        disks: u32,
        warmup: u64,
        idle_below: f64,
        recording: Recording,
    ) -> Self {
        let every = recording.point_every.filter(|&every| every > 0);
        Self {
            warmup,
            measuring: warmup == 0,
            before: 0,
            started: Time::ZERO,
            ended: Time::ZERO,
            completed: 0,
            sent_bytes: 0,
            rejected: 0,
            lost: 0,
            per_backend: vec![0; backends],
            response: Distribution::default(),
            slowdown: Distribution::default(),
            loads: LoadMeters::new(backends, idle_below),
            series: every.map(|every| SeriesRecorder::new(every, backends, disks)),
            size_classes: recording.by_size.then(Box::default),
        }
    }

    /// Counts an answer. Returns whether it was the last one of the warm-up.
    #[inline]
    pub(crate) fn answered(&mut self, job: &Job, now: Time) -> bool {
        self.completed += 1;
        self.sent_bytes = self.sent_bytes.saturating_add(job.size_bytes);
        self.per_backend[job.assigned.backend.index()] += 1;
        let response_ns = now.since(job.arrived).as_nanos();
        self.response.record(response_ns);
        let permille = slowdown_permille(response_ns, job.alone.as_nanos());
        self.slowdown.record(permille as u64);
        if let Some(series) = &mut self.series {
            series.sent(job.assigned.backend, job.size_bytes);
            series.answered(response_ns, permille / SLOWDOWN_SCALE);
        }
        if let Some(classes) = &mut self.size_classes {
            classes.count(job.size_bytes, permille / SLOWDOWN_SCALE);
        }
        !self.measuring && self.completed >= self.warmup
    }

    /// Starts the measurement.
    pub(crate) fn restart(&mut self, now: Time) {
        self.measuring = true;
        self.before = self.completed + self.rejected + self.lost;
        (self.completed, self.rejected, self.lost, self.sent_bytes) = (0, 0, 0, 0);
        (self.started, self.ended) = (now, now);
        self.per_backend.fill(0);
        self.response.reset();
        self.slowdown.reset();
        self.loads.restart(now);
        if let Some(series) = &mut self.series {
            series.restart(now);
        }
        if let Some(classes) = &mut self.size_classes {
            **classes = SizeClasses::default();
        }
    }

    /// A request was assigned.
    #[inline]
    pub(crate) fn assigned(&mut self) {
        if let Some(series) = &mut self.series {
            series.assigned();
        }
    }

    /// Whether a point of the series is due.
    #[inline]
    pub(crate) fn point_is_due(&self) -> bool {
        self.series.as_ref().is_some_and(SeriesRecorder::is_due)
    }

    /// Closes a point of the series.
    pub(crate) fn close_point(&mut self, now: Time, usage: impl Fn(BackendId, Time) -> Usage) {
        let backends = self.per_backend.len();
        if let Some(series) = &mut self.series {
            series.close(now, (0..backends).map(|b| usage(BackendId::new(b), now)).collect());
        }
    }

    /// Notes a back-end's new load.
    #[inline]
    pub(crate) fn load_changed(&mut self, backend: BackendId, load: u32, now: Time) {
        self.ended = now;
        self.loads.set(backend.index(), load, now);
    }

    /// Requests measured so far, or `None` when the warm-up has not ended.
    pub(crate) fn measured(&self) -> Option<u64> {
        self.measuring.then_some(self.completed)
    }

    /// Ends the measurement after `requests` of the input have ended.
    pub(crate) fn finish(self, requests: u64, policy: &dyn Policy, model: &impl Model) -> RunOutcome {
        self.finish_with(requests, policy, model.disks(), |b, now| model.usage(b, now))
    }

    /// The same for back-ends with so many disks each, of which `usage` tells what they have used.
    pub(crate) fn finish_with(
        mut self,
        requests: u64,
        policy: &dyn Policy,
        disks: u32,
        usage: impl Fn(BackendId, Time) -> Usage,
    ) -> RunOutcome {
        self.close_point(self.ended, &usage);
        debug_assert_eq!(
            requests,
            self.before + self.completed + self.rejected + self.lost,
            "a request is missing"
        );
        let (loads, load_series) = self.loads.finish(self.ended);
        let backends = (0..self.per_backend.len())
            .map(BackendId::new)
            .zip(loads)
            .map(|(b, (mean_load, idle_ratio))| BackendOutcome {
                requests: self.per_backend[b.index()],
                usage: usage(b, self.ended),
                mean_load,
                idle_ratio,
            })
            .collect();
        RunOutcome {
            requests: requests - self.before,
            completed: self.completed,
            rejected: self.rejected,
            lost: self.lost,
            sent_bytes: self.sent_bytes,
            ended: self.ended,
            simulated: self.ended.since(self.started),
            response_ns: self.response,
            slowdown_permille: self.slowdown,
            backends,
            disks,
            load_series,
            policy_stats: policy.stats(),
            policy_tables: policy.tables(),
            points: self.series.map(SeriesRecorder::into_points).unwrap_or_default(),
            size_classes: self.size_classes.map(|classes| *classes),
            load_messages: LoadMessages::default(),
            connections: None,
        }
    }
}
