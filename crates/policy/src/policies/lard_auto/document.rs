//! What the policy knows of a target.

use smallvec::SmallVec;

use crate::cluster::{BackendId, ClusterView};

/// Requests in which the count of a target's recent ones falls to 37 %.
const HORIZON: f64 = 30_000.0;
/// A copy is dropped that got none of so many requests for the target for each copy that there is.
const UNUSED_REQUESTS: u32 = 16;

/// A back-end that has a document, or is reading it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopyAt {
    pub(super) backend: BackendId,
    /// The target's number of requests when it got the last one.
    pub(super) used: u32,
    /// The back-end's clock then, see [`super::costs::LearnedCosts`].
    pub(super) clock: u32,
    /// It is still being read, as far as is known.
    pub(super) reading: bool,
}

/// What is known of a target.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownDocument {
    /// The one used last is last. Two fit without a heap allocation.
    pub(super) copies: SmallVec<[CopyAt; 2]>,
    /// Requests for it; only differences count.
    pub(super) requests: u32,
    /// Recent ones of these, as of `counted_at`.
    pub(super) recent: f32,
    /// Number of the assignment at which that was.
    pub(super) counted_at: u64,
}

impl KnownDocument {
    /// Counts a request; returns how many there were lately before it.
    pub(super) fn count(&mut self, assigned: u64) -> f64 {
        let passed = assigned.saturating_sub(self.counted_at) as f64;
        let recent = f64::from(self.recent) * libm::exp(-passed / HORIZON);
        self.recent = (recent + 1.0) as f32;
        self.counted_at = assigned;
        self.requests = self.requests.wrapping_add(1);
        recent
    }

    /// Drops copies that are not needed, or cannot be used. Returns how many.
    pub(super) fn drop_unused(&mut self, view: &ClusterView) -> u64 {
        let (before, requests) = (self.copies.len(), self.requests);
        let most = UNUSED_REQUESTS.saturating_mul(before as u32);
        let needed = |copy: &CopyAt| before == 1 || requests.wrapping_sub(copy.used) <= most;
        self.copies.retain(|copy| view.is_eligible(copy.backend) && needed(copy));
        (before - self.copies.len()) as u64
    }

    /// `b` gets a request.
    pub(super) fn use_copy(&mut self, b: BackendId, reads: bool, clock: u32) {
        let at = self.copies.iter().position(|copy| copy.backend == b);
        let before = at.is_some_and(|at| self.copies.remove(at).reading);
        let reading = reads || before;
        self.copies.push(CopyAt { backend: b, used: self.requests, clock, reading });
    }
}
