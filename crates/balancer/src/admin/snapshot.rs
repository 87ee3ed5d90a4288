//! A snapshot of the front-end's state, taken under the lock of dispatch, of one partition after the other, and used without it.

use std::sync::Arc;

use plimsoll_config::PoolName;
use plimsoll_decisions::ShadowScore;
use plimsoll_policy::{BackendId, Health, PolicyTable, TargetId, Weight};

use crate::backend::Backend;
use crate::backend_pool::{BackendPool, FIRST_POOL};
use crate::dispatch::{Dispatch, DispatchCounts, Inspection, LogState};
use crate::metrics::{BackendCounts, Histogram, SharedCounter};
use crate::retry_budget::RetryCounts;

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
    /// Whether it takes none because it has as many as it may.
    pub(super) full: bool,
    /// Whether it takes only trials, because it failed requests.
    pub(super) ejected: bool,
    /// Whether that is because it is slow.
    pub(super) slow: bool,
    /// Whether it holds the partition, or one of those, that this is about.
    pub(super) holds: bool,
    /// The name of its pool, if that is not the first one.
    pub(super) pool: Option<PoolName>,
}

/// A number that a policy tells of itself.
pub(super) struct PolicyStat {
    pub(super) name: &'static str,
    /// Of which partition, where there are several.
    pub(super) partition: Option<u16>,
    pub(super) value: f64,
}

impl PolicyStat {
    /// Its name, and its partition where there are several.
    pub(super) fn key(&self) -> String {
        match self.partition {
            Some(partition) => format!("partition_{partition}.{}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// The cluster, the policy and the counters of dispatch.
pub(super) struct Snapshot {
    pub(super) backends: Vec<BackendState>,
    pub(super) total_load: u64,
    /// `None` without a limit.
    pub(super) admission_limit: Option<u64>,
    pub(super) waiting: usize,
    pub(super) counts: DispatchCounts,
    /// Of the pool, whatever the partition.
    pub(super) retries: RetryCounts,
    pub(super) stats: Vec<PolicyStat>,
    pub(super) tracked_targets: usize,
    /// Of these the ones for which it keeps assignments.
    pub(super) assigned_targets: usize,
    pub(super) shadow: Option<ShadowScore>,
    pub(super) log: LogState,
}

/// A pool beside the first one.
pub(super) struct OtherPool {
    pub(super) name: String,
    pub(super) policy: &'static str,
    pub(super) snapshot: Snapshot,
}

/// The state of one target.
pub(super) struct TargetState {
    pub(super) server_set: Vec<BackendId>,
    pub(super) known_size_bytes: Option<u64>,
}

impl Snapshot {
    pub(super) fn take(pool: &BackendPool) -> Self {
        Self::of_all(pool, |_| ()).0
    }

    /// The same, with what else there is to see of the policy's state.
    pub(super) fn with_tables(pool: &BackendPool) -> (Self, Vec<PolicyTable>) {
        let (snapshot, of_parts) = Self::of_all(pool, |i| i.policy.tables());
        let mut tables: Vec<PolicyTable> = Vec::new();
        for table in of_parts.into_iter().flatten() {
            match tables.iter_mut().find(|known| known.name == table.name) {
                Some(known) => known.rows.extend(table.rows),
                None => tables.push(table),
            }
        }
        (snapshot, tables)
    }

    /// The state of one partition, with what is known of a target of it at that moment.
    pub(super) fn with_target(pool: &BackendPool, partition: u16, target: TargetId) -> (Self, TargetState) {
        let backends = pool.backends.load_full();
        Self::of_part(pool, &backends, (partition, pool.dispatch.part(partition)), |i| TargetState {
            server_set: i.policy.server_set(target),
            known_size_bytes: i.known_size_bytes(target),
        })
    }

    /// All partitions together.
    fn of_all<T>(pool: &BackendPool, look: impl Fn(&Inspection<'_>) -> T) -> (Self, Vec<T>) {
        let backends = pool.backends.load_full();
        let parts = (0..).zip(pool.dispatch.parts());
        let mut of_parts = parts.map(|part| Self::of_part(pool, &backends, part, &look));
        let Some((mut all, first)) = of_parts.next() else { unreachable!("there is one part at least") };
        let mut looks = vec![first];
        for (partition, (part, look)) in (1..).zip(of_parts) {
            all.add(partition, part);
            looks.push(look);
        }
        (all, looks)
    }

    fn of_part<T>(
        pool: &BackendPool,
        backends: &[Arc<Backend>],
        (partition, part): (u16, &Arc<Dispatch>),
        look: impl FnOnce(&Inspection<'_>) -> T,
    ) -> (Self, T) {
        let several = pool.dispatch.parts().len() > 1;
        let pool_name = (pool.number != FIRST_POOL).then(|| PoolName::from(pool.name()));
        let retries = pool.retries();
        let holds: Vec<bool> = backends.iter().map(|b| pool.dispatch.held(b.id).has(partition)).collect();
        part.inspect(|i| {
            let state = |(backend, &holds): (&Arc<Backend>, &bool)| {
                let id = backend.id;
                // During a reload a back-end is in the table a moment before it joins.
                i.members.get(id.index()).map(|_| BackendState {
                    backend: Arc::clone(backend),
                    load: i.view.own_load(id),
                    shown_load: i.view.load(id),
                    weight: i.view.weight(id),
                    health: i.view.health(id),
                    eligible: i.view.is_eligible(id),
                    full: i.view.is_full(id),
                    ejected: backend.is_ejected(),
                    slow: backend.is_slow(),
                    holds,
                    pool: pool_name.clone(),
                })
            };
            let stat = |(name, value)| PolicyStat { name, partition: several.then_some(partition), value };
            let snapshot = Self {
                backends: backends.iter().zip(&holds).filter_map(state).collect(),
                total_load: i.view.total_own_load(),
                admission_limit: (i.admission_limit < u64::MAX).then_some(i.admission_limit),
                waiting: i.waiting,
                counts: i.counts,
                retries,
                stats: i.policy.stats().into_iter().map(stat).collect(),
                tracked_targets: i.policy.tracked_targets(),
                assigned_targets: i.policy.assigned_targets(),
                shadow: i.shadow(),
                log: i.log_state(),
            };
            (snapshot, look(i))
        })
    }

    /// Adds what is to be seen of another partition.
    fn add(&mut self, partition: u16, part: Self) {
        debug_assert!(part.stats.iter().all(|stat| stat.partition == Some(partition)));
        // A back-end that has joined meanwhile comes with the next snapshot.
        for (all, one) in self.backends.iter_mut().zip(part.backends) {
            all.load += one.load;
            all.shown_load = all.shown_load.max(one.shown_load);
            all.eligible |= one.eligible;
            all.full |= one.full;
            if one.holds && !all.holds {
                (all.health, all.holds) = (one.health, true);
            }
        }
        self.total_load += part.total_load;
        self.admission_limit =
            self.admission_limit.zip(part.admission_limit).map(|(a, b)| a.saturating_add(b));
        self.waiting += part.waiting;
        self.counts.add(part.counts);
        self.stats.extend(part.stats);
        self.tracked_targets += part.tracked_targets;
        self.assigned_targets += part.assigned_targets;
        self.log.add(part.log);
    }
}

impl BackendState {
    /// Its labels in metrics.
    pub(super) fn labels<'a>(
        &'a self,
        more: Option<(&'static str, &'a str)>,
    ) -> Vec<(&'static str, &'a str)> {
        let pool = self.pool.as_deref().map(|pool| ("pool", pool));
        std::iter::once(("backend", &*self.backend.name)).chain(pool).chain(more).collect()
    }

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
        self.backend.connections() as u64
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
