//! A snapshot of the front-end's state, taken under the lock of dispatch and used without it.

use std::sync::Arc;

use plimsoll_decisions::ShadowScore;
use plimsoll_policy::{BackendId, Health, PolicyTable, TargetId, Weight};

use crate::backend::Backend;
use crate::dispatch::{DispatchCounts, Inspection, LogState};
use crate::metrics::{BackendCounts, Histogram, SharedCounter};
use crate::shared::FrontEndShared;

/// One back-end.
pub(super) struct BackendState {
    pub(super) backend: Arc<Backend>,
    /// Requests assigned to it and not completed.
    pub(super) load: u32,
    /// The load that policies see.
    pub(super) shown_load: u32,
    pub(super) weight: Weight,
    pub(super) health: Health,
    /// Whether it takes new requests.
    pub(super) eligible: bool,
    /// Whether it takes only trials, because it failed requests.
    pub(super) ejected: bool,
}

/// The cluster, the policy and the counters of dispatch.
pub(super) struct Snapshot {
    pub(super) backends: Vec<BackendState>,
    pub(super) total_load: u64,
    /// `None` without a limit.
    pub(super) admission_limit: Option<u64>,
    pub(super) waiting: usize,
    pub(super) counts: DispatchCounts,
    pub(super) stats: Vec<(&'static str, f64)>,
    pub(super) tracked_targets: usize,
    pub(super) shadow: Option<ShadowScore>,
    pub(super) log: LogState,
}

/// The state of one target.
pub(super) struct TargetState {
    pub(super) server_set: Vec<BackendId>,
    pub(super) known_size_bytes: Option<u64>,
}

impl Snapshot {
    pub(super) fn take(shared: &FrontEndShared) -> Self {
        Self::with(shared, |_| ()).0
    }

    /// The same, with what else there is to see of the policy's state.
    pub(super) fn with_tables(shared: &FrontEndShared) -> (Self, Vec<PolicyTable>) {
        Self::with(shared, |i| i.policy.tables())
    }

    /// The same, with what is known of a target at that moment.
    pub(super) fn with_target(shared: &FrontEndShared, target: TargetId) -> (Self, TargetState) {
        Self::with(shared, |i| TargetState {
            server_set: i.policy.server_set(target),
            known_size_bytes: i.known_size_bytes(target),
        })
    }

    fn with<T>(shared: &FrontEndShared, look: impl FnOnce(&Inspection<'_>) -> T) -> (Self, T) {
        let backends = shared.backends.load_full();
        shared.dispatch.inspect(|i| {
            let state = |backend: &Arc<Backend>| {
                let id = backend.id;
                // During a reload a back-end is in the table a moment before it joins.
                i.members.get(id.index()).map(|_| BackendState {
                    backend: Arc::clone(backend),
                    load: i.view.own_load(id),
                    shown_load: i.view.load(id),
                    weight: i.view.weight(id),
                    health: i.view.health(id),
                    eligible: i.view.is_eligible(id),
                    ejected: backend.is_ejected(),
                })
            };
            let snapshot = Self {
                backends: backends.iter().filter_map(state).collect(),
                total_load: i.view.total_own_load(),
                admission_limit: (i.admission_limit < u64::MAX).then_some(i.admission_limit),
                waiting: i.waiting,
                counts: i.counts,
                stats: i.policy.stats(),
                tracked_targets: i.policy.tracked_targets(),
                shadow: i.shadow(),
                log: i.log_state(),
            };
            (snapshot, look(i))
        })
    }
}

impl BackendState {
    /// Whether there is something to tell: it is configured, or still finishes requests.
    pub(super) fn is_there(&self) -> bool {
        !self.backend.is_retired() || self.load > 0
    }

    /// A counter over all workers.
    pub(super) fn sum(&self, of: impl Fn(&BackendCounts) -> &SharedCounter) -> u64 {
        self.backend.counts.iter().map(|counts| of(counts).get()).sum()
    }

    /// A histogram over all workers: counts by bucket, not cumulated, and the sum of the times in seconds.
    pub(super) fn histogram(&self, of: impl Fn(&BackendCounts) -> &Histogram) -> (Vec<u64>, f64) {
        let mut buckets = vec![0; crate::metrics::BUCKETS_US.len() + 1];
        let mut sum_us = 0;
        for histogram in self.backend.counts.iter().map(of) {
            buckets.iter_mut().zip(&histogram.buckets).for_each(|(sum, counter)| *sum += counter.get());
            sum_us += histogram.sum_us.get();
        }
        (buckets, sum_us as f64 / 1e6)
    }

    /// Connections that are open to it.
    pub(super) fn connections(&self) -> u64 {
        (self.backend.max_connections as usize).saturating_sub(self.backend.permits.available_permits())
            as u64
    }
}

/// The word for a state.
pub(super) fn health_name(health: Health) -> &'static str {
    match health {
        Health::Up => "up",
        Health::Draining => "draining",
        Health::Down => "down",
    }
}
