//! A bound below what a request costs at any back-end, so that most choices need not look at every one.
//!
//! ```text
//! floor  <- (1 + least load - most requests that wait for reads) * shortest hit + price * shortest read
//! ```
//!
//! The least load is that of the view, and the others are of what was learned, so the bound holds whatever has changed since the last choice.

/// How many samples are learned from before the shortest times are looked for again: until then, they only fall.
const REFRESH: u32 = 64;

/// The shortest hit and the shortest read of any back-end, by position, in nanoseconds: none of the means in which they are mixed with what
/// was learned of all is below both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ShortestTimes {
    pub(super) hit_ns: f64,
    pub(super) read_ns: f64,
}

impl ShortestTimes {
    /// Of no back-end.
    pub(super) const NONE: Self = Self { hit_ns: f64::INFINITY, read_ns: f64::INFINITY };

    /// The shorter ones of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self { hit_ns: self.hit_ns.min(other.hit_ns), read_ns: self.read_ns.min(other.read_ns) }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct CostFloor {
    shortest: ShortestTimes,
    learned: u32,
}

impl Default for CostFloor {
    fn default() -> Self {
        Self { shortest: ShortestTimes::NONE, learned: 0 }
    }
}

impl CostFloor {
    /// The own times of a back-end are new; `each` returns those of every back-end, where it is time to look at all.
    pub(super) fn learn<I: Iterator<Item = ShortestTimes>>(
        &mut self,
        changed: ShortestTimes,
        each: impl FnOnce() -> I,
    ) {
        self.learned = (self.learned + 1) % REFRESH;
        self.shortest = match self.learned {
            0 => each().fold(ShortestTimes::NONE, ShortestTimes::and),
            _ => self.shortest.and(changed),
        };
    }

    /// The bound, in nanoseconds, where `all` was learned of all back-ends, a read counts as `price` ones, and so many requests at least
    /// wait for none at each back-end.
    #[inline]
    pub(super) fn cost_ns(&self, all: ShortestTimes, price: f64, requests: f64) -> f64 {
        let ShortestTimes { hit_ns, read_ns } = self.shortest.and(all);
        (1.0 + requests) * hit_ns.max(0.0) + price * read_ns.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::iter::{empty, once};

    use super::*;

    const ALL: ShortestTimes = ShortestTimes { hit_ns: 100.0, read_ns: 1000.0 };

    #[test]
    fn it_is_what_the_fastest_back_end_would_take() {
        let mut floor = CostFloor::default();
        assert_eq!(floor.cost_ns(ALL, 2.0, 4.0), 500.0 + 2000.0);
        floor.learn(ShortestTimes { hit_ns: 50.0, read_ns: 2000.0 }, empty);
        assert_eq!(floor.cost_ns(ALL, 2.0, 4.0), 250.0 + 2000.0);
        floor.learn(ShortestTimes { hit_ns: 70.0, read_ns: -5.0 }, empty);
        assert_eq!(floor.cost_ns(ALL, 2.0, 4.0), 250.0, "a read takes no less than nothing");
    }

    #[test]
    fn the_shortest_times_are_looked_for_now_and_then() {
        let mut floor = CostFloor::default();
        let looked = Cell::new(0);
        let each = || {
            looked.set(looked.get() + 1);
            once(ALL)
        };
        (0..640).for_each(|_| floor.learn(ALL, each));
        assert_eq!(looked.get(), 10);
    }
}
