//! Who is in the cluster: joins, health, weights, and a policy that takes another's place.

use std::sync::Arc;

use plimsoll_config::{BackendConfig, BackendName, Config};
use plimsoll_policy::{BackendId, Cluster, Health, LruMap, TargetId, Weight};

use super::{BuildFailed, Dispatch, State, build, journal};

/// A back-end as dispatch knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    pub(crate) id: BackendId,
    pub(crate) name: BackendName,
    pub(crate) key: u64,
}

impl Member {
    /// Adds a configured back-end to a cluster that no policy has seen.
    pub(super) fn join(cluster: &mut Cluster, config: &BackendConfig) -> Self {
        let key = key_of(&config.name);
        Self { id: cluster.join(config.weight, key), name: Arc::clone(&config.name), key }
    }
}

/// The identity of a back-end for policies that hash: depends on its name alone.
fn key_of(name: &str) -> u64 {
    TargetId::from_key(name.as_bytes()).0
}

impl Dispatch {
    /// The back-end is now in this state.
    pub(crate) fn set_health(self: &Arc<Self>, b: BackendId, health: Health) {
        let mut state = self.lock();
        if state.front_end.view().health(b) == health {
            return;
        }
        let now = self.now(&mut state);
        state.front_end.set_health(b, health, now);
        state.journal.health(b, health, now);
        self.serve_waiting(state, now);
    }

    /// The back-end now has this weight.
    pub(crate) fn set_weight(self: &Arc<Self>, b: BackendId, weight: Weight) {
        let mut state = self.lock();
        if state.front_end.view().weight(b) == weight {
            return;
        }
        let now = self.now(&mut state);
        state.front_end.set_weight(b, weight, now);
        state.journal.weight(b, weight, now);
        self.serve_waiting(state, now);
    }

    /// Adds a back-end, or takes back one of this name that had left.
    pub(crate) fn join(self: &Arc<Self>, name: &BackendName, weight: Weight) -> BackendId {
        let known = self.lock().members.iter().find(|m| m.name == *name).map(|m| m.id);
        if let Some(id) = known {
            self.set_weight(id, weight);
            self.set_health(id, Health::Up);
            return id;
        }
        let mut state = self.lock();
        let now = self.now(&mut state);
        let key = key_of(name);
        let id = state.front_end.join(weight, key, now);
        state.members.push(Member { id, name: Arc::clone(name), key });
        state.journal.joined(id, name, key, weight, now);
        self.serve_waiting(state, now);
        id
    }

    /// How many back-ends there would have been with these as well; there is room for 65,535.
    pub(crate) fn members_with<'a>(&self, names: impl Iterator<Item = &'a BackendName>) -> usize {
        let state = self.lock();
        let known: std::collections::BTreeSet<&str> = state.members.iter().map(|m| &*m.name).collect();
        known.len() + names.filter(|name| !known.contains(&***name)).count()
    }

    /// Takes over what another configuration says about policy, admission, sizes, shadow policy and decision log.
    ///
    /// # Errors
    /// When something cannot be built; nothing has changed then.
    pub(crate) fn reconfigure(self: &Arc<Self>, old: &Config, new: &Config) -> Result<(), BuildFailed> {
        // Everything that may fail or wait for the disk comes before the lock.
        let policy = build::policy(&new.policy)?;
        let shadow = build::shadow(new)?;
        let new_log = old.decision_log != new.decision_log;
        let log = if new_log { journal::open_log(new)? } else { None };
        // A replay starts with a policy that has seen nothing, so with another log the policy begins anew as well.
        let new_policy = old.policy != new.policy || new_log;

        let mut state = self.lock();
        let now = self.now(&mut state);
        let State { journal, front_end, members, epoch, .. } = &mut *state;
        let closed = if new_log { journal.replace_log(log) } else { None };
        if new_policy {
            front_end.replace_policy(policy, new.admission_limit());
            *epoch += 1;
            journal.start_run(new, front_end.view(), members, now);
        } else {
            front_end.set_admission(new.admission_limit());
        }
        if new_policy || old.shadow != new.shadow {
            journal.start_shadow(shadow, new, front_end.view(), members);
        }
        if old.target.sizes != new.target.sizes {
            state.sizes = LruMap::new(new.target.sizes);
        }
        state.queue_capacity = new.admission.queue;
        state.explain = build::wants_reasons(new);
        self.serve_waiting(state, now);
        if let Some(closed) = closed {
            closed.flush();
            self.lock().journal.remember(&closed);
        }
        Ok(())
    }
}
