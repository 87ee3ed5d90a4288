//! How much the front-end holds for requests whose clients send or read slowly, so that no back-end waits for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// For how many requests can be held at least.
const LEAST_REQUESTS: usize = 32;

/// How many bytes may be held for one request, where `most_bytes` may be for all.
pub(crate) fn most_for_one(most_bytes: usize) -> usize {
    most_bytes / LEAST_REQUESTS
}

/// What all workers hold now.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldMemory {
    bytes: Arc<AtomicUsize>,
}

impl HeldMemory {
    /// How many bytes are held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Nothing yet, for one request.
    pub(crate) fn share(&self) -> HeldShare {
        HeldShare { memory: self.clone(), bytes: 0 }
    }
}

/// What is held for one request.
#[derive(Debug)]
pub(crate) struct HeldShare {
    memory: HeldMemory,
    bytes: usize,
}

impl HeldShare {
    /// How many bytes are held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds so many bytes more; false, and nothing done, where that is more than one request may have, or all of them, for
    /// which `most_bytes` may be held.
    pub(crate) fn grow(&mut self, more_bytes: usize, most_bytes: usize) -> bool {
        if self.bytes.saturating_add(more_bytes) > most_for_one(most_bytes) {
            return false;
        }
        let add = |held: usize| held.checked_add(more_bytes).filter(|&bytes| bytes <= most_bytes);
        let grows = self.memory.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        self.bytes += if grows { more_bytes } else { 0 };
        grows
    }

    /// Gives so many bytes back.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let given = bytes.min(self.bytes);
        self.bytes -= given;
        self.memory.bytes.fetch_sub(given, Ordering::Relaxed);
    }
}

impl Drop for HeldShare {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_held_than_may_be_for_one_and_for_all() {
        let memory = HeldMemory::default();
        let most_bytes = 64 * LEAST_REQUESTS;
        let mut first = memory.share();
        assert!(first.grow(40, most_bytes) && !first.grow(25, most_bytes) && first.grow(24, most_bytes));
        let others: Vec<HeldShare> = (1..LEAST_REQUESTS)
            .map(|_| {
                let mut share = memory.share();
                assert!(share.grow(64, most_bytes));
                share
            })
            .collect();
        assert_eq!(memory.bytes(), most_bytes);
        let mut late = memory.share();
        assert!(!late.grow(1, most_bytes) && late.grow(0, most_bytes));
        first.shrink(10);
        assert!(!late.grow(11, most_bytes) && late.grow(10, most_bytes));
        drop((first, others));
        assert_eq!((memory.bytes(), late.bytes()), (10, 10));
        late.shrink(11);
        assert_eq!(memory.bytes(), 0);
    }
}
