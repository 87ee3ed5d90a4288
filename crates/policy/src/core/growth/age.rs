//! Counts by age.

use crate::time::{Nanos, Time};

/// Counts requests that are load and were assigned in the last N slots of time.
#[derive(Debug)]
pub(super) struct AgeCount<const N: usize> {
    width: Nanos,
    /// By the slot of the assignment, modulo N.
    counts: [u64; N],
    sum: u64,
    /// The current slot, and when it ends.
    slot: u64,
    ends: Time,
}

impl<const N: usize> AgeCount<N> {
    /// None yet, in slots of this width.
    pub(super) const fn new(width: Nanos) -> Self {
        Self { width, counts: [0; N], sum: 0, slot: 0, ends: Time::ZERO }
    }

    /// How many there are.
    pub(super) const fn sum(&self) -> u64 {
        self.sum
    }

    /// How many there are in the last slots, the current one included.
    pub(super) fn sum_of_last(&self, slots: usize) -> u64 {
        if slots >= N {
            return self.sum;
        }
        let first = (self.slot + 1).saturating_sub(slots as u64);
        (first..=self.slot).map(|slot| self.counts[(slot % N as u64) as usize]).sum()
    }

    /// Time has come to `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) {
        if now >= self.ends {
            self.next_slot(now);
        }
    }

    #[inline(never)]
    fn next_slot(&mut self, now: Time) {
        let slot = now.as_nanos() / self.width.as_nanos();
        for passed in self.slot + 1..=slot.min(self.slot + N as u64) {
            self.sum -= std::mem::take(&mut self.counts[(passed % N as u64) as usize]);
        }
        self.slot = slot;
        self.ends = Time::from_nanos((slot + 1).saturating_mul(self.width.as_nanos()));
    }

    /// The slot of a request that was assigned at `at`, if it still counts.
    fn of(&mut self, at: Time) -> Option<&mut u64> {
        let slot = at.as_nanos() / self.width.as_nanos();
        (slot + N as u64 > self.slot).then(|| &mut self.counts[(slot % N as u64) as usize])
    }

    /// One more, assigned at `at`.
    pub(super) fn add(&mut self, at: Time) {
        if let Some(count) = self.of(at) {
            *count += 1;
            self.sum += 1;
        }
    }

    /// One less.
    pub(super) fn remove(&mut self, at: Time) {
        if let Some(count) = self.of(at).filter(|count| **count > 0) {
            *count -= 1;
            self.sum -= 1;
        }
    }
}
