//! What a runtime may say of a request beside what the policy sees, and what becomes of the request.

use super::assigned::{Assigned, Phase};
use crate::cluster::BackendId;
use crate::policy::Candidates;
use crate::time::Time;

/// Back-ends that a request has been tried on: at most [`Candidates::MOST`], the first ones.
pub type Tried = Candidates;

/// What a runtime says of a request beside what the policy sees of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfferOptions {
    /// Back-ends that failed this request already: none of them is chosen while another one takes requests.
    pub tried: Tried,
    /// A request that still waits at this time is rejected; `None` for as long as it takes.
    pub deadline: Option<Time>,
    /// The phase that an assignment begins in.
    pub begins: Phase,
}

impl OfferOptions {
    /// Tried on none, without a deadline, load from the assignment on.
    pub const PLAIN: Self = Self { tried: Tried::NONE, deadline: None, begins: Phase::Active };
}

impl Default for OfferOptions {
    fn default() -> Self {
        Self::PLAIN
    }
}

/// Why a request was turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// As many requests wait as may.
    QueueFull,
    /// The policy found no back-end for it.
    NoBackend,
    /// It waited until its deadline.
    Expired,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// A back-end has it. It has been counted.
    Assigned(Assigned),
    /// The runtime asks these back-ends for their load and comes back through [`Core::answer`](super::Core::answer), with
    /// what answers it has when its time is up.
    Poll(Candidates),
    /// It waits for room; [`Core::start_next`](super::Core::start_next) tells when it leaves the queue.
    Waits,
    /// It is turned away.
    Rejected(Rejection),
}

impl Offered {
    /// Who has it, if it was assigned.
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
    /// What becomes of it; never [`Offered::Waits`].
    pub offered: Offered,
}
