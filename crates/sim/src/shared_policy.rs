//! One policy object that several front-ends use, each with its own view of the loads: as if they shared its tables without cost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_policy::{
    BackendId, Capabilities, Change, ClusterView, Completion, Decision, Nanos, Policy, PolicyTable, Request,
    ShowsState, TargetId, Time,
};

/// A front-end's handle of the policy. Polls, probes, reports and exchanges do not go through it.
pub struct SharedPolicy {
    policy: Arc<Mutex<Box<dyn Policy>>>,
    /// Whether changes of membership and ticks go to the policy: those of one front-end do, or it would hear of each several times.
    first: bool,
}

impl SharedPolicy {
    /// The first handle.
    #[must_use]
    pub fn new(policy: Box<dyn Policy>) -> Self {
        Self { policy: Arc::new(Mutex::new(policy)), first: true }
    }

    /// A handle for another front-end.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { policy: Arc::clone(&self.policy), first: false }
    }

    fn policy(&self) -> MutexGuard<'_, Box<dyn Policy>> {
        // Handles of one run are used by one thread.
        self.policy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Policy for SharedPolicy {
    fn choose(&mut self, request: &Request, view: &ClusterView, now: Time) -> Decision {
        self.policy().choose(request, view, now)
    }

    fn on_assign(&mut self, request: &Request, backend: BackendId, view: &ClusterView, now: Time) {
        self.policy().on_assign(request, backend, view, now);
    }

    fn on_complete(&mut self, completion: &Completion, view: &ClusterView, now: Time) {
        self.policy().on_complete(completion, view, now);
    }

    fn on_membership(&mut self, backend: BackendId, change: Change, view: &ClusterView, now: Time) {
        if self.first {
            self.policy().on_membership(backend, change, view, now);
        }
    }

    fn on_tick(&mut self, view: &ClusterView, now: Time) {
        if self.first {
            self.policy().on_tick(view, now);
        }
    }

    fn tick_interval(&self) -> Option<Nanos> {
        self.policy().tick_interval()
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl ShowsState for SharedPolicy {
    fn server_set(&self, target: TargetId) -> Vec<BackendId> {
        self.policy().server_set(target)
    }

    fn tracked_targets(&self) -> usize {
        self.policy().tracked_targets()
    }

    fn assigned_targets(&self) -> usize {
        self.policy().assigned_targets()
    }

    fn stats(&self) -> Vec<(&'static str, f64)> {
        self.policy().stats()
    }

    fn tables(&self) -> Vec<PolicyTable> {
        self.policy().tables()
    }
}

static CAPABILITIES: Capabilities = Capabilities::NONE.shows_state::<SharedPolicy>();

#[cfg(test)]
mod tests {
    use plimsoll_policy::{
        AdmissionControl, AdmissionLimit, BuildContext, Cluster, Core, Offered, PolicyChoice,
    };

    use super::*;

    /// Counts what it hears of.
    #[derive(Default)]
    struct Listener(u32, u32);

    impl Policy for Listener {
        fn choose(&mut self, _: &Request, _: &ClusterView, _: Time) -> Decision {
            Decision::Reject
        }

        fn on_membership(&mut self, _: BackendId, _: Change, _: &ClusterView, _: Time) {
            self.0 += 1;
        }

        fn on_tick(&mut self, _: &ClusterView, _: Time) {
            self.1 += 1;
        }

        fn tick_interval(&self) -> Option<Nanos> {
            Some(Nanos::from_secs(1))
        }

        fn capabilities(&self) -> &'static Capabilities {
            &LISTENS
        }
    }

    impl ShowsState for Listener {
        fn stats(&self) -> Vec<(&'static str, f64)> {
            vec![("changes", f64::from(self.0)), ("ticks", f64::from(self.1))]
        }
    }

    static LISTENS: Capabilities = Capabilities::NONE.shows_state::<Listener>();

    #[test]
    fn changes_and_ticks_come_from_one_front_end() {
        let mut first = SharedPolicy::new(Box::new(Listener::default()));
        let mut other = first.another();
        assert_eq!(
            (first.tick_interval(), other.tick_interval()),
            (Some(Nanos::from_secs(1)), first.tick_interval())
        );
        let view = Cluster::new(2);
        for handle in [&mut first, &mut other] {
            handle.on_tick(&view, Time::ZERO);
            handle.on_membership(BackendId(1), Change::Left, &view, Time::ZERO);
        }
        assert_eq!(other.stats(), [("changes", 1.0), ("ticks", 1.0)]);
    }

    /// A core of a front-end with no load, and of one that has eighty requests on back-end 0.
    #[test]
    fn tables_are_shared_and_loads_are_not() {
        let policy = "lard".parse::<PolicyChoice>().unwrap().build(&BuildContext::default()).unwrap();
        let first = SharedPolicy::new(policy);
        let other = Box::new(first.another());
        let admission = AdmissionControl { limit: AdmissionLimit::Unlimited, queue: 0 };
        let [mut first, mut other] =
            [Box::new(first), other].map(|p| Core::new(p, Cluster::new(3), admission));
        let chosen = |core: &mut Core, number| match core.offer(&Request::of(number, TargetId(5)), Time::ZERO)
        {
            Offered::Assigned(assigned) => assigned.backend,
            _ => panic!("nobody keeps it from being assigned"),
        };
        let backend = chosen(&mut first, 0);
        assert_eq!(chosen(&mut other, 1), backend, "what the first one has chosen");
        assert_eq!((first.policy().tracked_targets(), other.policy().tracked_targets()), (1, 1));
        // The other one sees it loaded beyond t_high, which the first one does not know: all move.
        other.see(backend, 200);
        let moved = chosen(&mut other, 2);
        assert_ne!(moved, backend);
        assert_eq!(chosen(&mut first, 3), moved);
        assert_eq!(first.policy().stats(), other.policy().stats());
    }
}
