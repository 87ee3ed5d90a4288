//! A request that has a back-end, as its runtime holds it until the end.

use crate::cluster::BackendId;
use crate::request::{Outcome, TargetId};
use crate::time::Time;

/// How far a request is that has a back-end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Chosen ahead for a request that has not come yet. Counts as load; the policy has not been told.
    Prepared,
    /// The client's connection is not established yet. Takes room under the admission limit, but is no load.
    Connecting,
    /// The back-end works on it. Counts as load.
    Active,
    /// The back-end is done, and only the client still reads. No load, and takes no room.
    Reading,
}

impl Phase {
    /// Whether a request in this phase counts in its back-end's load.
    #[must_use]
    #[inline]
    pub const fn is_load(self) -> bool {
        matches!(self, Self::Prepared | Self::Active)
    }
}

/// A request that has a back-end. The runtime keeps it and hands it back to [`Core::complete`](super::Core::complete)
/// exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assigned {
    /// [`Request::number`](crate::Request::number).
    pub number: u64,
    /// What is asked for.
    pub target: TargetId,
    /// Who has it.
    pub backend: BackendId,
    /// When it was assigned.
    pub at: Time,
    pub(super) phase: Phase,
    /// Which policy object assigned it; [`NO_POLICY`] for one that stays with its back-end.
    pub(super) epoch: u32,
    /// Which of the back-ends that have had this index.
    pub(super) generation: u32,
}

/// Epoch of requests that no policy was asked about.
pub(super) const NO_POLICY: u32 = u32::MAX;

impl Assigned {
    /// A request that a back-end has and that no core assigned: for those who tell a witness of a past that they know otherwise.
    #[must_use]
    pub fn told(number: u64, target: TargetId, backend: BackendId, at: Time, phase: Phase) -> Self {
        Self { number, target, backend, at, phase, epoch: NO_POLICY, generation: 0 }
    }

    /// How far it is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }
}

/// How a request ended, as the runtime knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// Answered, or lost.
    pub outcome: Outcome,
    /// Bytes of the response body, where known.
    pub size_bytes: Option<u64>,
}

impl Ending {
    /// Lost: the back-end failed, or the client went away.
    pub const FAILED: Self = Self { outcome: Outcome::Failed, size_bytes: None };

    /// Answered with a body of this many bytes, where that is known.
    #[must_use]
    pub const fn answered(size_bytes: Option<u64>) -> Self {
        Self { outcome: Outcome::Completed, size_bytes }
    }
}
