//! Join-shortest-queue: the back-end with the fewest requests in progress, ties at random.
//!
//! Citation: Winston, "Optimality of the shortest line discipline", Journal of Applied Probability 1977; the
//! baseline of AdaptLoad (section 5). `least_connections` differs in giving ties to the lowest index: at
//! light load the first back-ends then get nearly all requests, and only their caches fill.
//!
//! ```text
//! n <- one of the back-ends with the least load / weight, each with the same probability
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
use crate::rng::Rng;
use crate::shortest_queue::shortest_queue;
use crate::time::Time;

/// Stream of the run's seed that this policy draws from.
const STREAM: u64 = 0x6a73_7100;

/// See the module's documentation.
#[derive(Debug)]
pub struct JoinShortestQueue(Rng);

impl JoinShortestQueue {
    /// Draws random numbers from the stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_stream(seed, STREAM)
    }

    /// Draws them from another stream.
    pub(crate) fn with_stream(seed: u64, stream: u64) -> Self {
        Self(Rng::new(seed, stream))
    }
}

impl Policy for JoinShortestQueue {
    #[inline]
    fn choose(&mut self, _: &Request, view: &ClusterView, _: Time) -> Decision {
        assign_or_reject(shortest_queue(view, &mut self.0))
    }
}

fn build(context: &BuildContext, _: &ParamSet) -> Built {
    Ok(Box::new(JoinShortestQueue::new(context.seed)))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "join_shortest_queue",
    aliases: &["jsq"],
    summary: "the fewest requests in progress per unit of weight, ties at random",
    source: "Winston 1977; AdaptLoad, section 5",
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
    fn the_shortest_queue_wins_and_an_idle_cluster_is_used_evenly() {
        let mut policy = JoinShortestQueue::new(4);
        let mut cluster = Cluster::new(3);
        let mut choose =
            |cluster: &Cluster| match policy.choose(&Request::of(0, TargetId(0)), cluster, Time::ZERO) {
                Decision::Assign(b) => b.index(),
                other => panic!("{other:?}"),
            };
        let mut got = [0u32; 3];
        (0..3_000).for_each(|_| got[choose(&cluster)] += 1);
        assert!(got.iter().all(|n| n.abs_diff(1_000) < 130), "{got:?}");
        [0, 0, 1, 2, 2].into_iter().for_each(|b| cluster.assign(BackendId(b)));
        assert_eq!(choose(&cluster), 1);
    }
}
