//! Who asks back-ends for their loads.

use std::time::Duration;

use plimsoll_policy::Candidates;

/// Asks back-ends for their loads, from any thread. Dispatch calls it without holding its lock.
pub(crate) trait AsksBackends: Send + Sync {
    /// Asks these for the request of this number. `Dispatch::report` hears of each answer when it comes, `Dispatch::answer` of the end, within [`AsksBackends::timeout`]. One that
    /// is `alone` has nothing beside it that its thread could do.
    fn poll(&self, number: u64, candidates: Candidates, alone: bool);

    /// Asks these; no request waits for it. `Dispatch::report` hears of the answers.
    fn probe(&self, candidates: Candidates);

    /// How long answers are waited for at most.
    fn timeout(&self) -> Duration;
}
