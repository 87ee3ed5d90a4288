//! A cost board: work of one resource of one back-end, by the time at which it will be done.
//!
//! Source: Hyun et al., section 3.3 and figure 4.

use crate::time::{Nanos, Time};

/// A circular array of slots, each of the same span of time. A slot holds no more work than its span; what does not fit goes into
/// the slots after it, and what does not fit on the board is dropped.
#[derive(Debug, Clone)]
pub struct CostBoard {
    slots: Box<[u64]>,
    slot_ns: u64,
    /// Number since time zero of the first slot on the board.
    first: u64,
}

impl CostBoard {
    /// An empty board of `slots` slots of `slot` each, from time zero on. At least one slot, and one nanosecond.
    #[must_use]
    pub fn new(slots: usize, slot: Nanos) -> Self {
        Self { slots: vec![0; slots.max(1)].into(), slot_ns: slot.as_nanos().max(1), first: 0 }
    }

    fn place(&self, number: u64) -> usize {
        (number % self.slots.len() as u64) as usize
    }

    /// Number since time zero of the slot that holds `at`.
    #[must_use]
    #[inline]
    pub fn slot_of(&self, at: Time) -> u64 {
        at.as_nanos() / self.slot_ns
    }

    /// Adds work that begins at `at`. A time before the board counts as its beginning.
    #[inline]
    pub fn add(&mut self, at: Time, cost: Nanos) {
        let number = self.slot_of(at).max(self.first);
        let end = self.first + self.slots.len() as u64;
        if number >= end {
            return;
        }
        let place = self.place(number);
        let filled = self.slots[place].saturating_add(cost.as_nanos());
        self.slots[place] = filled.min(self.slot_ns);
        if filled > self.slot_ns {
            self.overflow(number + 1, end, filled - self.slot_ns);
        }
    }

    fn overflow(&mut self, from: u64, end: u64, mut left: u64) {
        for number in from..end {
            let place = self.place(number);
            let filled = self.slots[place].saturating_add(left);
            self.slots[place] = filled.min(self.slot_ns);
            left = filled.saturating_sub(self.slot_ns);
            if left == 0 {
                return;
            }
        }
    }

    /// The work in `slots` slots from the one of `from` on, as far as they are on the board.
    #[must_use]
    pub fn total(&self, from: Time, slots: u64) -> Nanos {
        let first = self.slot_of(from).max(self.first);
        let end = first.saturating_add(slots).min(self.first + self.slots.len() as u64);
        Nanos::new((first..end).map(|number| self.slots[self.place(number)]).sum())
    }

    /// The work in all slots from the one of `from` on.
    #[must_use]
    pub fn total_from(&self, from: Time) -> Nanos {
        self.total(from, self.slots.len() as u64)
    }

    /// Empties the slots from the one of `from` up to, without it, the one of `until`.
    pub fn clear(&mut self, from: Time, until: Time) {
        let first = self.slot_of(from);
        let end = self.slot_of(until).min(first + self.slots.len() as u64);
        for number in first..end {
            let place = self.place(number);
            self.slots[place] = 0;
        }
    }

    /// Empties the first `slots` slots of the board.
    pub fn clear_next(&mut self, slots: u64) {
        let first = Time::from_nanos(self.first * self.slot_ns);
        let until = self.first.saturating_add(slots).saturating_mul(self.slot_ns);
        self.clear(first, Time::from_nanos(until));
    }

    /// The board begins with the slot of `now` from here on. Slots that are left behind come back at the board's end, with what they
    /// hold: clear them before.
    pub fn advance(&mut self, now: Time) {
        self.first = self.slot_of(now).max(self.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + ms(milliseconds)
    }

    #[test]
    fn what_does_not_fit_goes_into_the_next_slots() {
        let mut board = CostBoard::new(4, ms(50));
        board.add(at(0), ms(30));
        board.add(at(49), ms(30)); // 20 fit, 10 go on
        board.add(at(60), ms(120)); // 40 fit, then 50, then 30
        let slot = |n: u64| board.total(at(50 * n), 1);
        assert_eq!([slot(0), slot(1), slot(2), slot(3)], [ms(50), ms(50), ms(50), ms(30)]);
        // 20 fit, 80 are dropped with what is beyond.
        board.add(at(199), ms(100));
        board.add(at(200), ms(7));
        assert_eq!(board.total_from(at(0)), ms(200));
    }

    #[test]
    fn it_is_circular() {
        let mut board = CostBoard::new(4, ms(50));
        board.add(at(0), ms(10));
        board.add(at(150), ms(20));
        board.advance(at(100));
        // Slots 2 to 5: those of 0 and 1 are now 4 and 5, with what they held.
        assert_eq!((board.total(at(150), 1), board.total(at(200), 1)), (ms(20), ms(10)));
        board.clear(at(0), at(100));
        assert_eq!((board.total(at(200), 1), board.total_from(at(100))), (Nanos::ZERO, ms(20)));
        board.add(at(20), ms(5)); // before the board: into its first slot
        board.add(at(299), ms(60)); // into the last one
        assert_eq!(board.total_from(at(100)), ms(75));
        assert_eq!(board.total(at(250), 100), ms(50));
    }

    #[test]
    fn no_time_is_too_late() {
        let mut board = CostBoard::new(2, Nanos::new(1));
        board.add(Time::MAX, ms(1));
        board.clear(Time::ZERO, Time::MAX);
        board.advance(Time::from_nanos(u64::MAX - 2));
        board.add(Time::from_nanos(u64::MAX - 2), Nanos::MAX);
        assert_eq!(board.total_from(Time::ZERO), Nanos::new(2));
    }
}
