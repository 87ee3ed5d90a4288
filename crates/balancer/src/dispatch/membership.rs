//! Membership of the cluster: joins, health, weights; and replacing the policy.

use std::sync::Arc;

use plimsoll_config::{BackendName, Config};
use plimsoll_policy::{BackendId, ClusterFull, Health, LruMap, Policy, Weight};

use super::member::{Member, key_of};
use super::{BuildFailed, Dispatch, build, journal};

/// What a configuration needs that takes the place of another one.
pub(crate) struct BuiltAnew {
    policy: Box<dyn Policy>,
    shadow: Option<Box<dyn Policy>>,
    log: Option<plimsoll_decisions::LogWitness>,
}

impl Dispatch {
    /// Sets a back-end's health.
    pub(crate) fn set_health(self: &Arc<Self>, b: BackendId, health: Health) {
        let mut state = self.lock();
        if state.core.view().health(b) == health {
            return;
        }
        let now = self.now(&mut state);
        state.core.set_health(b, health, now);
        self.serve_waiting(state, now);
    }

    /// Sets a back-end's weight.
    pub(crate) fn set_weight(self: &Arc<Self>, b: BackendId, weight: Weight) {
        let mut state = self.lock();
        if state.core.view().weight(b) == weight {
            return;
        }
        let now = self.now(&mut state);
        state.core.set_weight(b, weight, now);
        self.serve_waiting(state, now);
    }

    /// Sets how many requests a back-end may have at once.
    pub(crate) fn set_most_requests(self: &Arc<Self>, b: BackendId, most: Option<u32>) {
        let mut state = self.lock();
        if state.core.view().most_requests(b) == most {
            return;
        }
        let now = self.now(&mut state);
        state.core.set_most_requests(b, most, now);
        self.serve_waiting(state, now);
    }

    /// Adds a back-end of this health, or restores one of this name that was drained and has not left. One that is not up gets
    /// none of the requests that wait.
    ///
    /// # Errors
    /// When there are as many back-ends as there can be.
    pub(crate) fn join(
        self: &Arc<Self>,
        name: &BackendName,
        weight: Weight,
        health: Health,
    ) -> Result<BackendId, ClusterFull> {
        let mut state = self.lock();
        let known = state.members.iter().find(|m| m.name == *name && !state.core.view().has_left(m.id));
        let known = known.map(|m| m.id);
        let now = self.now(&mut state);
        let id = match known {
            Some(id) => id,
            None => {
                let key = key_of(name);
                let id = state.core.join(name, key, weight, now)?;
                state.fresh.forget(id);
                state.silent.remove(&id);
                let member = Member { id, name: Arc::clone(name), key };
                match state.members.get_mut(id.index()) {
                    Some(left) => *left = member,
                    None => state.members.push(member),
                }
                id
            }
        };
        if state.core.view().weight(id) != weight {
            state.core.set_weight(id, weight, now);
        }
        if state.core.view().health(id) != health {
            state.core.set_health(id, health, now);
        }
        self.serve_waiting(state, now);
        Ok(id)
    }

    /// Removes idle ones of `departed`, at most `most`, which frees their indices. Returns the free indices in the order
    /// in which [`Dispatch::join`] reuses them.
    #[cfg(test)]
    pub(crate) fn release(
        self: &Arc<Self>,
        departed: impl Iterator<Item = BackendId>,
        most: usize,
    ) -> Vec<BackendId> {
        Self::release_from(std::slice::from_ref(self), departed, most)
    }

    /// The same in all of these partitions at once: those leave that are idle in each, so that indices stay the same.
    pub(super) fn release_from(
        parts: &[Arc<Self>],
        departed: impl Iterator<Item = BackendId>,
        most: usize,
    ) -> Vec<BackendId> {
        let mut states: Vec<_> = parts.iter().map(|part| part.lock()).collect();
        let times: Vec<_> = parts.iter().zip(&mut states).map(|(part, state)| part.now(state)).collect();
        let mut left = 0;
        for b in departed {
            if left == most {
                break;
            }
            if states.iter().all(|state| state.core.view().own_load(b) == 0) {
                let leaves = states.iter_mut().zip(&times).map(|(state, &now)| state.core.leave(b, now));
                left += usize::from(leaves.fold(false, |any, one| any | one));
            }
        }
        let free = states.first().map(|state| state.core.view().left_ids().collect());
        // Whoever is served may end requests of other partitions.
        drop(states);
        for part in parts {
            let mut state = part.lock();
            let now = part.now(&mut state);
            part.serve_waiting(state, now);
        }
        free.unwrap_or_default()
    }

    /// How many back-ends there would be with these as well; there is room for 65,535.
    pub(crate) fn members_with<'a>(&self, names: impl Iterator<Item = &'a BackendName>) -> usize {
        let state = self.lock();
        let there = state.members.iter().filter(|m| !state.core.view().has_left(m.id));
        let known: std::collections::BTreeSet<&str> = there.map(|m| &*m.name).collect();
        known.len() + names.filter(|name| !known.contains(&***name)).count()
    }

    /// Applies another configuration's policy, admission, sizes, shadow policy and decision log.
    ///
    /// # Errors
    /// When something cannot be built; nothing has changed then.
    #[cfg(test)]
    pub(crate) fn reconfigure(self: &Arc<Self>, old: &Config, new: &Config) -> Result<(), BuildFailed> {
        let built = self.build_anew(old, new)?;
        self.apply(built, old, new);
        Ok(())
    }

    /// What another configuration needs, built before anything is changed: all that may fail, or wait for the disk.
    ///
    /// # Errors
    /// When something cannot be built.
    pub(super) fn build_anew(&self, old: &Config, new: &Config) -> Result<BuiltAnew, BuildFailed> {
        let policy = build::policy(new, self.table_seed)?;
        let shadow = build::shadow(new, self.table_seed)?;
        let new_log = old.decision_log != new.decision_log;
        let part = self.lock().part;
        let log = if new_log { journal::open_log(new, part)? } else { None };
        Ok(BuiltAnew { policy, shadow, log })
    }

    /// Applies another configuration with what was built for it.
    pub(super) fn apply(self: &Arc<Self>, built: BuiltAnew, old: &Config, new: &Config) {
        let BuiltAnew { policy, shadow, log } = built;
        let new_log = old.decision_log != new.decision_log;
        // A replay starts with a policy that has seen nothing, so with another log the policy begins anew as well.
        let new_policy = old.policy != new.policy || new_log || build::other_classes(&new.policy, old, new);
        let classes_of_shadow =
            new.shadow.as_ref().is_some_and(|s| build::other_classes(&s.policy, old, new));

        let mut state = self.lock();
        let now = self.now(&mut state);
        let closed = if new_log { state.core.witness_mut().replace_log(log) } else { None };
        let admission = build::admission(new);
        if new_policy {
            // Whoever is polled for waits again.
            state.polled.clear();
            state.core.set_inquiries(build::inquiries(new));
            if state.part.is_first() {
                build::warn_of_unused_loads(new);
            }
            state.core.replace_policy(policy, admission);
            state.start_run(new, now);
        } else if admission != state.core.admission() {
            state.core.set_admission(admission, now);
        }
        if new_policy || old.shadow != new.shadow || classes_of_shadow {
            state.start_shadow(shadow, new);
        }
        if old.target.sizes != new.target.sizes {
            state.sizes = LruMap::with_seed(state.part.share(new.target.sizes), self.table_seed);
        }
        if old.classes != new.classes && state.part.is_first() {
            build::warn_of_classes(new);
        }
        state.explain = build::wants_reasons(new);
        self.serve_waiting(state, now);
        if let Some(closed) = closed {
            closed.flush();
            self.lock().core.witness_mut().remember(&closed);
        }
    }
}
