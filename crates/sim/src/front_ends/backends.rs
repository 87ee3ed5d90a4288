//! What back-ends say of themselves when they are asked.

use plimsoll_policy::{BackendId, ClusterView, Health, LatencyByLoad, Nanos, PollAnswer, Time};

use super::inquiries::Asked;
use crate::model::Model;

/// Loads and recent response times of all back-ends.
pub(super) struct Backends {
    /// Requests assigned by any front-end and not completed.
    loads: Vec<u32>,
    /// Response times of answers, where somebody asks for them.
    latencies: Option<LatencyByLoad>,
}

impl Backends {
    pub(super) fn new(count: usize, tells_latency: bool) -> Self {
        Self { loads: vec![0; count], latencies: tells_latency.then(LatencyByLoad::default) }
    }

    pub(super) fn loads(&self) -> &[u32] {
        &self.loads
    }

    #[inline]
    pub(super) fn begin(&mut self, b: BackendId) {
        self.loads[b.index()] += 1;
    }

    #[inline]
    pub(super) fn end(&mut self, b: BackendId) {
        self.loads[b.index()] -= 1;
    }

    /// `b` answered a request that began as one of `load`.
    #[inline]
    pub(super) fn answered(&mut self, b: BackendId, load: u32, response_time: Nanos, now: Time) {
        if let Some(latencies) = &mut self.latencies {
            latencies.saw(b, load, response_time, now);
        }
    }

    /// `b` has failed: its response times say nothing of what it will be when it is back.
    pub(super) fn fail(&mut self, b: BackendId) {
        if let Some(latencies) = &mut self.latencies {
            latencies.forget(b);
        }
    }

    /// Response times lately of requests that found about `load` others, as one that comes now.
    pub(super) fn latency(&self, b: BackendId, load: u32, now: Time) -> Option<Nanos> {
        self.latencies.as_ref()?.near(b, load.saturating_add(1), now)
    }

    /// What `b` would say of its load.
    #[inline]
    pub(super) fn queue_length(&self, model: &impl Model, b: BackendId, now: Time) -> u32 {
        model.queue_length(b, now).unwrap_or(self.loads[b.index()])
    }

    /// The back-ends as inquiries find them at `now`.
    pub(super) fn asked<'a, M: Model>(
        &'a self,
        model: &'a mut M,
        view: &'a ClusterView,
        cpu: Nanos,
        now: Time,
    ) -> AskedBackends<'a, M> {
        AskedBackends { backends: self, model, view, cpu, now }
    }
}

/// See [`Backends::asked`].
pub(super) struct AskedBackends<'a, M> {
    backends: &'a Backends,
    model: &'a mut M,
    view: &'a ClusterView,
    cpu: Nanos,
    now: Time,
}

impl<M: Model> Asked for AskedBackends<'_, M> {
    #[inline]
    fn load(&self, b: BackendId) -> u32 {
        self.backends.queue_length(self.model, b, self.now)
    }

    #[inline]
    fn answer(&self, b: BackendId, load: u32) -> Option<PollAnswer> {
        let latency = self.backends.latency(b, load, self.now);
        (self.view.health(b) != Health::Down).then_some(PollAnswer { backend: b, load, latency })
    }

    #[inline]
    fn spend(&mut self, b: BackendId) -> Nanos {
        match self.view.health(b) {
            Health::Down => Nanos::ZERO,
            _ => self.model.inquired(b, self.cpu, self.now),
        }
    }
}
