//! Which back-ends in doubt take requests: those of which no other one could take the place.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::backend::Backend;
use crate::backend_pool::BackendPool;
use crate::partitioning::PartitionSet;

impl BackendPool {
    /// Has back-ends in doubt take requests where no other one does, and no longer where one does. Called from time to time, and whenever
    /// something has changed.
    pub(crate) fn look_after_doubtful(&self) {
        if !self.any_doubtful.load(Ordering::Relaxed) {
            return;
        }
        // Who looks last has seen most.
        let _one = self.lock_ejecting();
        self.settle_doubtful();
    }

    /// The partitions of which a back-end takes requests that is neither ejected nor in doubt.
    pub(crate) fn served(&self, backends: &[Arc<Backend>]) -> PartitionSet {
        let takes =
            |b: &&Arc<Backend>| !b.is_retired() && b.is_able() && !b.is_ejected() && self.has_weight(b);
        backends
            .iter()
            .filter(takes)
            .fold(PartitionSet::NONE, |served, b| served.with(self.dispatch.held(b.id)))
    }

    /// Whether a back-end holds a partition of which none of those takes requests.
    pub(crate) fn is_wanted(&self, backend: &Backend, served: PartitionSet) -> bool {
        let held = self.dispatch.held(backend.id);
        held.and(served) != held && self.has_weight(backend)
    }

    /// The same as [`Self::look_after_doubtful`], by whom holds the lock.
    pub(crate) fn settle_doubtful(&self) {
        // Whoever comes to be in doubt from here on sets it again.
        self.any_doubtful.store(false, Ordering::SeqCst);
        let backends = self.backends.load();
        let served = self.served(&backends);
        let mut any = false;
        for backend in backends.iter().filter(|b| !b.is_retired() && b.is_doubtful()) {
            any = true;
            let alone = !backend.is_drained() && self.is_wanted(backend, served);
            if backend.stand_in(alone) {
                if alone {
                    tracing::warn!(
                        backend = &*backend.name,
                        "no other back-end takes requests: it gets them though its health checks fail (`health.path` and `health.timeout` say what is asked)"
                    );
                }
                self.pass_health(backend);
            }
        }
        self.any_doubtful.fetch_or(any, Ordering::Relaxed);
    }
}
