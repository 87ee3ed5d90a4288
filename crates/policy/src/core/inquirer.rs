//! Whom to ask for their load on behalf of policies that do not ask by themselves.

use crate::cluster::{BackendId, ClusterView};
use crate::decision::{Candidates, Decision, PollAnswer};
use crate::rng::Rng;

/// Stream of the run's seed that the back-ends to ask are drawn from.
const STREAM: u64 = 0x696e_7100;

/// How the core asks on behalf of policies that do not poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inquiries {
    /// How many back-ends it asks before each choice: 1 to 8.
    pub size: u8,
    /// Seed of the run.
    pub seed: u64,
}

/// Draws back-ends.
#[derive(Debug)]
pub(super) struct Inquirer {
    pub(super) inquiries: Inquiries,
    rng: Rng,
}

impl Inquirer {
    pub(super) fn new(inquiries: Inquiries) -> Self {
        Self { inquiries, rng: Rng::new(inquiries.seed, STREAM) }
    }

    pub(super) fn ask(&mut self, view: &ClusterView) -> Decision {
        let candidates = random_candidates(view, usize::from(self.inquiries.size), &mut self.rng);
        if candidates.as_slice().is_empty() { Decision::Reject } else { Decision::Poll(candidates) }
    }
}

/// `size` different back-ends that take requests, each sequence of them with the same probability; all of them where there are no
/// more.
#[must_use]
pub fn random_candidates(view: &ClusterView, size: usize, rng: &mut Rng) -> Candidates {
    // The k-th eligible one is the k-th index where every index is.
    if view.eligible() == view.len() {
        let drawn = match view.len() {
            len @ 2.. if size == 2 => pair(len as u64, rng),
            len => sample(len, size, rng, |k| Some(BackendId::new(k))),
        };
        if drawn.as_slice().iter().all(|&b| view.is_eligible(b)) {
            return drawn;
        }
    }
    // Some take no requests, or have failed this one.
    sample(view.eligible_ids().count(), size, rng, |k| view.eligible_ids().nth(k))
}

/// What [`sample`] draws for the usual size, in half of the time.
#[inline]
fn pair(all: u64, rng: &mut Rng) -> Candidates {
    let (first, second) = (rng.below(all - 1), rng.below(all));
    let drawn = if first == second { [first, all - 1] } else { [second, first] };
    Candidates::new(drawn.map(|k| BackendId(k as u16)))
}

/// `size` of `all`, in random order: who answers last must not always be the same one. Source: Bentley and Floyd, "A sample of
/// brilliance", Communications of the ACM 30 (9), 1987, algorithm P.
#[inline(always)]
fn sample(all: usize, size: usize, rng: &mut Rng, nth: impl Fn(usize) -> Option<BackendId>) -> Candidates {
    let size = size.min(Candidates::MOST).min(all);
    let mut chosen = Candidates::NONE;
    for last in all - size..all {
        let Some(drawn) = nth(rng.below(last as u64 + 1) as usize) else { break };
        match chosen.as_slice().iter().position(|&b| b == drawn) {
            None => chosen.insert(0, drawn),
            Some(at) => {
                let Some(other) = nth(last) else { break };
                chosen.insert(at + 1, other);
            }
        }
    }
    chosen
}

/// Answers of back-ends that are there, none below the front-end's own count; no more than a policy asks for.
pub(super) struct Heard {
    pub(super) answers: [PollAnswer; Candidates::MOST],
    pub(super) len: usize,
}

impl Heard {
    pub(super) const NONE: Self =
        Self { answers: [PollAnswer::of(BackendId(0), 0); Candidates::MOST], len: 0 };
}
