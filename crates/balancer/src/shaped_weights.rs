//! Weights that differ from what they are set to for a while: of back-ends that begin slowly, and of those that are drained and keep
//! their sessions. The core sees plain changes of weights, so every policy follows them, and the decision log has them.

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use plimsoll_policy::{BackendId, Weight};

use crate::backend::Backend;
use crate::backend_pool::BackendPool;
use crate::weight_course::{Course, Shaped, ShapedWeights, locked};

impl BackendPool {
    /// Looks after weights that differ. Called from time to time, and whenever something has changed.
    pub(crate) fn look_after_weights(&self, now: Instant) {
        let mut weights = self.lock_weights();
        let backends = self.backends.load_full();
        match weights.known.replace(Arc::clone(&backends)) {
            Some(known) if !Arc::ptr_eq(&known, &backends) => {
                weights.shaped.retain(|_, shaped| self.is_there(&shaped.of));
                let is_known = |b: &Backend| known.get(b.id.index()).is_some_and(|known| known.is_same(b));
                let there = backends.iter().filter(|b| !b.is_retired());
                let (stay, new): (Vec<_>, Vec<_>) = there.partition(|b| is_known(b));
                // Beside none that was there before, all are whole.
                let new = new.iter().filter(|_| !stay.is_empty());
                new.for_each(|backend| self.begin(&mut weights, backend, now));
            }
            _ => {}
        }
        let shaped: Vec<BackendId> = weights.shaped.keys().copied().collect();
        for b in shaped {
            self.settle_weight(&mut weights, b, now);
        }
    }

    /// A back-end takes requests again: its weight grows from now on, where that is configured.
    pub(crate) fn begins_slowly(&self, backend: &Backend, now: Instant) {
        self.begin(&mut self.lock_weights(), backend, now);
    }

    fn begin(&self, weights: &mut ShapedWeights, backend: &Backend, now: Instant) {
        let time = self.config.load().health.slow_start;
        // A drained one keeps its course: it gets no new requests, however often it comes back.
        if time > Duration::ZERO && !backend.is_retired() && !backend.is_drained() {
            self.shape(weights, backend, Course::Begins { since: now, time }, now);
        }
    }

    /// An operator drains a back-end, or has it back. Where sessions are kept it gets no new ones at first, and no requests at
    /// all later.
    pub(crate) fn set_drained(&self, backend: &Backend, drained: bool, now: Instant) {
        let mut weights = self.lock_weights();
        let sessions = self.config.load().sticky.as_ref().map_or(Duration::ZERO, |sticky| sticky.drain);
        let keeps = drained && sessions > Duration::ZERO;
        backend.set_drained(drained);
        backend.set_keeps_sessions(keeps);
        if keeps {
            self.shape(&mut weights, backend, Course::KeepsSessions { until: now + sessions }, now);
        } else if let Some(shaped) = weights.shaped.remove(&backend.id).filter(|s| s.of.is_same(backend)) {
            self.dispatch.set_weight(backend.id, shaped.base);
        }
        drop(weights);
        self.tell_health(backend);
    }

    /// Sets the weight of a back-end; where it differs for a while, it is what it differs from.
    pub(crate) fn set_weight(&self, backend: &Backend, weight: Weight, now: Instant) {
        let mut weights = self.lock_weights();
        let b = backend.id;
        if weights.set(backend, weight) {
            self.settle_weight(&mut weights, b, now);
        } else {
            self.dispatch.set_weight(b, weight);
        }
    }

    fn shape(&self, weights: &mut ShapedWeights, backend: &Backend, course: Course, now: Instant) {
        let b = backend.id;
        let Some(of) = self.backend(b).filter(|of| of.is_same(backend)) else { return };
        let is = self.weight_in_force(b);
        let known = weights.shaped.get(&b).filter(|shaped| shaped.of.is_same(&of) && shaped.told == is);
        let base = known.map_or(is, |shaped| shaped.base);
        weights.shaped.insert(b, Shaped { of, base, told: is, course });
        self.settle_weight(weights, b, now);
    }

    fn settle_weight(&self, weights: &mut ShapedWeights, b: BackendId, now: Instant) {
        let Some(shaped) = weights.shaped.get_mut(&b) else { return };
        let is = self.weight_in_force(b);
        if is != shaped.told {
            // Somebody has set it meanwhile.
            shaped.base = is;
        }
        let (base, course) = (shaped.base, shaped.course);
        let weight = course.weight(base, now);
        shaped.told = weight.unwrap_or(base);
        self.dispatch.set_weight(b, shaped.told);
        if weight.is_none() {
            weights.shaped.remove(&b);
            let backend = self.backend(b).filter(|_| matches!(course, Course::KeepsSessions { .. }));
            if let Some(backend) = backend {
                backend.set_keeps_sessions(false);
                self.pass_health(&backend);
                tracing::info!(
                    backend = &*backend.name,
                    "back-end keeps its sessions no longer: it is drained"
                );
            }
        }
    }

    fn weight_in_force(&self, b: BackendId) -> Weight {
        self.dispatch.inspect_members(|i| i.view.weight(b))
    }

    fn lock_weights(&self) -> MutexGuard<'_, ShapedWeights> {
        locked(&self.weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::resolve::members_of;
    use crate::membership::source::{MembershipChange, MembershipSource};
    use crate::shared::FrontEndShared;

    fn at(start: Instant, s: f64) -> Instant {
        start + Duration::from_secs_f64(s)
    }

    #[test]
    fn a_weight_grows_in_steps() {
        let start = Instant::now();
        let course = Course::Begins { since: start, time: Duration::from_secs(10) };
        let of = |s| course.weight(Weight::ONE, at(start, s)).map(Weight::steps);
        assert_eq!((of(0.0), of(1.0), of(5.1)), (Some(26), Some(26), Some(128)));
        assert_eq!((of(9.99), of(10.0)), (Some(244), None));
        assert_eq!(course.weight(Weight::ZERO, start), Some(Weight::ZERO));
    }

    #[test]
    fn one_that_comes_back_begins_slowly_and_an_operators_weight_counts() {
        let shared = FrontEndShared::before_three("[health]\nprobe = \"none\"\nslow_start = \"10s\"\n");
        let (pool, start) = (&shared.first, Instant::now());
        let weight = || pool.weight_in_force(BackendId(0)).as_f64();
        pool.look_after_weights(start);
        assert!((weight() - 1.0).abs() < 1e-9, "those that are there at the start are whole");
        let backend = pool.nth(0);
        pool.bad_sign(&backend, &"it failed", false);
        pool.bad_sign(&backend, &"it failed", false);
        pool.good_sign(&backend);
        pool.good_sign(&backend);
        assert!(weight() < 0.11, "{}", weight());
        pool.look_after_weights(Instant::now() + Duration::from_secs(5));
        assert!((0.4..0.6).contains(&weight()), "{}", weight());
        pool.set_weight(&backend, Weight::new(4.0).unwrap(), Instant::now() + Duration::from_secs(5));
        assert!((1.6..2.4).contains(&weight()), "half of what it is now set to: {}", weight());
        pool.look_after_weights(Instant::now() + Duration::from_secs(11));
        assert!((weight() - 4.0).abs() < 1e-9);
    }

    struct Reweighted(Option<MembershipChange>);

    impl MembershipSource for Reweighted {
        fn changes(&mut self) -> Vec<MembershipChange> {
            self.0.take().into_iter().collect()
        }
    }

    #[test]
    fn a_weight_that_happens_to_be_that_of_a_step_is_not_taken_for_it() {
        let shared = FrontEndShared::before_three("[health]\nprobe = \"none\"\nslow_start = \"10s\"\n");
        let (pool, start) = (&shared.first, Instant::now());
        let (b, backend) = (BackendId(0), pool.nth(0));
        let of_step = || {
            pool.begins_slowly(&backend, start);
            pool.weight_in_force(b)
        };
        let after = |weight: Weight| {
            pool.look_after_weights(at(start, 11.0));
            assert_eq!(pool.weight_in_force(b), weight);
        };
        pool.look_after_weights(start);
        let set = of_step();
        assert!(set < Weight::ONE);
        pool.set_weight(&backend, set, start);
        assert!(pool.weight_in_force(b) < set, "the step is a share of it");
        after(set);
        pool.set_weight(&backend, Weight::ONE, start);
        let weight = of_step();
        let mut spec = members_of(&pool.config.load(), &[]).remove(0);
        spec.weight = weight;
        pool.members().follow(&mut Reweighted(Some(MembershipChange::Change { spec, reweighted: true })));
        after(weight);
    }

    #[test]
    fn a_drained_one_that_comes_back_stays_drained() {
        let keys = "[health]\nprobe = \"none\"\nslow_start = \"10s\"\n[sticky]\ndrain = \"20s\"\n";
        let shared = FrontEndShared::before_three(keys);
        let (pool, start) = (&shared.first, Instant::now());
        let backend = pool.nth(0);
        pool.look_after_weights(start);
        pool.set_drained(&backend, true, start);
        (0..2).for_each(|_| pool.bad_sign(&backend, &"it restarts", false));
        (0..2).for_each(|_| pool.good_sign(&backend));
        let state =
            || pool.dispatch.inspect_members(|i| (i.view.health(backend.id), i.view.weight(backend.id)));
        pool.look_after_weights(at(start, 15.0));
        assert_eq!(state(), (plimsoll_policy::Health::Up, Weight::ZERO));
        pool.look_after_weights(at(start, 20.0));
        assert_eq!(state().0, plimsoll_policy::Health::Draining, "the drain ends");
    }

    #[test]
    fn a_drain_ends_with_its_back_end() {
        let shared = FrontEndShared::before_three("[sticky]\ndrain = \"8h\"\n");
        let (pool, start) = (&shared.first, Instant::now());
        pool.look_after_weights(start);
        pool.set_drained(&pool.nth(1), true, start);
        assert_eq!(pool.weight_in_force(BackendId(1)), Weight::ZERO);
        // It leaves, and one of the same name comes, in whose place it was.
        let mut backends = pool.backends.load().to_vec();
        let (id, name, address) = (BackendId(1), backends[1].name.clone(), backends[1].address.clone());
        backends[1].retire();
        backends[1] = Arc::new(Backend::new(id, name, address, "b".into(), 4, 1));
        pool.backends.store(Arc::new(backends));
        pool.dispatch.set_weight(id, Weight::ONE);
        pool.look_after_weights(at(start, 1.0));
        pool.look_after_weights(at(start, 2.0));
        assert_eq!(pool.weight_in_force(id), Weight::ONE);
    }

    #[test]
    fn a_drained_one_keeps_its_sessions_for_a_while() {
        use plimsoll_policy::Health;
        let shared = FrontEndShared::before_three("[sticky]\ndrain = \"10s\"\n");
        let (pool, start) = (&shared.first, Instant::now());
        let backend = pool.nth(1);
        let state =
            || pool.dispatch.inspect_members(|i| (i.view.health(backend.id), i.view.weight(backend.id)));
        pool.set_drained(&backend, true, start);
        assert_eq!((state(), backend.is_drained()), ((Health::Up, Weight::ZERO), true));
        pool.look_after_weights(at(start, 9.0));
        assert_eq!(state(), (Health::Up, Weight::ZERO));
        pool.look_after_weights(at(start, 10.0));
        assert_eq!(state(), (Health::Draining, Weight::ONE));
        pool.set_drained(&backend, false, at(start, 11.0));
        assert_eq!(state(), (Health::Up, Weight::ONE));
        pool.set_drained(&backend, true, at(start, 12.0));
        pool.set_drained(&backend, false, at(start, 13.0));
        assert_eq!((state(), backend.is_drained()), ((Health::Up, Weight::ONE), false));
    }
}
