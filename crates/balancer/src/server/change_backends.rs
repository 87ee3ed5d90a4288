//! The back-ends that a reload changes: those that join, move, come back or depart.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll_config::Config;
use plimsoll_policy::{BackendId, Health};

use super::{Addresses, Balancer, backend};
use crate::backend::Backend;

/// Back-ends that are remembered at least, departed ones included, before others get their indices.
const KEPT_INDICES: usize = 1024;

impl Balancer {
    /// Indices of departed back-ends, one for each that joins beyond [`KEPT_INDICES`]. The others keep theirs, and with it
    /// their counters, for the case that they come back.
    fn free_indices(&self, backends: &[Arc<Backend>], new: &Config) -> VecDeque<BackendId> {
        let is_new = |name: &str| new.backends.iter().any(|c| *c.name == *name);
        let known = backends.iter().filter(|b| is_new(&b.name)).count();
        let wanted = backends.len() + new.backends.len() - known;
        let beyond = wanted.saturating_sub(KEPT_INDICES.max(2 * new.backends.len()));
        let departed = backends.iter().filter(|b| b.is_retired() && !is_new(&b.name));
        self.shared.dispatch.release(departed.map(|b| b.id).take(beyond)).into()
    }

    pub(super) fn change_backends(&self, old: &Config, new: &Config, addresses: &[Addresses]) {
        let shared = &self.shared;
        let mut backends: Vec<Arc<Backend>> = shared.backends.load().to_vec();
        let mut free = self.free_indices(&backends, new);
        let find =
            |backends: &[Arc<Backend>], name: &str| backends.iter().find(|b| *b.name == *name).map(|b| b.id);
        let mut joined = Vec::new();
        for (config, &at) in new.backends.iter().zip(addresses) {
            let id = find(&backends, &config.name);
            let id_or_next = id.or_else(|| free.front().copied()).unwrap_or(BackendId::new(backends.len()));
            let new_one = |id| backend(id, config, at, self.workers.len());
            match id.map(|id| &mut backends[id.index()]) {
                None => {
                    let next = Arc::new(new_one(id_or_next));
                    match free.pop_front() {
                        Some(free) => backends[free.index()] = next,
                        None => backends.push(next),
                    }
                    joined.push(config);
                }
                Some(known)
                    if known.is_retired()
                        || known.address != at.address
                        || known.agent != at.agent
                        || known.max_connections != config.max_connections =>
                {
                    let moved = known.is_retired() || known.address != at.address;
                    let next = Arc::new(new_one(id_or_next).succeeding(known));
                    known.retire();
                    *known = next;
                    // With another limit only, it is as healthy as it was, and as drained.
                    if moved {
                        joined.push(config);
                    } else {
                        shared.dispatch.set_weight(known.id, config.weight);
                    }
                }
                Some(known) => {
                    let before = old.backends.iter().find(|b| b.name == config.name).map(|b| b.weight);
                    if before != Some(config.weight) {
                        shared.dispatch.set_weight(known.id, config.weight);
                    }
                }
            }
        }
        // The table of back-ends comes first: dispatch must not choose what is not in it.
        shared.backends.store(Arc::new(backends.clone()));
        for config in joined {
            // The number of back-ends was checked before.
            if let Err(full) = shared.dispatch.join(&config.name, config.weight) {
                tracing::error!(backend = &*config.name, %full, "a back-end cannot join");
            }
        }
        for gone in backends.iter().filter(|b| !new.backends.iter().any(|c| c.name == b.name)) {
            if !gone.is_retired() {
                gone.retire();
                shared.dispatch.set_health(gone.id, Health::Draining);
            }
        }
    }
}
