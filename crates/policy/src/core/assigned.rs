//! An assigned request, which its runtime holds until it ends.

use crate::cluster::BackendId;
use crate::request::{Outcome, TargetId};
use crate::time::Time;

/// The phase of an assigned request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A prepared choice: the back-end was chosen before the request came. Counts as load; `on_assign` has
    /// not been called.
    Prepared,
    /// The client's connection is not established yet. Counts against the admission limit, but not as load.
    Connecting,
    /// The back-end is working on it. Counts as load.
    Active,
    /// Only its client is waited for, which is still reading the answer or has yet to send the rest of the
    /// request; or its back-end has left. Counts neither as load nor against the admission limit.
    Stalled,
}

impl Phase {
    /// Whether a request in this phase counts in its back-end's load.
    #[must_use]
    #[inline]
    pub const fn is_load(self) -> bool {
        matches!(self, Self::Prepared | Self::Active)
    }
}

/// An assigned request. The runtime keeps it and passes it to [`Core::complete`](super::Core::complete)
/// exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assigned {
    /// [`Request::number`](crate::Request::number).
    pub number: u64,
    /// What is asked for.
    pub target: TargetId,
    /// The back-end it is assigned to.
    pub backend: BackendId,
    /// When it was assigned.
    pub at: Time,
    pub(super) phase: Phase,
    /// Epoch of the policy that assigned it; [`NO_POLICY`] for a request that stayed with its connection's
    /// back-end.
    pub(super) epoch: u32,
    /// Generation of the back-end: how many had this index before it.
    pub(super) generation: u32,
    /// Its client was waited for, so that its response time says nothing of the back-end.
    pub(super) has_stalled: bool,
    pub(super) class: u16,
}

/// Sentinel: the policy was not asked about the request.
pub(super) const NO_POLICY: u32 = u32::MAX;

impl Assigned {
    /// An assigned request that no core assigned. Lets a witness hear of requests from before the core began.
    #[must_use]
    pub fn told(number: u64, target: TargetId, backend: BackendId, at: Time, phase: Phase) -> Self {
        let (epoch, generation) = (NO_POLICY, 0);
        Self { number, target, backend, at, phase, epoch, generation, has_stalled: false, class: 0 }
    }

    /// Its phase.
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
    /// Whether the back-end had the content in its cache, where it told so.
    pub hit: Option<bool>,
}

impl Ending {
    /// Lost: the back-end failed, or the client went away.
    pub const FAILED: Self = Self::of(Outcome::Failed);

    /// Ended so; nothing else is known.
    #[must_use]
    pub const fn of(outcome: Outcome) -> Self {
        Self { outcome, size_bytes: None, hit: None }
    }

    /// Answered with a body of this many bytes, where that is known.
    #[must_use]
    pub const fn answered(size_bytes: Option<u64>) -> Self {
        Self { outcome: Outcome::Completed, size_bytes, hit: None }
    }

    /// The same of a back-end that told whether it had the content in its cache.
    #[must_use]
    pub const fn with_hit(self, hit: Option<bool>) -> Self {
        Self { hit, ..self }
    }
}
