//! Which back-ends in doubt take requests: those of which no other one could take the place.

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
        let backends = self.backends.load();
        let there: Vec<&Backend> = backends.iter().map(|b| &**b).filter(|b| !b.is_retired()).collect();
        let takes = |b: &&&Backend| b.is_able() && !b.is_ejected() && self.has_weight(b);
        let served = there.iter().filter(takes).map(|b| self.dispatch.held(b.id));
        let served = served.fold(PartitionSet::NONE, PartitionSet::with);
        let mut any = false;
        for backend in there.into_iter().filter(|b| b.is_doubtful()) {
            any = true;
            let held = self.dispatch.held(backend.id);
            let alone = held.and(served) != held && !backend.is_drained() && self.has_weight(backend);
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
        self.any_doubtful.store(any, Ordering::Relaxed);
    }
}
