//! Which policy to take: a function of what all of them did on the same cluster.

use serde::Serialize;

use super::contestants::{BASELINE, CONTESTANTS, PolicyKind};
use super::finals::FinalFigures;
use super::intervals::{BlockTimes, GainInterval, gain};

/// A policy has to be better by this factor, at the near end of the interval, to be worth a change.
pub const WORTH: f64 = 1.02;
/// And it may be no worse than this in the other respect.
const TOLERATED: f64 = 0.97;

/// What a verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictReason {
    /// Knowing targets and loads pays beyond hashing.
    Locality,
    /// Hashing pays, and nothing is surely better.
    Hashing,
    /// Neither hashing nor locality is surely better than the best of the others.
    Any,
    /// Of those that carry the load it needs the fewest back-ends; what would be taken otherwise does not carry it.
    Carries,
}

/// A policy over another one, in both respects; above 1 where it is better.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PolicyGain {
    /// The one.
    pub policy: &'static str,
    /// The other one.
    pub over: &'static str,
    /// Throughput at saturation.
    pub capacity: GainInterval,
    /// Mean response time of the other one over its own, at the peak; `None` where more arrives than one of them can serve: then times say only how
    /// long the run was.
    pub response: Option<GainInterval>,
}

impl PolicyGain {
    /// Whether one respect is surely better, and the other not surely worse.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        let response = self.response.unwrap_or(GainInterval::NONE);
        let both = [(self.capacity, response), (response, self.capacity)];
        both.iter().any(|(better, other)| better.low > WORTH && other.low > TOLERATED)
    }
}

/// See the module's documentation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdviseVerdict {
    /// The policy to take.
    pub policy: &'static str,
    /// Why.
    pub reason: VerdictReason,
    /// The best of those that hash.
    pub best_hashing: &'static str,
    /// The best of those that know targets.
    pub best_aware: &'static str,
    /// The policy to take over that hashing, and over the baseline; where any will do, the best of the others over the one to take.
    pub gains: Vec<PolicyGain>,
    /// The best one that knows targets over the best hashing, whatever was chosen.
    pub aware_over_hashing: PolicyGain,
}

impl AdviseVerdict {
    /// The same where this policy is taken, because it carries the load.
    pub(super) fn of_carrier(
        self,
        policy: &'static str,
        all: &[FinalFigures],
        peak_rps: f64,
        seed: u64,
    ) -> Self {
        let others = [self.best_hashing, BASELINE].into_iter().filter(|&over| over != policy);
        let gains = others.map(|over| policy_gain(all, policy, over, peak_rps, seed)).collect();
        Self { policy, reason: VerdictReason::Carries, gains, ..self }
    }
}

/// Those of this policy.
pub(super) fn figures_of<'a>(all: &'a [FinalFigures], policy: &str) -> Option<&'a FinalFigures> {
    all.iter().find(|figures| figures.policy == policy)
}

fn served(of: &FinalFigures) -> BlockTimes<'_> {
    BlockTimes { taken: &of.block_s, least: &of.block_network_s }
}

fn answered(of: &FinalFigures) -> BlockTimes<'_> {
    BlockTimes { taken: &of.block_response_s, least: &[] }
}

/// One policy over another one, with this peak in requests per second.
#[must_use]
pub fn policy_gain(
    all: &[FinalFigures],
    policy: &'static str,
    over: &'static str,
    peak_rps: f64,
    seed: u64,
) -> PolicyGain {
    let (Some(own), Some(other), false) = (figures_of(all, policy), figures_of(all, over), policy == over)
    else {
        return PolicyGain { policy, over, capacity: GainInterval::NONE, response: Some(GainInterval::NONE) };
    };
    let bear = own.bears(peak_rps) && other.bears(peak_rps);
    PolicyGain {
        policy,
        over,
        capacity: gain(served(own), served(other), seed),
        response: bear.then(|| gain(answered(own), answered(other), seed)),
    }
}

/// The best of a kind: by how much it is ahead of the one before in both respects together.
fn best_of(all: &[FinalFigures], kind: PolicyKind, peak_rps: f64, seed: u64) -> &'static str {
    let is_ahead = |policy, over| {
        let gain = policy_gain(all, policy, over, peak_rps, seed);
        gain.capacity.ratio * gain.response.map_or(1.0, |response| response.ratio) > 1.0
    };
    let of_kind = CONTESTANTS.iter().filter(|contestant| contestant.kind == kind).map(|of| of.policy);
    of_kind.reduce(|best, next| if is_ahead(next, best) { next } else { best }).unwrap_or(BASELINE)
}

/// Of each kind the one that is taken unless another one is surely better: the simplest, or the one without parameters.
pub(super) const PREFERRED: [&str; 3] = [BASELINE, "uri_hash", "lard_auto"];

/// The verdict on these at this peak, in requests per second. Where every back-end `holds_all` documents, load alone decides.
#[must_use]
pub fn verdict(all: &[FinalFigures], peak_rps: f64, holds_all: bool, seed: u64) -> AdviseVerdict {
    let over = |policy, over| policy_gain(all, policy, over, peak_rps, seed);
    let clear = |policy, other| over(policy, other).is_clear();
    let kinds = [PolicyKind::Blind, PolicyKind::Hashing, PolicyKind::Aware];
    let [blind, hashing, aware] = kinds.map(|kind| best_of(all, kind, peak_rps, seed));
    let choose = |best, preferred| if clear(best, preferred) { best } else { preferred };
    let [take_blind, take_hashing, take_aware] =
        [(blind, PREFERRED[0]), (hashing, PREFERRED[1]), (aware, PREFERRED[2])]
            .map(|(best, preferred)| choose(best, preferred));
    // The preferred one of a kind, or else its best.
    let first = |candidates: [&'static str; 2], over: &[&'static str]| {
        candidates.into_iter().find(|&policy| over.iter().all(|&over| clear(policy, over)))
    };
    let local = first([take_aware, aware], &[hashing, blind]);
    let hashed = first([take_hashing, hashing], &[blind]);
    // Locality that is better than the others, but not than hashing, leaves hashing: the simpler one.
    let hashed = hashed.or_else(|| first([take_aware, aware], &[blind]).map(|_| take_hashing));
    let (policy, reason) = match (local, hashed) {
        _ if holds_all => (take_blind, VerdictReason::Any),
        (Some(policy), _) => (policy, VerdictReason::Locality),
        (None, Some(policy)) => (policy, VerdictReason::Hashing),
        // What is surely better than the simplest one, but not than the best of its kind, is a reason for that.
        (None, None) if clear(hashing, take_blind) || clear(aware, take_blind) => (blind, VerdictReason::Any),
        (None, None) => (take_blind, VerdictReason::Any),
    };
    let pairs = match reason {
        _ if holds_all => Vec::new(),
        VerdictReason::Any => vec![(hashing, policy), (aware, policy)],
        _ => vec![(policy, hashing), (policy, BASELINE)],
    };
    let gains = pairs.into_iter().filter(|(own, other)| own != other);
    AdviseVerdict {
        policy,
        reason,
        best_hashing: hashing,
        best_aware: aware,
        gains: gains.map(|(own, other)| over(own, other)).collect(),
        aware_over_hashing: over(aware, hashing),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The verdict on these with a small load.
    fn verdict(all: &[FinalFigures], seed: u64) -> AdviseVerdict {
        super::verdict(all, 1.0, false, seed)
    }

    /// Figures of a policy whose blocks take this long, and whose answers do.
    pub(in super::super) fn figures(policy: &'static str, block_s: f64, response_s: f64) -> FinalFigures {
        FinalFigures {
            policy,
            capacity_rps: 100.0 / block_s,
            miss_ratio: 0.1,
            disk: 0.9,
            cpu: 0.5,
            peak_mean_s: response_s,
            peak_p99_s: 10.0 * response_s,
            own_p99_s: None,
            unanswered: 0,
            answer_mean_bytes: 1_000.0,
            block_s: vec![block_s; 30],
            block_network_s: Vec::new(),
            block_response_s: vec![response_s; 30],
        }
    }

    fn all(block_s: [f64; 6], response_s: [f64; 6]) -> Vec<FinalFigures> {
        let each = CONTESTANTS.iter().zip(block_s).zip(response_s);
        each.map(|((of, block_s), response_s)| figures(of.policy, block_s, response_s)).collect()
    }

    #[test]
    fn locality_is_advised_where_it_is_surely_better() {
        let found = verdict(&all([9.0, 8.0, 4.0, 5.0, 3.0, 2.0], [1.0; 6]), 1);
        assert_eq!((found.policy, found.reason), ("lard_auto", VerdictReason::Locality));
        assert_eq!((found.best_hashing, found.gains.len()), ("uri_hash", 2));
        assert_eq!((found.gains[0].capacity.ratio, found.gains[1].capacity.ratio), (2.0, 4.5));
    }

    #[test]
    fn hashing_is_advised_where_it_is_as_good() {
        let found = verdict(&all([9.0, 8.0, 4.0, 5.0, 4.0, 3.95], [1.0; 6]), 1);
        assert_eq!((found.policy, found.reason), ("uri_hash", VerdictReason::Hashing));
        assert_eq!(found.gains.iter().map(|gain| gain.over).collect::<Vec<_>>(), [BASELINE]);
        assert!(found.aware_over_hashing.capacity.ratio > 1.0);
    }

    #[test]
    fn any_policy_will_do_where_none_is_better() {
        let found = verdict(&all([1.0; 6], [1.0, 0.99, 1.0, 1.0, 1.0, 1.0]), 1);
        assert_eq!((found.policy, found.reason), (BASELINE, VerdictReason::Any));
        assert_eq!(found.gains.iter().map(|gain| gain.over).collect::<Vec<_>>(), [BASELINE; 2]);
    }

    #[test]
    fn of_equals_the_one_without_parameters_is_taken() {
        let found = verdict(&all([9.0, 9.0, 5.0, 4.95, 3.0, 3.05], [1.0; 6]), 1);
        assert_eq!(
            (found.policy, found.best_aware, found.best_hashing),
            ("lard_auto", "lard_r", "bounded_load_hash")
        );
        assert_eq!(found.gains[0].over, "bounded_load_hash");
    }

    #[test]
    fn what_is_gained_in_one_respect_may_not_be_lost_in_the_other() {
        // More throughput than hashing, but answers take longer at the peak.
        let found = verdict(&all([9.0, 9.0, 4.0, 4.0, 3.0, 3.0], [2.0, 2.0, 1.0, 1.0, 1.5, 1.5]), 1);
        assert_eq!(found.policy, "uri_hash");
        // Shorter answers alone do.
        let found = verdict(&all([1.0; 6], [2.0, 2.0, 1.0, 1.0, 0.5, 0.6]), 1);
        assert_eq!(found.policy, "lard_r");
    }

    #[test]
    fn locality_that_is_not_surely_better_than_hashing_leaves_hashing() {
        // Hashing has more throughput than turns, but longer answers. Where locality has shorter ones than that, it is taken.
        let found = verdict(&all([5.0, 5.0, 4.0, 4.0, 4.0, 4.0], [1.0, 1.0, 1.1, 1.1, 1.0, 1.0]), 1);
        assert_eq!((found.policy, found.reason), ("lard_auto", VerdictReason::Locality));
        // Where it is hardly better than hashing, it is not, even if it alone is surely better than turns.
        let mut close = all([5.0, 5.0, 4.0, 4.0, 4.0, 4.0], [1.0, 1.0, 1.04, 1.04, 1.03, 1.03]);
        close.iter_mut().for_each(|of| of.block_response_s[0] = 1.0);
        let found = verdict(&close, 1);
        assert_eq!((found.policy, found.reason), ("uri_hash", VerdictReason::Hashing));
    }

    #[test]
    fn the_best_hashing_is_advised_where_the_preferred_one_is_not_surely_better_than_turns() {
        // uri_hash has longer answers than turns; bounded_load_hash has not, but is not surely better than uri_hash in all.
        let found = verdict(&all([5.0, 5.0, 4.0, 4.2, 6.0, 6.0], [1.0, 1.0, 1.1, 1.0, 1.2, 1.2]), 1);
        assert_eq!((found.policy, found.reason), ("bounded_load_hash", VerdictReason::Hashing));
        assert!(found.gains.iter().all(PolicyGain::is_clear), "{:?}", found.gains);
    }

    #[test]
    fn where_any_will_do_nothing_shown_is_surely_better() {
        // Hashing is surely better than turns, but not than the fewest connections, which are not surely better than turns.
        let found = verdict(&all([1.03, 1.015, 1.0, 1.0, 1.0, 1.0], [1.0; 6]), 1);
        assert_eq!((found.policy, found.reason), ("least_connections", VerdictReason::Any));
        assert!(!found.gains.iter().any(PolicyGain::is_clear), "{:?}", found.gains);
    }

    #[test]
    fn doubt_leaves_the_simpler_one() {
        let mut unsure = all([9.0, 9.0, 4.0, 4.0, 3.9, 3.9], [1.0; 6]);
        // Far ahead in a few blocks, behind in the others.
        for figures in &mut unsure[4..] {
            figures.block_s = (0..30).map(|block| if block < 4 { 0.5 } else { 4.3 }).collect();
        }
        let found = verdict(&unsure, 1);
        assert_eq!(found.reason, VerdictReason::Hashing);
        assert!(found.aware_over_hashing.capacity.low < 1.0);
    }

    #[test]
    fn where_locality_is_surely_better_than_turns_alone_they_are_not_what_is_advised() {
        // Answers take longer by turns than with locality, but not surely longer with the fewest connections, and turns are not surely behind these.
        let found = verdict(&all([1.0; 6], [1.03, 1.015, 1.02, 1.02, 1.0, 1.0]), 1);
        assert_eq!((found.policy, found.reason), ("least_connections", VerdictReason::Any));
        assert!(!found.gains.iter().any(PolicyGain::is_clear), "{:?}", found.gains);
    }

    #[test]
    fn times_of_an_overloaded_cluster_decide_nothing() {
        // 100 requests/s at most, whatever the policy; queues grow a little faster with some.
        let of = all([1.0; 6], [1.5, 1.5, 1.0, 1.0, 1.2, 1.2]);
        let found = super::verdict(&of, 400.0, false, 1);
        assert_eq!((found.policy, found.reason), (BASELINE, VerdictReason::Any));
        assert!(found.gains.iter().all(|gain| gain.response.is_none()), "{:?}", found.gains);
        assert_eq!(super::verdict(&of, 100.0, false, 1).reason, VerdictReason::Hashing);
    }

    #[test]
    fn where_every_back_end_holds_all_documents_load_alone_decides() {
        let of = all([2.0, 1.0, 0.5, 0.5, 0.4, 0.4], [1.0; 6]);
        let found = super::verdict(&of, 1.0, true, 1);
        assert_eq!((found.policy, found.reason), ("least_connections", VerdictReason::Any));
        assert!(found.gains.is_empty());
    }
}
