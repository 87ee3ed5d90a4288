//! Inquiries that a busy server reads late, as the paper's machines did.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use plimsoll_policy::Rng;

/// How late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Lateness {
    /// Share of the inquiries at a server that has something to do.
    pub(super) share: f64,
    /// Mean of their exponential delays.
    pub(super) mean_ns: f64,
}

/// The paper's profile of polls of three at 90 %, with the constants of the simulated study: 8.1 % not completed within 10 ms,
/// 5.6 % not within 20 ms (section 3.2).
pub(super) const PAPER: Lateness = Lateness { share: 0.045, mean_ns: 26_400_000.0 };

/// Inquiries that have come and are not read yet.
#[derive(Debug)]
pub(super) struct LateInquiries<T> {
    how: Option<Lateness>,
    rng: Rng,
    /// By the time at which they are read, and in order of coming.
    waiting: BinaryHeap<Reverse<(u64, u64, SocketAddr, T)>>,
    count: u64,
}

impl<T: Ord> LateInquiries<T> {
    pub(super) fn new(how: Option<Lateness>, seed: u64) -> Self {
        /// Stream of the seed.
        const STREAM: u64 = 0x6C61_7465;
        Self { how, rng: Rng::new(seed, STREAM), waiting: BinaryHeap::new(), count: 0 }
    }

    /// An inquiry has come. It is returned if it is read at once.
    pub(super) fn come(&mut self, inquiry: T, from: SocketAddr, is_busy: bool, now_ns: u64) -> Option<T> {
        let Some(how) = self.how.filter(|how| is_busy && self.rng.unit() < how.share) else {
            return Some(inquiry);
        };
        let delay_ns = how.mean_ns * self.rng.exponential();
        self.count += 1;
        self.waiting.push(Reverse((now_ns.saturating_add(delay_ns as u64), self.count, from, inquiry)));
        None
    }

    /// When the next one is read.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.waiting.peek().map(|Reverse((due_ns, ..))| *due_ns)
    }

    /// One that is read now.
    pub(super) fn pop(&mut self, now_ns: u64) -> Option<(SocketAddr, T)> {
        self.next_ns().filter(|due_ns| *due_ns <= now_ns)?;
        self.waiting.pop().map(|Reverse((.., from, inquiry))| (from, inquiry))
    }

    /// How many were late.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_server_is_late_as_often_and_as_long_as_it_is_told() {
        let mut late = LateInquiries::new(Some(PAPER), 1);
        let from = "127.0.0.1:1".parse().unwrap();
        let prompt = (0..20_000).filter(|n| late.come(*n, from, true, 0).is_some()).count();
        // 4.5 % of 20,000 are 900; five standard errors are 147.
        assert!((20_000 - prompt).abs_diff(900) < 147, "{prompt}");
        let mut sum_ns = 0;
        while let Some(due_ns) = late.next_ns() {
            assert!(late.pop(due_ns - 1).is_none());
            late.pop(due_ns).unwrap();
            sum_ns += due_ns;
        }
        let mean_ms = sum_ns as f64 / late.count() as f64 / 1e6;
        assert!((mean_ms - 26.4).abs() < 5.0, "{mean_ms}");
    }

    #[test]
    fn an_idle_one_is_never() {
        let from = "127.0.0.1:1".parse().unwrap();
        let mut late = LateInquiries::new(Some(Lateness { share: 1.0, mean_ns: 1.0 }), 1);
        assert_eq!(late.come(3, from, false, 0), Some(3));
        assert_eq!(late.come(3, from, true, 0), None);
        assert_eq!(LateInquiries::new(None, 1).come(3, from, true, 0), Some(3));
    }
}
