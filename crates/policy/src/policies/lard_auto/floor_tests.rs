//! That the floor is below every cost, whatever happens.

use proptest::prelude::*;

use super::document::KnownDocument;
use super::{LardAuto, LardAutoParams};
use crate::cluster::{BackendId, Change, Cluster, Health};
use crate::decision::{Completion, Decision};
use crate::policy::Policy as _;
use crate::request::{Outcome, Request, TargetId};
use crate::time::{Nanos, Time};
use crate::weight::Weight;

const HEALTH: [Health; 3] = [Health::Up, Health::Draining, Health::Down];
const WEIGHTS: [f64; 4] = [0.0, 0.3, 1.0, 300.0];

/// What happens next; numbers count modulo what there is.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A request for this target.
    Ask(u64),
    /// The request under way with this number ends after so many microseconds, or fails.
    End(usize, u64, bool),
    /// A request ends of which the policy does not hear.
    Silent(usize),
    Health(usize, usize),
    Weight(usize, usize),
    AllWeights(usize),
    Report(usize, u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ended = (any::<usize>(), 1u64..60_000, prop::bool::weighted(0.05));
    let step = prop_oneof![
        12 => (0u64..60).prop_map(Step::Ask),
        10 => ended.prop_map(|(at, took_us, fails)| Step::End(at, took_us, fails)),
        1 => any::<usize>().prop_map(Step::Silent),
        1 => (any::<usize>(), 0usize..3).prop_map(|(b, health)| Step::Health(b, health)),
        1 => (any::<usize>(), 0usize..4).prop_map(|(b, weight)| Step::Weight(b, weight)),
        1 => (1usize..4).prop_map(Step::AllWeights),
        1 => (any::<usize>(), 0u32..40).prop_map(|(b, load)| Step::Report(b, load)),
    ];
    prop::collection::vec(step, 0..400)
}

struct Walk {
    cluster: Cluster,
    policy: LardAuto,
    now: Time,
    under_way: Vec<(TargetId, BackendId, Time)>,
}

impl Walk {
    fn step(&mut self, step: Step) {
        let backends = self.cluster.len();
        let b = |n: usize| BackendId::new(n % backends);
        self.now += Nanos::from_micros(50);
        match step {
            Step::Ask(target) => self.ask(TargetId(target)),
            Step::End(at, took_us, fails) => self.end(at, Nanos::from_micros(took_us), fails),
            Step::Silent(at) if !self.under_way.is_empty() => {
                let (_, b, _) = self.under_way.swap_remove(at % self.under_way.len());
                self.cluster.complete(b);
            }
            Step::Silent(_) => {}
            Step::Health(n, health) => {
                self.cluster.set_health(b(n), HEALTH[health]);
                self.policy.on_membership(b(n), Change::Health(HEALTH[health]), &self.cluster, self.now);
            }
            Step::Weight(n, weight) => self.weigh(b(n), weight),
            Step::AllWeights(weight) => (0..backends).for_each(|n| self.weigh(b(n), weight)),
            Step::Report(n, load) => self.cluster.report(b(n), load),
        }
    }

    fn ask(&mut self, target: TargetId) {
        let sizes = [None, Some(0), Some(1), Some(1000), Some(1 << 40)];
        let size_bytes = sizes[target.0 as usize % sizes.len()];
        let request = Request { size_bytes, ..Request::of(0, target) };
        if let Decision::Assign(b) = self.policy.choose(&request, &self.cluster, self.now) {
            self.cluster.assign(b);
            self.policy.on_assign(&request, b, &self.cluster, self.now);
            self.under_way.push((target, b, self.now));
        }
    }

    fn end(&mut self, at: usize, took: Nanos, fails: bool) {
        if self.under_way.is_empty() {
            return;
        }
        let (target, b, began) = self.under_way.swap_remove(at % self.under_way.len());
        self.now = self.now.max(began + took);
        self.cluster.complete(b);
        let outcome = if fails { Outcome::Failed } else { Outcome::Completed };
        let completion = Completion::of(target, b, outcome, self.now.since(began));
        self.policy.on_complete(&completion, &self.cluster, self.now);
    }

    fn weigh(&mut self, b: BackendId, weight: usize) {
        let weight = Weight::new(WEIGHTS[weight]).unwrap();
        self.cluster.set_weight(b, weight);
        self.policy.on_membership(b, Change::Weight(weight), &self.cluster, self.now);
    }
}

proptest! {
    #[test]
    fn the_floor_is_below_every_cost(
        backends in 1usize..6,
        without in prop_oneof![3 => Just(0u32), 1 => 0u32..1024],
        steps in steps(),
        price in prop_oneof![Just(0.0), 0.01f64..20.0],
    ) {
        let policy = LardAuto::new(&LardAutoParams { without, ..LardAutoParams::default() });
        let mut walk = Walk { cluster: Cluster::new(backends), policy, now: Time::ZERO, under_way: Vec::new() };
        walk.policy.costs.grow(&walk.cluster);
        for step in steps {
            walk.step(step);
            let costs = &walk.policy.costs;
            let all = costs.of_all();
            let floor_ns = costs.floor_ns(price, &all, &walk.cluster);
            if let (Some((b, least_ns)), _) = costs.least(&KnownDocument::default(), price, &all, &walk.cluster) {
                // They are sums in another order.
                prop_assert!(floor_ns <= least_ns * (1.0 + 1e-9), "{floor_ns} {least_ns} at {b:?} after {step:?}");
            }
        }
    }
}
