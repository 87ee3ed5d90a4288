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
    /// The last request for it began to read it, or waited for that; it may have ended since.
    pub(super) reading: bool,
}

/// What is known of a target.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownDocument {
    /// The one used last is last. One fits without a heap allocation, and all of this into a cache line.
    pub(super) copies: SmallVec<[CopyAt; 1]>,
    /// Requests for it; only differences count.
    pub(super) requests: u32,
    /// Recent ones of these, as of `counted_at`.
    pub(super) recent: f32,
    /// Number of the assignment at which that was, modulo 2^32.
    pub(super) counted_at: u32,
}

impl KnownDocument {
    /// Counts a request; returns how many there were lately before it.
    pub(super) fn count(&mut self, assigned: u64) -> f64 {
        let passed = (assigned as u32).wrapping_sub(self.counted_at);
        let recent = f64::from(self.recent) * libm::exp(-f64::from(passed) / HORIZON);
        self.recent = (recent + 1.0) as f32;
        self.counted_at = assigned as u32;
        self.requests = self.requests.wrapping_add(1);
        recent
    }

    /// Drops copies that are not needed, or cannot be used. Returns how many.
    pub(super) fn drop_unused(&mut self, view: &ClusterView) -> u64 {
        let (before, requests) = (self.copies.len(), self.requests);
        // Most targets have one copy, which is never too many.
        if before == 1 && view.is_eligible(self.copies[0].backend) {
            return 0;
        }
        let most = UNUSED_REQUESTS.saturating_mul(before as u32);
        let needed = |copy: &CopyAt| requests.wrapping_sub(copy.used) <= most;
        self.copies.retain(|copy| view.is_eligible(copy.backend) && needed(copy));
        (before - self.copies.len()) as u64
    }

    /// `b` gets a request, which begins to read the document or waits for a read of it if `reading`.
    pub(super) fn use_copy(&mut self, b: BackendId, reading: bool, clock: u32) {
        let copy = CopyAt { backend: b, used: self.requests, clock, reading };
        match self.copies.last_mut() {
            Some(last) if last.backend == b => *last = copy,
            _ => {
                self.copies.retain(|other| other.backend != b);
                self.copies.push(copy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place_table::{CacheLine, Slot};

    #[test]
    fn with_its_slot_it_fills_a_cache_line() {
        type Filled = Slot<KnownDocument, CacheLine>;
        assert_eq!((size_of::<Filled>(), align_of::<Filled>()), (64, 64));
    }

    #[test]
    fn a_copy_that_is_used_is_last() {
        let mut document = KnownDocument::default();
        for b in [0, 1, 0, 0] {
            document.use_copy(BackendId(b), b == 1, 7);
        }
        let copies: Vec<_> =
            document.copies.iter().map(|copy| (copy.backend.index(), copy.reading)).collect();
        assert_eq!(copies, [(1, true), (0, false)]);
    }
}
