//! The state that all threads of the front-end share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use arc_swap::ArcSwap;
use plimsoll_config::Config;
use plimsoll_policy::Health;

use crate::access_log::AccessLogSender;
use crate::backend::Backend;
use crate::dispatch::Dispatch;
use crate::ejection::{EjectionChange, TrialEnd};
use crate::http::target_hash::TargetHash;
use crate::metrics::WorkerCounts;
use crate::net::places::Places;
use crate::peers::Peers;

/// The state that all workers share.
pub(crate) struct FrontEndShared {
    pub(crate) dispatch: Arc<Dispatch>,
    /// The back-ends by the index of their id.
    pub(crate) backends: ArcSwap<Vec<Arc<Backend>>>,
    pub(crate) config: ArcSwap<Config>,
    /// How targets and clients are identified.
    pub(crate) hash: TargetHash,
    pub(crate) access_log: AccessLogSender,
    /// By worker.
    pub(crate) counts: Box<[WorkerCounts]>,
    /// Accepted connections for which there is no place yet.
    pub(crate) room_wanted: AtomicUsize,
    /// The number of places.
    pub(crate) connections_limit: AtomicUsize,
    /// Places for connections of clients.
    pub(crate) places: Arc<Places>,
    /// Tells whoever waits that a back-end has just gone down, so that it is looked at again soon.
    pub(crate) suspected: tokio::sync::Notify,
    /// Held while one back-end is ejected, so that two at once are not more than may be.
    pub(crate) ejecting: Mutex<()>,
    /// Whether a back-end may be ejected, so that requests look for one on trial.
    pub(crate) any_ejected: AtomicBool,
    /// Set when the front-end begins to stop.
    pub(crate) stopping: AtomicBool,
    /// Front-ends beside this one.
    pub(crate) peers: Option<Arc<Peers>>,
}

impl FrontEndShared {
    /// Takes a sign of a back-end's health: counts it, and tells dispatch when that changes its state.
    pub(crate) fn sign(&self, backend: &Arc<Backend>, good: bool) {
        let health = &self.config.load().health;
        let changed = if good { backend.good_sign(health.rise) } else { backend.bad_sign(health.fall) };
        if let Some(health) = changed
            && !backend.is_retired()
        {
            match health {
                Health::Down => tracing::warn!(backend = &*backend.name, "back-end is down"),
                Health::Up => tracing::info!(backend = &*backend.name, "back-end is up"),
                Health::Draining => tracing::info!(backend = &*backend.name, "back-end is up, and drained"),
            }
            self.tell_health(backend);
            self.suspected.notify_waiters();
        }
    }

    /// Tells dispatch how a back-end is. Whoever comes last with two changes at once tells the later one.
    pub(crate) fn tell_health(&self, backend: &Backend) {
        // Each further round is for a change that happened meanwhile.
        for _ in 0..16 {
            let health = backend.health();
            self.dispatch.set_health(backend.id, health);
            if backend.health() == health {
                break;
            }
        }
    }

    /// Counts a request that failed at this back-end, and ejects it where that is due and may be.
    pub(crate) fn attempt_failed(&self, backend: &Arc<Backend>) {
        let now = Instant::now();
        if backend.attempt_failed(now, &self.config.load().ejection) && !backend.is_retired() {
            self.eject(backend, now);
        }
    }

    fn eject(&self, backend: &Arc<Backend>, now: Instant) {
        let _one = self.ejecting.lock().unwrap_or_else(PoisonError::into_inner);
        let config = self.config.load();
        let backends = self.backends.load();
        let there = backends.iter().filter(|b| !b.is_retired()).count();
        let ejected = backends.iter().filter(|b| !b.is_retired() && b.is_ejected()).count();
        let may = (ejected + 1) * 1000 <= there * usize::from(config.ejection.most_permille);
        let another = self.dispatch.inspect(|i| i.view.eligible_ids().any(|b| b != backend.id));
        if !may || !another || backend.is_ejected() {
            return;
        }
        backend.eject(now, &config.ejection);
        self.any_ejected.store(true, Ordering::Relaxed);
        self.count_ejection(backend);
        tracing::warn!(backend = &*backend.name, "back-end is ejected: it failed too many requests");
        self.tell_health(backend);
    }

    /// A back-end to which the next request may be sent on trial, which is then under way.
    pub(crate) fn begin_trial(&self) -> Option<Arc<Backend>> {
        if !self.any_ejected.load(Ordering::Relaxed) {
            return None;
        }
        let now = Instant::now();
        self.backends.load().iter().find(|b| !b.is_retired() && b.begin_trial(now)).cloned()
    }

    /// A trial has ended.
    pub(crate) fn end_trial(&self, backend: &Arc<Backend>, end: TrialEnd) {
        let changed = backend.end_trial(end, Instant::now(), &self.config.load().ejection);
        match changed {
            Some(EjectionChange::Ejected) => self.count_ejection(backend),
            Some(EjectionChange::Readmitted) if !backend.is_retired() => {
                tracing::info!(backend = &*backend.name, "back-end is back: it answered its trials");
                self.tell_health(backend);
            }
            _ => {}
        }
    }

    /// Looks whether any back-end is ejected.
    pub(crate) fn look_for_ejected(&self) {
        let any = self.backends.load().iter().any(|b| b.is_ejected());
        self.any_ejected.store(any, Ordering::Relaxed);
    }

    fn count_ejection(&self, backend: &Backend) {
        backend.counts[backend.counts.len() - 1].ejections.add(1);
    }
}
