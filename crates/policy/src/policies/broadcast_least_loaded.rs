//! Broadcast: the back-end with the least load that was announced, ties at random.
//!
//! Citation: Shen, Yang and Chu, "Cluster load balancing for fine-grain network services", IPDPS 2002, section 2.2. Where loads come
//! from is not a policy's concern, so this is `join_shortest_queue` under the paper's name, with random numbers of its own. Ties
//! must be broken at random: given to the lowest index, every front-end would send to the same back-end until the next announcement.
//!
//! ```text
//! load[b] <- what b announced last, perhaps with what was sent to it since
//! n <- one of the back-ends with the least load / weight, each with the same probability
//! send r to n
//! ```

use crate::load_use::LoadUse;
use crate::params::ParamSet;
use crate::policies::join_shortest_queue::JoinShortestQueue;
use crate::policy::Capabilities;
use crate::policy_spec::{BuildContext, Built, PolicySpec};

/// Stream of the run's seed that this policy draws from.
const STREAM: u64 = 0x6263_6173;

fn build(context: &BuildContext, _: &ParamSet) -> Built {
    Ok(Box::new(JoinShortestQueue::with_stream(context.seed, STREAM)))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "broadcast_least_loaded",
    aliases: &["broadcast"],
    summary: "the least load per unit of weight that back-ends announced, ties at random",
    source: "Shen, Yang, Chu, IPDPS 2002, section 2.2",
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
    use crate::core::{AdmissionControl, Core, Offered};
    use crate::decision::LoadReport;
    use crate::request::{Request, TargetId};
    use crate::time::Time;

    /// Without counting its own requests, all go where the last announcement was least: the paper's flocking.
    #[test]
    fn requests_flock_to_what_announced_least_until_the_next_announcement() {
        let mut cluster = Cluster::new(3);
        cluster.count_reports_only();
        let policy = build(&BuildContext::default(), &ParamSet::defaults(SPEC.params)).unwrap();
        let mut core = Core::new(policy, cluster, AdmissionControl::UNLIMITED);
        let mut number = 0;
        let mut ten = |core: &mut Core, announced: [u32; 3]| {
            for (b, load) in (0..).zip(announced) {
                core.report(&LoadReport::of(BackendId(b), load), Time::ZERO);
            }
            let mut got = [0; 3];
            for _ in 0..10 {
                number += 1;
                match core.offer(&Request::of(number, TargetId(number)), Time::ZERO) {
                    Offered::Assigned(assigned) => got[assigned.backend.index()] += 1,
                    other => panic!("{other:?}"),
                }
            }
            got
        };
        assert_eq!(ten(&mut core, [4, 1, 3]), [0, 10, 0]);
        assert_eq!(ten(&mut core, [4, 11, 3]), [0, 0, 10]);
        let [a, b, c] = ten(&mut core, [7, 7, 9]);
        assert!(a > 0 && b > 0 && c == 0, "ties at random: {a}, {b}, {c}");
    }
}
