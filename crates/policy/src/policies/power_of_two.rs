//! Power of two choices: of two different back-ends drawn at random, the less loaded one.
//!
//! Citation: Mitzenmacher, "The power of two choices in randomized load balancing", IEEE TPDS 2001.
//!
//! ```text
//! a, b <- two different back-ends drawn at random
//! n <- the one with less load / weight; a on ties
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
use crate::two_choices::TwoChoices;

/// Stream of the run's seed that this policy draws from.
const STREAM: u64 = 0x7032_6300;

/// See the module's documentation.
pub struct PowerOfTwo(TwoChoices);

impl PowerOfTwo {
    /// Draws random numbers from the stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(TwoChoices::new(seed, STREAM))
    }
}

impl Policy for PowerOfTwo {
    fn choose(&mut self, _: &Request, view: &ClusterView, _: Time) -> Decision {
        let lesser = |(a, b)| if view.relative_load(b) < view.relative_load(a) { b } else { a };
        assign_or_reject(self.0.draw(view).map(lesser))
    }
}

fn build(context: &BuildContext, _: &ParamSet) -> Built {
    Ok(Box::new(PowerOfTwo::new(context.seed)))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "power_of_two",
    aliases: &["p2c", "random_two"],
    summary: "the less loaded of two back-ends drawn at random",
    source: "Mitzenmacher, IEEE TPDS 2001",
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
    fn never_the_most_loaded_and_the_rest_evenly() {
        let mut cluster = Cluster::new(3);
        cluster.assign(BackendId(1));
        let mut policy = PowerOfTwo::new(5);
        let mut seen = [0u32; 3];
        for _ in 0..30_000 {
            match policy.choose(&Request::of(0, TargetId(0)), &cluster, Time::ZERO) {
                Decision::Assign(b) => seen[b.index()] += 1,
                other => panic!("{other:?}"),
            }
        }
        // Two different back-ends always include one without load; by symmetry each has half (±5 standard errors).
        assert_eq!(seen[1], 0);
        assert!(seen[0].abs_diff(15_000) < 433, "{seen:?}");
    }
}
