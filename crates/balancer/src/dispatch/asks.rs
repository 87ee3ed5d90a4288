//! Who asks back-ends for their loads.

use std::time::Duration;

use plimsoll_policy::{Candidates, LoadReport};

/// What comes of polls.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PollNews {
    /// A back-end has told its load.
    Told(LoadReport),
    /// The request of this number waits no more for back-ends that were asked; these have told their loads.
    Ended { number: u64, heard: Candidates },
}

/// Asks back-ends for their loads, from any thread. Dispatch calls it without holding its lock.
pub(crate) trait AsksBackends: Send + Sync {
    /// Asks these for the request of this number. `Dispatch::take_in` hears of each answer when it comes, and of the end within
    /// [`AsksBackends::timeout`]. One that is `alone` has nothing beside it that its thread could do.
    fn poll(&self, number: u64, candidates: Candidates, alone: bool);

    /// Asks these; no request waits for it. `Dispatch::take_in` hears of the answers.
    fn probe(&self, candidates: Candidates);

    /// How long answers are waited for at most.
    fn timeout(&self) -> Duration;
}
