//! Weighted least connections: the fewest requests in progress per unit of weight.
//!
//! Citation: Zhang, "Linux Virtual Server for scalable network services", Ottawa Linux Symposium 2000 (`wlc`).
//!
//! ```text
//! n <- back-end with the least load / weight, lowest index on ties
//! send r to n
//! ```

use crate::cluster::ClusterView;
use crate::decision::{Decision, assign_or_reject};
use crate::load_use::LoadUse;
use crate::params::ParamSet;
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::Request;
use crate::time::Time;

/// See the module's documentation.
#[derive(Default)]
pub struct WeightedLeastConnections;

impl Policy for WeightedLeastConnections {
    #[inline]
    fn choose(&mut self, _: &Request, view: &ClusterView, _: Time) -> Decision {
        assign_or_reject(view.least_loaded())
    }
}

fn build(_: &BuildContext, _: &ParamSet) -> Built {
    Ok(Box::new(WeightedLeastConnections))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "weighted_least_connections",
    aliases: &["wlc"],
    summary: "the fewest requests in progress per unit of weight",
    source: "Linux Virtual Server (wlc)",
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
    use crate::weight::Weight;

    #[test]
    fn three_requests_on_weight_four_are_less_than_one_on_weight_one() {
        let mut cluster = Cluster::new(2);
        cluster.set_weight(BackendId(1), Weight::new(4.0).unwrap());
        for b in [0, 1, 1, 1] {
            cluster.assign(BackendId(b));
        }
        let decision = WeightedLeastConnections.choose(&Request::of(0, TargetId(0)), &cluster, Time::ZERO);
        assert_eq!(decision, Decision::Assign(BackendId(1)));
    }
}
