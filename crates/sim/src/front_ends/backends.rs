//! What back-ends say of themselves when they are asked.

use plimsoll_policy::{BackendId, ClusterView, Health, Nanos, PollAnswer, Time};

use super::inquiries::Asked;
use crate::model::Model;

/// Of the response times of a back-end, the latest one counts this share in the mean: one in eight.
const SHARE_BITS: u32 = 3;

/// Loads and recent response times of all back-ends.
pub(super) struct Backends {
    /// Requests assigned by any front-end and not completed.
    loads: Vec<u32>,
    /// Moving averages of the response times, in nanoseconds; 0 before the first.
    latency_ns: Vec<u64>,
}

impl Backends {
    pub(super) fn new(count: usize) -> Self {
        Self { loads: vec![0; count], latency_ns: vec![0; count] }
    }

    pub(super) fn loads(&self) -> &[u32] {
        &self.loads
    }

    #[inline]
    pub(super) fn begin(&mut self, b: BackendId) {
        self.loads[b.index()] += 1;
    }

    #[inline]
    pub(super) fn end(&mut self, b: BackendId, response_time: Nanos) {
        self.loads[b.index()] -= 1;
        let (mean, latest) = (&mut self.latency_ns[b.index()], response_time.as_nanos());
        *mean = if *mean == 0 { latest } else { *mean - (*mean >> SHARE_BITS) + (latest >> SHARE_BITS) };
    }

    pub(super) fn latency(&self, b: BackendId) -> Option<Nanos> {
        let latency_ns = self.latency_ns[b.index()];
        (latency_ns > 0).then_some(Nanos::new(latency_ns))
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
        let latency = self.backends.latency(b);
        (self.view.health(b) != Health::Down).then_some(PollAnswer { backend: b, load, latency })
    }

    #[inline]
    fn spend(&mut self, b: BackendId) {
        self.model.inquired(b, self.cpu, self.now);
    }
}
