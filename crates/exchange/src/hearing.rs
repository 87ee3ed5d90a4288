//! When back-ends were last heard of.

use std::collections::BTreeMap;

/// Intervals of silence after which what a back-end has told counts no more.
const INTERVALS: u64 = 3;
/// A back-end's own interval counts from this on, and up to so many times the configured one: who tells of a longer one must not be able to
/// fall silent unnoticed. It is asked meanwhile.
const LEAST_OWN_NS: u64 = 10_000_000;
const MOST_OWN: u64 = 10;

#[derive(Debug, Clone, Copy)]
struct Heard {
    at_ns: u64,
    interval_ns: u64,
}

/// When back-ends were last heard of, by index. One that was never heard of counts from when it was first looked for.
#[derive(Debug)]
pub struct Hearing {
    interval_ns: u64,
    heard: BTreeMap<usize, Heard>,
}

impl Hearing {
    /// With this interval, where a back-end does not tell its own.
    #[must_use]
    pub fn new(interval_ns: u64) -> Self {
        Self { interval_ns, heard: BTreeMap::new() }
    }

    /// A load came from this back-end; the next is to come in this time.
    pub fn heard(&mut self, index: usize, interval_ns: Option<u64>, now_ns: u64) {
        let before = self.heard.get(&index).map(|heard| heard.interval_ns);
        let most_ns = self.interval_ns.saturating_mul(MOST_OWN).max(LEAST_OWN_NS);
        let told_ns = interval_ns.map(|told_ns| told_ns.clamp(LEAST_OWN_NS, most_ns));
        let interval_ns = told_ns.or(before).unwrap_or(self.interval_ns);
        self.heard.insert(index, Heard { at_ns: now_ns, interval_ns });
    }

    /// For how many intervals nothing was heard of it, in halves.
    pub fn half_intervals(&mut self, index: usize, now_ns: u64) -> u64 {
        let interval_ns = self.interval_ns;
        let heard = self.heard.entry(index).or_insert(Heard { at_ns: now_ns, interval_ns });
        now_ns.saturating_sub(heard.at_ns).saturating_mul(2) / heard.interval_ns.max(1)
    }

    /// Whether it was silent for too long.
    pub fn is_silent(&mut self, index: usize, now_ns: u64) -> bool {
        self.half_intervals(index, now_ns) >= 2 * INTERVALS
    }

    /// Forgets all but these.
    pub fn keep(&mut self, is_there: impl Fn(usize) -> bool) {
        self.heard.retain(|&index, _| is_there(index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn silent_after_three_intervals() {
        let mut hearing = Hearing::new(100 * MS);
        assert!(!hearing.is_silent(1, 1000 * MS), "looked for the first time");
        assert!(!hearing.is_silent(1, 1299 * MS));
        assert!(hearing.is_silent(1, 1300 * MS));
        hearing.heard(1, Some(1000 * MS), 1400 * MS);
        assert_eq!(hearing.half_intervals(1, 2400 * MS), 2);
        assert!(!hearing.is_silent(1, 4399 * MS) && hearing.is_silent(1, 4400 * MS), "by its own interval");
        hearing.heard(1, None, 5000 * MS);
        assert!(!hearing.is_silent(1, 7999 * MS));
        hearing.keep(|index| index != 1);
        assert!(!hearing.is_silent(1, 9000 * MS), "another one at its index");
    }

    #[test]
    fn a_told_interval_counts_within_bounds() {
        let mut hearing = Hearing::new(100 * MS);
        for told_ns in [1001 * MS, 3_600_000 * MS, u64::MAX] {
            hearing.heard(1, Some(told_ns), 0);
            assert!(!hearing.is_silent(1, 2999 * MS) && hearing.is_silent(1, 3000 * MS), "{told_ns}");
        }
        hearing.heard(1, Some(0), 0);
        assert!(!hearing.is_silent(1, 29 * MS) && hearing.is_silent(1, 30 * MS));
    }
}
