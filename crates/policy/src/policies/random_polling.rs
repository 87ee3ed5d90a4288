//! Random polling: asks a few back-ends drawn at random for their load, and takes the least loaded.
//!
//! Citation: Shen, Yang and Chu, "Cluster load balancing for fine-grain network services", IPDPS 2002, section 2.3; answers that are
//! slow are discarded (section 3.2) by what carries the poll. What two choices gain: Mitzenmacher, IEEE TPDS 2001.
//!
//! ```text
//! asked <- `size` different back-ends drawn at random
//! answers <- load[b] of each b in asked that answers in time
//! if there are answers
//!     n <- one of those with the least load / weight, each with the same probability
//! else
//!     n <- back-end drawn with probability weight[n] / sum of weights
//! send r to n
//! ```
//!
//! The paper does not say what follows when nobody answers in time. A back-end is then drawn afresh: that those asked were all slow
//! is no reason to prefer them. With `size` 1, or one back-end, there is nothing to compare and nobody is asked.

use crate::capability::{Polls, ShowsState};
use crate::cluster::{BackendId, ClusterView};
use crate::core::random_candidates;
use crate::decision::{Decision, PollAnswer, assign_or_reject};
use crate::load_use::LoadUse;
use crate::params::{ParamSet, Params as _};
use crate::policies::random::Random;
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::Request;
use crate::rng::Rng;
use crate::time::Time;
use crate::weight::RelativeLoad;

crate::params! {
    /// Parameters of random polling.
    pub struct RandomPollingParams {
        /// d: how many back-ends are asked before each choice; 1 asks nobody and chooses at random.
        size: u32 = 2, 1..=8, "back-ends";
    }
}

/// Streams of the run's seed that this policy draws from.
const STREAM: u64 = 0x706F_6C6C;
const FALLBACK_STREAM: u64 = 0x706F_6C72;

/// See the module's documentation.
pub struct RandomPolling {
    size: usize,
    rng: Rng,
    fallback: Random,
    polls: u64,
    answers: u64,
    unanswered: u64,
}

impl RandomPolling {
    /// With these parameters; draws random numbers from streams of `seed`.
    #[must_use]
    pub fn new(params: &RandomPollingParams, seed: u64) -> Self {
        Self {
            size: params.size as usize,
            rng: Rng::new(seed, STREAM),
            fallback: Random::with_stream(seed, FALLBACK_STREAM),
            polls: 0,
            answers: 0,
            unanswered: 0,
        }
    }
}

impl Policy for RandomPolling {
    fn choose(&mut self, _: &Request, view: &ClusterView, _: Time) -> Decision {
        if self.size == 1 {
            return assign_or_reject(self.fallback.draw(view));
        }
        let asked = random_candidates(view, self.size, &mut self.rng);
        match asked.as_slice() {
            [] => Decision::Reject,
            [only] => Decision::Assign(*only),
            _ => {
                self.polls += 1;
                Decision::Poll(asked)
            }
        }
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl Polls for RandomPolling {
    fn on_poll(&mut self, _: &Request, answers: &[PollAnswer], view: &ClusterView, _: Time) -> Decision {
        self.answers += answers.len() as u64;
        let (mut least, mut chosen, mut ties): (u32, Option<BackendId>, u64) =
            (RelativeLoad::INELIGIBLE, None, 0);
        for answer in answers.iter().filter(|a| view.is_eligible(a.backend)) {
            let relative = RelativeLoad::of(answer.load, view.weight(answer.backend));
            if relative == least {
                ties += 1;
                chosen = if self.rng.below(ties) == 0 { Some(answer.backend) } else { chosen };
            } else {
                // Either is as likely: without a branch.
                let is_less = relative < least;
                chosen = if is_less { Some(answer.backend) } else { chosen };
                (least, ties) = (least.min(relative), if is_less { 1 } else { ties });
            }
        }
        if chosen.is_none() {
            self.unanswered += 1;
        }
        assign_or_reject(chosen.or_else(|| self.fallback.draw(view)))
    }
}

impl ShowsState for RandomPolling {
    fn stats(&self) -> Vec<(&'static str, f64)> {
        let counted = [("polls", self.polls), ("answers", self.answers), ("unanswered", self.unanswered)];
        counted.map(|(name, count)| (name, count as f64)).to_vec()
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities =
    Capabilities::NONE.polls::<RandomPolling>().shows_state::<RandomPolling>();

fn build(context: &BuildContext, params: &ParamSet) -> Built {
    Ok(Box::new(RandomPolling::new(&RandomPollingParams::of(params), context.seed)))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "random_polling",
    aliases: &["polling", "random_poll"],
    summary: "the least loaded of a few back-ends drawn at random and asked for their load",
    source: "Shen, Yang, Chu, IPDPS 2002, section 2.3",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::Polls,
    weighted: true,
    params: RandomPollingParams::SPECS,
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Health};
    use crate::decision::Candidates;
    use crate::request::TargetId;
    use crate::weight::Weight;

    const REQUEST: Request = Request::of(0, TargetId(0));

    fn polling(size: u32) -> RandomPolling {
        RandomPolling::new(&RandomPollingParams { size }, 3)
    }

    fn asked(policy: &mut RandomPolling, cluster: &Cluster) -> Candidates {
        match policy.choose(&REQUEST, cluster, Time::ZERO) {
            Decision::Poll(asked) => asked,
            other => panic!("{other:?}"),
        }
    }

    fn chosen(policy: &mut RandomPolling, cluster: &Cluster, answers: &[(u16, u32)]) -> usize {
        let answers: Vec<_> = answers.iter().map(|&(b, load)| PollAnswer::of(BackendId(b), load)).collect();
        match policy.on_poll(&REQUEST, &answers, cluster, Time::ZERO) {
            Decision::Assign(b) => b.index(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn asks_as_many_different_ones_as_it_is_told_each_as_often() {
        let mut cluster = Cluster::new(6);
        cluster.set_health(BackendId(4), Health::Draining);
        let mut policy = polling(3);
        let mut got = [0u32; 6];
        for _ in 0..20_000 {
            let asked = asked(&mut policy, &cluster);
            assert_eq!(asked.as_slice().len(), 3);
            asked.as_slice().iter().for_each(|b| got[b.index()] += 1);
        }
        // Three of five, 12,000 times each; five standard errors are 346.
        assert!([0, 1, 2, 3, 5].iter().all(|&b: &usize| got[b].abs_diff(12_000) < 346), "{got:?}");
        assert_eq!(got[4], 0);
        assert_eq!(asked(&mut polling(8), &cluster).as_slice().len(), 5);
    }

    #[test]
    fn the_least_load_per_weight_wins_and_ties_are_even() {
        let mut cluster = Cluster::new(4);
        let mut policy = polling(4);
        assert_eq!(chosen(&mut policy, &cluster, &[(0, 5), (3, 2), (1, 4)]), 3);
        let mut got = [0u32; 4];
        (0..9_000).for_each(|_| got[chosen(&mut policy, &cluster, &[(0, 1), (1, 1), (2, 2), (3, 1)])] += 1);
        // A third of 9,000 each; five standard errors are 224.
        assert!([0, 1, 3].iter().all(|&b: &usize| got[b].abs_diff(3_000) < 224) && got[2] == 0, "{got:?}");
        cluster.set_weight(BackendId(2), Weight::new(4.0).unwrap());
        assert_eq!(chosen(&mut policy, &cluster, &[(0, 2), (2, 7), (1, 3)]), 2, "7 / 4 is less than 2");
        assert_eq!(chosen(&mut policy, &cluster, &[(0, 2), (2, 9), (1, 3)]), 0);
    }

    #[test]
    fn without_answers_a_back_end_is_drawn_and_never_one_that_takes_no_requests() {
        let mut cluster = Cluster::new(3);
        cluster.set_health(BackendId(1), Health::Down);
        let mut policy = polling(2);
        let mut got = [0u32; 3];
        (0..1_000).for_each(|_| got[chosen(&mut policy, &cluster, &[])] += 1);
        assert!(got[0] > 400 && got[1] == 0 && got[2] > 400, "{got:?}");
        // It answered, and failed before the answer came.
        (0..100).for_each(|_| assert_ne!(chosen(&mut policy, &cluster, &[(1, 0)]), 1));
        assert_eq!(policy.stats()[1..], [("answers", 100.0), ("unanswered", 1_100.0)]);
    }

    #[test]
    fn one_back_end_and_one_choice_ask_nobody() {
        let mut cluster = Cluster::new(2);
        assert!(matches!(polling(1).choose(&REQUEST, &cluster, Time::ZERO), Decision::Assign(_)));
        cluster.set_health(BackendId(0), Health::Down);
        assert_eq!(polling(4).choose(&REQUEST, &cluster, Time::ZERO), Decision::Assign(BackendId(1)));
        cluster.set_health(BackendId(1), Health::Down);
        assert_eq!(polling(4).choose(&REQUEST, &cluster, Time::ZERO), Decision::Reject);
        assert_eq!(polling(1).choose(&REQUEST, &cluster, Time::ZERO), Decision::Reject);
    }
}
