//! Least connections: the back-end with the fewest requests in progress.
//!
//! Citation: Zhang, "Linux Virtual Server for scalable network services", Ottawa Linux Symposium 2000 (`lc`). On
//! FIFO back-ends this is join-shortest-queue (Winston 1977).
//!
//! ```text
//! n <- back-end with the least load, lowest index on ties
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
pub struct LeastConnections;

impl Policy for LeastConnections {
    #[inline]
    fn choose(&mut self, _: &Request, view: &ClusterView, _: Time) -> Decision {
        if view.is_uniform() {
            // With equal weights the order by relative load is the order by load, and that scan vectorises.
            return assign_or_reject(view.least_loaded());
        }
        assign_or_reject(view.eligible_ids().min_by_key(|&b| (view.load(b), b)))
    }
}

fn build(_: &BuildContext, _: &ParamSet) -> Built {
    Ok(Box::new(LeastConnections))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "least_connections",
    aliases: &["lc", "leastconn"],
    summary: "the fewest requests in progress; weights do not matter",
    source: "Linux Virtual Server (lc)",
    capabilities: &Capabilities::NONE,
    load_use: LoadUse::View,
    weighted: false,
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
    fn counts_requests_and_ignores_weights() {
        let mut cluster = Cluster::new(2);
        cluster.set_weight(BackendId(0), Weight::new(8.0).unwrap());
        cluster.assign(BackendId(0));
        let decision = LeastConnections.choose(&Request::of(0, TargetId(0)), &cluster, Time::ZERO);
        assert_eq!(decision, Decision::Assign(BackendId(1)));
    }
}
