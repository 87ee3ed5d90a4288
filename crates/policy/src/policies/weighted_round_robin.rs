//! Weighted round robin as the LARD paper means it: in turn, weighted by the current load of the back-ends.
//!
//! Citation: Pai et al., "Locality-aware request distribution in cluster-based network servers", ASPLOS 1998,
//! section 2.2 (WRR). In its simulator that is the least loaded back-end, ties resolved in turn.
//!
//! ```text
//! n <- among the back-ends with the least load / weight, the first after the last one chosen
//! send r to n
//! ```
//!
//! The paper's back-ends are equal. Where weights differ, turns are in proportion to them, among the back-ends that have not their
//! share of the load yet.

use crate::cluster::ClusterView;
use crate::decision::{Decision, assign_or_reject};
use crate::load_use::LoadUse;
use crate::params::ParamSet;
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::Request;
use crate::share_turn::ShareTurn;
use crate::time::Time;
use crate::turn::Turn;

/// See the module's documentation.
#[derive(Default)]
pub struct WeightedRoundRobin {
    turn: Turn,
    /// Where weights differ.
    shares: ShareTurn,
}

impl Policy for WeightedRoundRobin {
    fn choose(&mut self, _: &Request, view: &ClusterView, _: Time) -> Decision {
        assign_or_reject(match view.is_uniform() {
            true => self.turn.next(view),
            false => self.shares.next(view),
        })
    }
}

fn build(_: &BuildContext, _: &ParamSet) -> Built {
    Ok(Box::<WeightedRoundRobin>::default())
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "weighted_round_robin",
    aliases: &["wrr"],
    summary: "in turn, weighted by current load (LARD's WRR): least load per weight, ties in turn",
    source: "Pai et al., ASPLOS 1998, section 2.2",
    capabilities: &Capabilities::NONE,
    load_use: LoadUse::View,
    weighted: true,
    params: &[],
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BackendId, Cluster};
    use crate::request::TargetId;

    #[test]
    fn least_load_first_then_in_turn() {
        let mut cluster = Cluster::new(3);
        let mut policy = WeightedRoundRobin::default();
        let mut choose = |cluster: &Cluster| policy.choose(&Request::of(0, TargetId(0)), cluster, Time::ZERO);
        // No load anywhere: in turn, though nothing is counted.
        assert_eq!(choose(&cluster), Decision::Assign(BackendId(0)));
        assert_eq!(choose(&cluster), Decision::Assign(BackendId(1)));
        // 2 would be next, but is loaded; 0 comes after it in turn.
        cluster.assign(BackendId(2));
        assert_eq!(choose(&cluster), Decision::Assign(BackendId(0)));
        cluster.assign(BackendId(0));
        cluster.assign(BackendId(1));
        cluster.assign(BackendId(1));
        assert_eq!(choose(&cluster), Decision::Assign(BackendId(2)));
    }
}
