//! A pool: back-ends with one policy, and all that decides which of them takes a request.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use arc_swap::ArcSwap;
use plimsoll_config::{Config, PoolName, StickyConfig};
use plimsoll_policy::{BackendId, Health};

use crate::backend::Backend;
use crate::backend::signs::Worsened;
use crate::dispatch::{BuildFailed, PartitionedDispatch};
use crate::http::target_hash::TargetHash;
use crate::membership::members::{self, Members};
use crate::membership::source::MemberSpec;
use crate::retry_budget::{PoolLoad, PoolRetries, RetryCounts};
use crate::sessions::SessionTable;
use crate::slowness::SlowBackends;
use crate::weight_course::ShapedWeights;

/// Back-ends with one policy.
pub(crate) struct BackendPool {
    /// Tells pools apart, also from those that are there no more: 0 is that of the back-ends that name none.
    pub(crate) number: u32,
    pub(crate) dispatch: PartitionedDispatch,
    /// The back-ends by the index of their id.
    pub(crate) backends: ArcSwap<Vec<Arc<Backend>>>,
    /// The configuration as this pool has it.
    pub(crate) config: ArcSwap<Config>,
    /// Held while back-ends come, go or change, so that it is one change at a time.
    pub(crate) membership: Mutex<()>,
    /// How targets and clients are identified.
    pub(crate) hash: TargetHash,
    /// Tells whoever waits that a back-end has just gone down, so that it is looked at again soon.
    pub(crate) suspected: tokio::sync::Notify,
    /// Held while back-ends are ejected or readmitted, so that two at once are not more than may be.
    pub(crate) ejecting: Mutex<()>,
    /// Whether a back-end may be ejected, so that requests look for one on trial.
    pub(crate) any_ejected: AtomicBool,
    /// Whether a back-end is down and in doubt.
    pub(crate) any_doubtful: AtomicBool,
    /// How many retries there were and may be.
    retries: Mutex<PoolRetries>,
    /// Which back-ends are slow.
    pub(crate) slowness: Mutex<SlowBackends>,
    /// Weights that differ for a while.
    pub(crate) weights: Mutex<ShapedWeights>,
    /// What stands for its back-ends in cookies.
    sessions: ArcSwap<SessionTable>,
    /// Whether a reload has removed it.
    leaving: AtomicBool,
    /// The configurations under which routes lead to it, and requests by them are.
    routed: Mutex<Vec<Weak<Config>>>,
    name: PoolName,
    /// Threads that serve clients.
    pub(crate) workers: usize,
}

/// The number of the pool of the back-ends that name none.
pub(crate) const FIRST_POOL: u32 = 0;

impl BackendPool {
    /// A pool that begins with these back-ends, all of which are up that have an address.
    ///
    /// # Errors
    /// When the policy cannot be built or a decision log cannot be opened.
    pub(crate) fn new(
        (number, name): (u32, &str),
        config: Config,
        hash: TargetHash,
        members: &[MemberSpec],
    ) -> Result<Arc<Self>, BuildFailed> {
        let dispatch = PartitionedDispatch::new(&config, members, hash.table_seed())?;
        let workers = config.workers;
        let backend = |(i, spec)| Arc::new(members::backend(number, BackendId::new(i), spec, workers));
        let backends: Vec<_> = members.iter().enumerate().map(backend).collect();
        for backend in backends.iter().filter(|b| b.address.is_err()) {
            dispatch.set_health(backend.id, backend.health());
        }
        Ok(Arc::new(Self {
            number,
            dispatch,
            backends: ArcSwap::from_pointee(backends),
            config: ArcSwap::from_pointee(config),
            membership: Mutex::default(),
            hash,
            suspected: tokio::sync::Notify::new(),
            ejecting: Mutex::default(),
            any_ejected: AtomicBool::new(false),
            any_doubtful: AtomicBool::new(false),
            retries: Mutex::default(),
            slowness: Mutex::default(),
            weights: Mutex::default(),
            sessions: ArcSwap::default(),
            leaving: AtomicBool::new(false),
            routed: Mutex::default(),
            name: name.into(),
            workers,
        }))
    }

    /// The back-end of this id.
    pub(crate) fn backend(&self, b: BackendId) -> Option<Arc<Backend>> {
        self.backends.load().get(b.index()).cloned()
    }

    /// The back-end that a session has whose cookie says this.
    pub(crate) fn session_backend(&self, token: u64, sticky: &StickyConfig) -> Option<BackendId> {
        self.session_table(sticky).backend(token)
    }

    /// What stands for its back-ends in cookies.
    pub(crate) fn session_table(&self, sticky: &StickyConfig) -> Arc<SessionTable> {
        let backends = self.backends.load();
        let table = self.sessions.load_full();
        if table.is_of(&backends, sticky) {
            return table;
        }
        let fresh = Arc::new(SessionTable::new(&backends, sticky));
        self.sessions.store(Arc::clone(&fresh));
        fresh
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether a reload has removed it.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// A route leads to it under this configuration.
    pub(crate) fn lead_here(&self, config: &Arc<Config>) {
        let mut routed = self.routed.lock().unwrap_or_else(PoisonError::into_inner);
        if routed.len() == routed.capacity() {
            routed.retain(|earlier| earlier.strong_count() > 0);
        }
        routed.push(Arc::downgrade(config));
    }

    /// Whether a route leads to it, or a request that a route has taken is under way, be it that it has not come here yet.
    pub(crate) fn is_led_to(&self) -> bool {
        let routed = self.routed.lock().unwrap_or_else(PoisonError::into_inner);
        routed.iter().any(|config| config.strong_count() > 0)
    }

    /// A reload removes it. Returns whether one had before.
    pub(crate) fn leave(&self) -> bool {
        self.leaving.swap(true, Ordering::Relaxed)
    }

    /// Its back-ends, to be changed by whoever holds `membership`.
    pub(crate) fn members(&self) -> Members<'_> {
        let Self { dispatch, backends, weights, workers, number, .. } = self;
        Members { dispatch, backends, weights, workers: *workers, pool: *number }
    }

    /// Whether a request that has failed may be sent to another back-end, as far as the budget goes, which then has one less.
    pub(crate) fn may_retry(&self) -> bool {
        let load = self.load();
        self.lock_retries().take(load, Instant::now(), &self.config.load().retry_budget)
    }

    /// A request is sent to another back-end that has cost the first one nothing.
    pub(crate) fn retries_free(&self) {
        self.lock_retries().take_free();
    }

    /// How many retries there were, and may be.
    pub(crate) fn retries(&self) -> RetryCounts {
        let load = self.load();
        self.lock_retries().counts(load, Instant::now(), &self.config.load().retry_budget)
    }

    /// Notes how many requests there were, for the budget of retries. Called from time to time.
    pub(crate) fn note_requests(&self, now: Instant) {
        let load = self.load();
        self.lock_retries().note(load, now);
    }

    fn load(&self) -> PoolLoad {
        PoolLoad { assigned: self.dispatch.assigned(), under_way: self.dispatch.load() }
    }

    fn lock_retries(&self) -> MutexGuard<'_, PoolRetries> {
        self.retries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a sign that a back-end works: counts it, and tells dispatch when it is up by that.
    pub(crate) fn good_sign(&self, backend: &Arc<Backend>) {
        match backend.good_sign(self.config.load().health.rise) {
            Some(health) if self.is_there(backend) => {
                let drained = if health == Health::Draining { ", and drained" } else { "" };
                tracing::info!(backend = &*backend.name, "back-end is up{drained}");
                self.begins_slowly(backend, Instant::now());
                self.health_changed(backend);
            }
            _ => {}
        }
    }

    /// Takes a sign that a back-end does not work, doubtful or certain, and the reason: counts it, and tells dispatch when it is down by
    /// that.
    pub(crate) fn bad_sign(&self, backend: &Arc<Backend>, why: &dyn fmt::Display, doubtful: bool) {
        let worsened = backend.bad_sign(self.config.load().health.fall, doubtful);
        if worsened.is_some() && self.is_there(backend) {
            let name = &*backend.name;
            match (worsened, doubtful) {
                (Some(Worsened::WentDown), _) => tracing::warn!(backend = name, %why, "back-end is down"),
                (_, true) => tracing::info!(backend = name, %why, "back-end is down, perhaps busy"),
                (_, false) => tracing::warn!(backend = name, %why, "back-end is down for certain"),
            }
            self.any_doubtful.fetch_or(doubtful, Ordering::Relaxed);
            self.health_changed(backend);
        }
    }

    fn health_changed(&self, backend: &Backend) {
        self.tell_health(backend);
        self.suspected.notify_waiters();
    }

    /// Tells dispatch how a back-end is, and readmits ejected ones where that asks for it.
    pub(crate) fn tell_health(&self, backend: &Backend) {
        // Before dispatch hears that it is down: its policy would forget what it knows of it.
        self.look_after_doubtful();
        self.pass_health(backend);
        self.readmit_those_due(Instant::now());
    }

    /// Tells dispatch how a back-end is. Whoever comes last with two changes at once tells the later one.
    pub(crate) fn pass_health(&self, backend: &Backend) {
        // Each further round is for a change that happened meanwhile.
        for _ in 0..16 {
            let health = backend.health();
            self.dispatch.set_health(backend.id, health);
            if backend.health() == health {
                break;
            }
        }
    }

    /// Whether a back-end is configured, as it is or as it was before a reload.
    pub(crate) fn is_there(&self, backend: &Backend) -> bool {
        let backends = self.backends.load();
        backends.get(backend.id.index()).is_some_and(|now| !now.is_retired() && now.is_same(backend))
    }
}

#[cfg(test)]
impl BackendPool {
    /// The back-end of this index.
    pub(crate) fn nth(&self, index: usize) -> Arc<Backend> {
        Arc::clone(&self.backends.load()[index])
    }
}
