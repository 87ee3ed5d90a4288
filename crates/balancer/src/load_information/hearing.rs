//! When back-ends were last heard of.

use std::collections::BTreeMap;

/// Intervals of silence after which what a back-end has told counts no more.
const INTERVALS: u64 = 3;

#[derive(Debug, Clone, Copy)]
struct Heard {
    at_ns: u64,
    interval_ns: u64,
}

/// When back-ends were last heard of, by index. One that was never heard of counts from when it was first looked for.
#[derive(Debug)]
pub(super) struct Hearing {
    interval_ns: u64,
    heard: BTreeMap<usize, Heard>,
}

impl Hearing {
    /// With this interval, where a back-end does not tell its own.
    pub(super) fn new(interval_ns: u64) -> Self {
        Self { interval_ns, heard: BTreeMap::new() }
    }

    /// A load came from this back-end; the next is to come in this time.
    pub(super) fn heard(&mut self, index: usize, interval_ns: Option<u64>, now_ns: u64) {
        let before = self.heard.get(&index).map(|heard| heard.interval_ns);
        let interval_ns = interval_ns.or(before).unwrap_or(self.interval_ns);
        self.heard.insert(index, Heard { at_ns: now_ns, interval_ns });
    }

    /// For how many intervals nothing was heard of it, in halves.
    pub(super) fn half_intervals(&mut self, index: usize, now_ns: u64) -> u64 {
        let interval_ns = self.interval_ns;
        let heard = self.heard.entry(index).or_insert(Heard { at_ns: now_ns, interval_ns });
        now_ns.saturating_sub(heard.at_ns).saturating_mul(2) / heard.interval_ns.max(1)
    }

    /// Whether it was silent for too long.
    pub(super) fn is_silent(&mut self, index: usize, now_ns: u64) -> bool {
        self.half_intervals(index, now_ns) >= 2 * INTERVALS
    }

    /// Forgets all but these.
    pub(super) fn keep(&mut self, is_there: impl Fn(usize) -> bool) {
        self.heard.retain(|&index, _| is_there(index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_after_three_intervals() {
        let mut hearing = Hearing::new(100);
        assert!(!hearing.is_silent(1, 1000), "looked for the first time");
        assert!(!hearing.is_silent(1, 1299));
        assert!(hearing.is_silent(1, 1300));
        hearing.heard(1, Some(1000), 1400);
        assert_eq!(hearing.half_intervals(1, 2400), 2);
        assert!(!hearing.is_silent(1, 4399) && hearing.is_silent(1, 4400), "by its own interval");
        hearing.heard(1, None, 5000);
        assert!(!hearing.is_silent(1, 7999));
        hearing.keep(|index| index != 1);
        assert!(!hearing.is_silent(1, 9000), "another one at its index");
    }
}
