//! Which back-ends are ejected, and which of them are readmitted: what no back-end knows alone.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_config::EjectionConfig;
use plimsoll_policy::Weight;

use crate::backend::Backend;
use crate::backend_pool::BackendPool;
use crate::ejection::{EjectionChange, TrialEnd};
use crate::partitioning::PartitionSet;
use crate::slowness::SlowBackend;

impl BackendPool {
    /// Counts a request that was sent to this back-end at the time `sent` and failed there, and ejects the back-end where
    /// that is due and may be.
    pub(crate) fn attempt_failed(&self, backend: &Arc<Backend>, sent: Instant, now: Instant) {
        if backend.attempt_failed(sent, now, &self.config.load().ejection) && self.is_there(backend) {
            self.eject(backend, None, now);
        }
    }

    /// Ejects the slowest back-end, where it is too slow. Called from time to time.
    pub(crate) fn look_for_slow(&self, now: Instant) {
        let config = self.config.load();
        if config.ejection.slow_ratio == 0 {
            return;
        }
        let by_content = config.policy.spec.capabilities.content_needed().is_some();
        let backends = self.backends.load();
        let takes = |b: &&Arc<Backend>| !b.is_retired() && b.is_able() && !b.is_ejected();
        let all: Vec<_> = backends.iter().filter(takes).map(|b| (b.id, b.first_bytes())).collect();
        let mut slowness = self.slowness.lock().unwrap_or_else(PoisonError::into_inner);
        let found = slowness.look(&all, by_content, now, &config.ejection);
        if let Some((slow, backend)) = found.and_then(|slow| Some((slow, self.backend(slow.backend)?))) {
            self.eject(&backend, Some(slow), now);
        }
    }

    fn eject(&self, backend: &Backend, slow: Option<SlowBackend>, now: Instant) {
        let _one = self.lock_ejecting();
        let config = self.config.load();
        let backends = self.backends.load();
        let ejected = backends.iter().filter(|b| !b.is_retired() && b.is_ejected()).count();
        let may = ejected < most_ejected(&backends, &config.ejection);
        let others = self.dispatch.others_can_do_without(backend.id);
        if !may || !others || backend.is_ejected() || backend.is_doubtful() {
            return;
        }
        match slow {
            None => backend.eject(now, &config.ejection),
            Some(slow) => backend.eject_slow(Duration::from_micros(slow.limit_us), now, &config.ejection),
        }
        self.any_ejected.store(true, Ordering::Relaxed);
        count_ejection(backend);
        match slow {
            None => {
                tracing::warn!(backend = &*backend.name, "back-end is ejected: it failed too many requests");
            }
            Some(SlowBackend { is_us, limit_us, .. }) => tracing::warn!(
                backend = &*backend.name,
                "back-end is ejected: its first byte takes {} ms or more, where those of the others allow {} ms",
                is_us / 1000,
                limit_us / 1000
            ),
        }
        self.pass_health(backend);
        // Another one may have gone down in the same moment.
        self.settle(now);
    }

    /// A back-end to which the next request for this partition may be sent on trial, and the number of that trial, which is then under way.
    pub(crate) fn begin_trial(&self, partition: u16, now: Instant) -> Option<(Arc<Backend>, u64)> {
        if !self.any_ejected.load(Ordering::Relaxed) {
            return None;
        }
        let backends = self.backends.load();
        let due = backends.iter().filter(|b| !b.is_retired() && b.is_trial_due(now) && self.has_weight(b));
        due.filter(|b| self.dispatch.held(b.id).has(partition))
            .find_map(|b| Some((Arc::clone(b), b.begin_trial(now)?)))
    }

    /// The trial of this number has ended.
    pub(crate) fn end_trial(&self, backend: &Backend, number: u64, end: TrialEnd, now: Instant) {
        match backend.end_trial(number, end, now, &self.config.load().ejection) {
            Some(EjectionChange::Ejected) => count_ejection(backend),
            Some(EjectionChange::Readmitted) if self.is_there(backend) => {
                tracing::info!(backend = &*backend.name, "back-end is back: it answered its trials");
                self.begins_slowly(backend, now);
                self.tell_health(backend);
            }
            _ => {}
        }
    }

    /// Readmits ejected back-ends where their time is over, or where they are more than may be. Called from time to time,
    /// and whenever something has changed.
    pub(crate) fn look_after_ejected(&self, now: Instant) {
        self.look_after_doubtful();
        self.readmit_those_due(now);
    }

    /// The same, where back-ends in doubt have been looked after.
    pub(crate) fn readmit_those_due(&self, now: Instant) {
        if self.any_ejected.load(Ordering::Relaxed) {
            let _one = self.lock_ejecting();
            self.settle(now);
        }
    }

    /// The same, by whom holds the lock.
    fn settle(&self, now: Instant) {
        let config = self.config.load();
        let backends = self.backends.load();
        let mut ejected: Vec<&Backend> = Vec::new();
        for backend in backends.iter().filter(|b| !b.is_retired() && b.is_ejected()) {
            if config.ejection.failures == 0 && !backend.is_slow() {
                self.readmit(backend, now, "none is to be ejected any more");
            } else if backend.is_ejection_over(now) {
                self.readmit(backend, now, "its time is over, and no trial says that it fails");
            } else {
                ejected.push(backend);
            }
        }
        // Those go first whose time is over first.
        ejected.sort_by_key(|b| b.trials_from());
        let beyond = ejected.len().saturating_sub(most_ejected(&backends, &config.ejection));
        for backend in ejected.drain(..beyond) {
            self.readmit(backend, now, "the share of ejected ones has become too large");
        }
        // Rather one that has failed requests than one that answers nothing in time.
        let is_bare = !ejected.is_empty()
            && (self.dispatch.bare() != PartitionSet::NONE || self.any_doubtful.load(Ordering::Relaxed));
        if is_bare {
            let served = self.served(&backends);
            for backend in ejected.extract_if(.., |b| b.is_able() && self.is_wanted(b, served)) {
                self.readmit(backend, now, "no other one takes requests");
            }
            self.settle_doubtful();
        }
        self.any_ejected.store(!ejected.is_empty(), Ordering::Relaxed);
    }

    fn readmit(&self, backend: &Backend, now: Instant, why: &str) {
        backend.readmit(now);
        self.begins_slowly(backend, now);
        tracing::info!(backend = &*backend.name, "back-end is no longer ejected: {why}");
        self.pass_health(backend);
    }

    pub(crate) fn has_weight(&self, backend: &Backend) -> bool {
        self.dispatch.inspect_members(|i| i.view.weight(backend.id) != Weight::ZERO)
    }

    pub(crate) fn lock_ejecting(&self) -> MutexGuard<'_, ()> {
        self.ejecting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many of these may be ejected at once.
fn most_ejected(backends: &[Arc<Backend>], config: &EjectionConfig) -> usize {
    let there = backends.iter().filter(|b| !b.is_retired()).count();
    there * usize::from(config.most_permille) / 1000
}

fn count_ejection(backend: &Backend) {
    backend.counts[backend.counts.len() - 1].ejections.add(1);
}

#[cfg(test)]
mod tests;
