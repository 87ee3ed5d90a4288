//! How much there was a moment ago.

use crate::time::{Nanos, Time};

/// Slots of this width; the past is this many of them ago.
const SLOT: Nanos = Nanos::from_millis(50);
const SLOTS: u64 = 2;

/// Remembers a count for a tenth of a second.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// At the start of the last slots, modulo their number.
    counts: [u64; SLOTS as usize],
    then: u64,
    /// The current slot, and when it ends.
    slot: u64,
    ends: Time,
}

impl Past {
    /// The count between 100 and 150 ms ago.
    pub(super) const fn then(&self) -> u64 {
        self.then
    }

    /// Time has come to `now`; until now there were `count`.
    #[inline]
    pub(super) fn advance(&mut self, count: u64, now: Time) {
        if now >= self.ends {
            self.next_slot(count, now);
        }
    }

    #[inline(never)]
    fn next_slot(&mut self, count: u64, now: Time) {
        let slot = now.as_nanos() / SLOT.as_nanos();
        // After a longer pause all of them are alike.
        for passed in self.slot + 1..=slot.min(self.slot + SLOTS + 1) {
            self.then = std::mem::replace(&mut self.counts[(passed % SLOTS) as usize], count);
        }
        self.slot = slot;
        self.ends = Time::from_nanos((slot + 1).saturating_mul(SLOT.as_nanos()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_a_tenth_of_a_second_ago() {
        let mut past = Past::default();
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        past.advance(0, ms(10));
        assert_eq!(past.then(), 0);
        past.advance(7, ms(50));
        past.advance(9, ms(99));
        for (time, count, then) in [(100, 9, 0), (150, 11, 7), (199, 99, 7), (200, 12, 9), (250, 13, 11)] {
            past.advance(count, ms(time));
            assert_eq!(past.then(), then, "{time} ms");
        }
        past.advance(20, ms(10_000));
        assert_eq!(past.then(), 20);
    }
}
