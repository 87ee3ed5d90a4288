//! Consistent hashing with bounded loads: the target's place on a ring decides, unless that back-end has more than
//! its share of the load; then the next one on the ring.
//!
//! Citation: Mirrokni, Thorup, Zadimoghaddam, "Consistent hashing with bounded loads", SODA 2018. HAProxy knows it as
//! `hash-balance-factor`, Envoy as `hash_balance_factor`.
//!
//! ```text
//! ring: `points` points per back-end of weight 1
//! limit[b] <- ceil(balance * (total load + 1) * weight[b] / sum of weights)
//! walk the ring from hash(r.target): n <- first back-end with load < limit
//! send r to n
//! ```

use crate::capability::ShowsState;
use crate::cluster::{BackendId, ClusterView};
use crate::decision::{Decision, assign_or_reject};
use crate::load_use::LoadUse;
use crate::params::{ParamSet, Params as _};
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::Request;
use crate::rng::mix;
use crate::time::Time;

crate::params! {
    /// Parameters of consistent hashing with bounded loads.
    pub struct BoundedLoadHashParams {
        /// How much more than the average load a back-end may have: 1.25 allows 25 % more.
        balance: f64 = 1.25, 1.0..=100.0, "";
        /// Points on the ring for a back-end of weight 1.
        points: u32 = 160, 1..=10000, "points";
    }
}

/// The most points on the ring, apart from one per back-end.
const MOST_POINTS: u64 = 1 << 20;

/// See the module's documentation.
pub struct BoundedLoadHash {
    params: BoundedLoadHashParams,
    /// Points of the back-ends that take requests, sorted, for the view of `generation`.
    ring: Vec<(u64, BackendId)>,
    generation: Option<u64>,
    overflows: u64,
}

impl BoundedLoadHash {
    /// With these parameters.
    #[must_use]
    pub fn new(params: BoundedLoadHashParams) -> Self {
        Self { params, ring: Vec::new(), generation: None, overflows: 0 }
    }

    fn refresh(&mut self, view: &ClusterView) {
        self.ring.clear();
        // However large weights and parameters are, the ring stays within bounds; shares stay proportional.
        let wanted = u64::from(self.params.points) * view.eligible_weight_steps() / 256;
        let shrink = wanted.div_ceil(MOST_POINTS).max(1);
        for b in view.ids_for_tables() {
            let points = u64::from(self.params.points) * u64::from(view.weight(b).steps()) / 256 / shrink;
            let points = points.max(1);
            self.ring.extend((0..points).map(|p| (mix(view.key(b) ^ mix(p + 1)), b)));
        }
        self.ring.sort_unstable();
        self.generation = Some(view.generation());
    }

    fn limit(&self, b: BackendId, view: &ClusterView) -> f64 {
        let share = f64::from(view.weight(b).steps()) / view.eligible_weight_steps() as f64;
        (self.params.balance * (view.total_load() + 1) as f64 * share).ceil()
    }
}

impl Policy for BoundedLoadHash {
    fn choose(&mut self, request: &Request, view: &ClusterView, _: Time) -> Decision {
        if self.generation != Some(view.generation()) {
            self.refresh(view);
        }
        let start = self.ring.partition_point(|&(point, _)| point < mix(request.target.0));
        let mut last = None;
        for step in 0..self.ring.len() {
            let (_, b) = self.ring[(start + step) % self.ring.len()];
            // Neighbouring points often belong to the back-end just refused.
            if last == Some(b) {
                continue;
            }
            if f64::from(view.load(b)) < self.limit(b, view) && view.is_eligible(b) {
                self.overflows += u64::from(last.is_some());
                return Decision::Assign(b);
            }
            last = Some(b);
        }
        // Requests on failed or draining back-ends count in the total, so some back-end is always below its limit;
        // rounding aside, this is not reached with any back-end up.
        assign_or_reject(view.least_loaded())
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl ShowsState for BoundedLoadHash {
    fn stats(&self) -> Vec<(&'static str, f64)> {
        vec![("overflows", self.overflows as f64)]
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities =
    Capabilities::NONE.shows_state::<BoundedLoadHash>().needs_content("the target that a request asks for");

fn build(_: &BuildContext, params: &ParamSet) -> Built {
    Ok(Box::new(BoundedLoadHash::new(BoundedLoadHashParams::of(params))))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "bounded_load_hash",
    aliases: &["chbl", "bounded_loads"],
    summary: "consistent hashing, but no back-end above its share of the load",
    source: "Mirrokni, Thorup, Zadimoghaddam, SODA 2018",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::View,
    weighted: true,
    params: BoundedLoadHashParams::SPECS,
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;
    use crate::request::TargetId;

    #[test]
    fn one_hot_target_spreads_within_the_bound() {
        let mut cluster = Cluster::new(4);
        let mut policy = BoundedLoadHash::new(BoundedLoadHashParams::default());
        for number in 0..400 {
            match policy.choose(&Request::of(number, TargetId(42)), &cluster, Time::ZERO) {
                Decision::Assign(b) => cluster.assign(b),
                other => panic!("{other:?}"),
            }
            let bound = (1.25 * (number + 1) as f64 / 4.0).ceil();
            for b in cluster.ids() {
                assert!(f64::from(cluster.load(b)) <= bound, "{b:?} above {bound}");
            }
        }
        assert!(policy.stats()[0].1 > 0.0);
    }

    #[test]
    fn without_load_the_target_stays_where_it_hashes() {
        let cluster = Cluster::new(4);
        let mut policy = BoundedLoadHash::new(BoundedLoadHashParams::default());
        let mut choose = |t| policy.choose(&Request::of(0, TargetId(t)), &cluster, Time::ZERO);
        for t in 0..100 {
            assert_eq!(choose(t), choose(t));
        }
    }
}
