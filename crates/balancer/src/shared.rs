//! The state that all threads of the front-end share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwap;
use plimsoll_config::Config;
use plimsoll_policy::Health;

use crate::access_log::AccessLogSender;
use crate::backend::Backend;
use crate::dispatch::Dispatch;
use crate::metrics::WorkerCounts;
use crate::net::places::Places;
use crate::peers::Peers;

/// The state that all workers share.
pub(crate) struct FrontEndShared {
    pub(crate) dispatch: Arc<Dispatch>,
    /// The back-ends by the index of their id.
    pub(crate) backends: ArcSwap<Vec<Arc<Backend>>>,
    pub(crate) config: ArcSwap<Config>,
    pub(crate) access_log: AccessLogSender,
    /// By worker.
    pub(crate) counts: Box<[WorkerCounts]>,
    /// Places for connections of clients.
    pub(crate) places: Arc<Places>,
    /// Tells whoever waits that a back-end has just gone down, so that it is looked at again soon.
    pub(crate) suspected: tokio::sync::Notify,
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
}
