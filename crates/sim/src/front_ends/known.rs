//! Loads that front-ends do not ask for, because they were told a moment ago.

use plimsoll_policy::{BackendId, Candidates, FreshLoads, Nanos, PollAnswer, Time};

/// See the module's documentation.
pub(super) struct KnownLoads {
    /// By core.
    fresh: Vec<FreshLoads>,
    /// By the place of a poll under way: those of its back-ends that were not asked.
    known: Vec<Candidates>,
}

impl KnownLoads {
    pub(super) fn new(max_age: Nanos, cores: usize) -> Self {
        Self { fresh: vec![FreshLoads::new(max_age); cores], known: Vec::new() }
    }

    /// Those of `candidates` that are known to this core, and those that it asks.
    pub(super) fn split(&self, core: u16, candidates: Candidates, now: Time) -> (Candidates, Candidates) {
        self.fresh[usize::from(core)].split(candidates, now)
    }

    /// What `b` has told counts no more: it has failed.
    pub(super) fn forget(&mut self, b: BackendId) {
        self.fresh.iter_mut().for_each(|fresh| fresh.forget(b));
    }

    /// The poll in this place need not ask these.
    pub(super) fn keep(&mut self, place: u32, known: Candidates) {
        let place = place as usize;
        if self.known.len() <= place {
            self.known.resize(place + 1, Candidates::NONE);
        }
        self.known[place] = known;
    }

    /// The poll in this place has ended with these answers. Returns what it needed not ask.
    pub(super) fn end(&mut self, core: u16, place: u32, answers: &[PollAnswer], now: Time) -> Candidates {
        let fresh = &mut self.fresh[usize::from(core)];
        answers.iter().for_each(|answer| fresh.tell(answer.backend, now));
        self.known.get(place as usize).copied().unwrap_or(Candidates::NONE)
    }
}
