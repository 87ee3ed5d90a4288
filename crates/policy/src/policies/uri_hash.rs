//! URI hash (the LARD paper's LB): the target's hash alone decides, so each back-end sees its own part of the targets.
//!
//! Citation: Pai et al., ASPLOS 1998, section 2.3 (LB); the hash is rendezvous hashing: Thaler, Ravishankar, "Using
//! name-based mappings to increase hit rates", IEEE/ACM ToN 1998, with weights after Schindelhauer, Schomaker,
//! "Weighted distributed hash tables", SPAA 2005. A back-end that fails loses only its own targets to the others.
//!
//! ```text
//! for each back-end b: h[b] <- hash(r.target, b)
//! equal weights:  n <- back-end with the largest h
//! else:           n <- back-end with the largest weight[b] / -ln(h[b] / 2^64)
//! send r to n
//! ```

use crate::cluster::{BackendId, ClusterView};
use crate::decision::{Decision, assign_or_reject};
use crate::load_use::LoadUse;
use crate::params::ParamSet;
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::{Request, TargetId};
use crate::rng::mix;
use crate::time::Time;

/// See the module's documentation.
#[derive(Default)]
pub struct UriHash {
    /// The back-ends that take requests with their keys, for the view of `generation`.
    eligible: Vec<(u64, BackendId)>,
    generation: Option<u64>,
}

impl UriHash {
    /// The rendezvous winner for `target`, lowest index on ties.
    fn winner(&mut self, target: TargetId, view: &ClusterView) -> Option<BackendId> {
        if self.generation != Some(view.generation()) {
            self.eligible.clear();
            self.eligible.extend(view.ids_for_tables().map(|b| (view.key(b), b)));
            self.generation = Some(view.generation());
        }
        let winner = winner_of(&self.eligible, target, view)?;
        if view.is_eligible(winner) {
            return Some(winner);
        }
        // It failed this request: the next one in the order of the hash.
        let others: Vec<_> = self.eligible.iter().copied().filter(|&(_, b)| view.is_eligible(b)).collect();
        winner_of(&others, target, view)
    }
}

fn winner_of(entries: &[(u64, BackendId)], target: TargetId, view: &ClusterView) -> Option<BackendId> {
    if view.is_uniform() {
        let mut best: Option<(u64, BackendId)> = None;
        for &(key, b) in entries {
            let hash = mix(target.0 ^ key);
            if best.is_none_or(|(most, _)| hash > most) {
                best = Some((hash, b));
            }
        }
        return best.map(|(_, b)| b);
    }
    let score = |(key, b): (u64, BackendId)| {
        let unit = (mix(target.0 ^ key) as f64 + 0.5) / 18_446_744_073_709_551_616.0;
        view.weight(b).as_f64() / -libm::log(unit)
    };
    let scored = entries.iter().map(|&entry| (score(entry), entry.1));
    scored.max_by(|x, y| x.0.total_cmp(&y.0).then(y.1.cmp(&x.1))).map(|(_, b)| b)
}

impl Policy for UriHash {
    fn choose(&mut self, request: &Request, view: &ClusterView, _: Time) -> Decision {
        assign_or_reject(self.winner(request.target, view))
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities = Capabilities::NONE.needs_content("the target that a request asks for");

fn build(_: &BuildContext, _: &ParamSet) -> Built {
    Ok(Box::<UriHash>::default())
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "uri_hash",
    aliases: &["lb", "rendezvous", "hrw"],
    summary: "the target's hash decides (LARD's LB), by rendezvous hashing",
    source: "Pai et al., ASPLOS 1998, section 2.3; Thaler, Ravishankar 1998",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::None,
    weighted: true,
    params: &[],
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Health};
    use crate::weight::Weight;

    fn owners(cluster: &Cluster) -> Vec<BackendId> {
        let mut policy = UriHash::default();
        (0..4000u64).map(|t| policy.winner(TargetId::from_key(&t.to_le_bytes()), cluster).unwrap()).collect()
    }

    #[test]
    fn a_failure_moves_only_the_targets_of_the_failed() {
        let mut cluster = Cluster::new(4);
        let before = owners(&cluster);
        cluster.set_health(BackendId(2), Health::Down);
        for (old, new) in before.iter().zip(owners(&cluster)) {
            assert!(if *old == BackendId(2) { new != *old } else { new == *old });
        }
    }

    #[test]
    fn targets_spread_by_weight() {
        let mut cluster = Cluster::new(2);
        cluster.set_weight(BackendId(1), Weight::new(3.0).unwrap());
        let on_one = owners(&cluster).iter().filter(|b| b.0 == 1).count();
        // Binomial(4000, 3/4): standard error 27.
        assert!(on_one.abs_diff(3000) < 137, "{on_one}");
    }
}
