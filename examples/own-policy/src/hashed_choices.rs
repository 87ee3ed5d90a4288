//! The less loaded of a few back-ends that the target's hash names: each target stays in few caches, and a hot one has more than
//! one back-end.
//!
//! Citation: Azar, Broder, Karlin, Upfal, "Balanced allocations", SIAM Journal on Computing 1999, with the choices fixed by the
//! target as in Thaler and Ravishankar, "Using name-based mappings to increase hit rates", IEEE/ACM ToN 1998.
//!
//! ```text
//! candidates <- the `choices` back-ends with the largest hash(r.target, back-end)
//! n <- the one of them with the least load / weight; the one with the largest hash on ties
//! send r to n
//! ```

use plimsoll_policy::params::{ParamSet, Params as _};
use plimsoll_policy::{
    BackendId, BuildContext, Built, Capabilities, ClusterView, Decision, LoadUse, Policy, PolicySpec,
    Request, Time, mix,
};

plimsoll_policy::params! {
    /// Parameters of the policy.
    struct HashedChoicesParams {
        /// How many back-ends a target may go to.
        choices: u32 = 2, 1..=64, "back-ends";
    }
}

/// See the module's documentation.
struct HashedChoices {
    choices: usize,
    /// Back-ends with their hashes, largest first. Kept, so that a decision allocates nothing.
    ranked: Vec<(u64, BackendId)>,
}

impl Policy for HashedChoices {
    fn choose(&mut self, request: &Request, view: &ClusterView, _: Time) -> Decision {
        let hashed = |b| (mix(request.target.0 ^ mix(view.key(b))), b);
        self.ranked.clear();
        self.ranked.extend(view.eligible_ids().map(hashed));
        self.ranked.sort_unstable_by(|a, b| b.cmp(a));
        let candidates = self.ranked.iter().take(self.choices).map(|(_, b)| *b);
        candidates.min_by_key(|b| view.relative_load(*b)).map_or(Decision::Reject, Decision::Assign)
    }
}

fn build(_: &BuildContext, params: &ParamSet) -> Built {
    let HashedChoicesParams { choices } = HashedChoicesParams::of(params);
    Ok(Box::new(HashedChoices { choices: choices as usize, ranked: Vec::new() }))
}

/// Registry entry.
pub(crate) static SPEC: PolicySpec = PolicySpec {
    name: "hashed_choices",
    aliases: &[],
    summary: "the less loaded of a few back-ends that the target's hash names",
    source: "Azar et al. 1999; Thaler and Ravishankar 1998",
    capabilities: &Capabilities::NONE,
    load_use: LoadUse::View,
    weighted: true,
    params: HashedChoicesParams::SPECS,
    build,
};

#[cfg(test)]
mod tests {
    use plimsoll_policy::{Cluster, TargetId};

    use super::*;

    #[test]
    fn a_target_has_two_back_ends_and_takes_the_less_loaded() {
        let mut cluster = Cluster::new(8);
        let mut policy = build(&BuildContext::default(), &ParamSet::defaults(SPEC.params)).unwrap();
        for target in 0..100 {
            let request = Request::of(0, TargetId(target));
            let mut choose = |cluster: &Cluster| match policy.choose(&request, cluster, Time::ZERO) {
                Decision::Assign(backend) => backend,
                other => panic!("{other:?}"),
            };
            let first = choose(&cluster);
            cluster.assign(first);
            let second = choose(&cluster);
            cluster.assign(second);
            assert_ne!(first, second);
            // Both have one request now, and the third one goes to either.
            assert!([first, second].contains(&choose(&cluster)));
            cluster.complete(first);
            cluster.complete(second);
        }
    }
}
