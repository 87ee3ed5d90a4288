//! Offering a request to the core: options and results.

use super::assigned::{Assigned, Phase};
use crate::cluster::BackendId;
use crate::decision::{BackendList, Candidates};
use crate::time::Time;

/// Back-ends that a request has been tried on, the first ones of them.
pub type Tried = BackendList<16>;

/// What the core, but not the policy, knows of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfferOptions {
    /// Back-ends that already failed this request; excluded while another one is eligible.
    pub tried: Tried,
    /// The request is rejected if it still waits at this time; `None` for no deadline.
    pub deadline: Option<Time>,
    /// The phase in which an assignment begins.
    pub begins: Phase,
}

impl OfferOptions {
    /// No back-end tried, no deadline, load from the assignment on.
    pub const PLAIN: Self = Self { tried: Tried::NONE, deadline: None, begins: Phase::Active };
}

impl Default for OfferOptions {
    fn default() -> Self {
        Self::PLAIN
    }
}

/// Why a request was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// The queue is full.
    QueueFull,
    /// The policy found no back-end for it.
    NoBackend,
    /// It waited until its deadline.
    Expired,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// Assigned to a back-end, and counted.
    Assigned(Assigned),
    /// The runtime asks these back-ends for their load, and calls [`Core::answer`](super::Core::answer) with
    /// the answers that came in time.
    Poll(Candidates),
    /// Waits for room until [`Core::start_next`](super::Core::start_next) returns it.
    Waits,
    /// Rejected.
    Rejected(Rejection),
}

impl Offered {
    /// The assignment, if there is one.
    #[must_use]
    pub fn backend(&self) -> Option<BackendId> {
        match self {
            Self::Assigned(assigned) => Some(assigned.backend),
            _ => None,
        }
    }
}

/// A request that left the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// [`Request::number`](crate::Request::number).
    pub number: u64,
    /// The result; never [`Offered::Waits`].
    pub offered: Offered,
}
