//! How much a worker hands off that it could also pass on.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The share of its time for which a worker may be at work before it hands off what it could also pass on.
const BUSY: f64 = 0.7;
/// How fast the share of such requests follows: its change in a second, for each CPU above or below [`BUSY`].
const GAIN_PER_S: f64 = 5.0;

/// How many of the requests that could also be passed on a worker hands off, so that it has CPU time left.
pub(super) struct Relief {
    share: Cell<f64>,
    /// The part of a request by which fewer than `share` were handed off so far.
    owed: Cell<f64>,
    /// When the worker's CPU time was read last, and what it was.
    read: Cell<Option<(Instant, Duration)>>,
}

impl Relief {
    /// Of a worker that has only begun.
    pub(super) fn new() -> Self {
        Self { share: Cell::new(0.0), owed: Cell::new(0.0), read: Cell::new(None) }
    }

    /// Looks how busy this thread, the worker's, was since the last time. Returns the share of such requests that are handed off
    /// from now on.
    pub(super) fn look(&self) -> f64 {
        let used = clock_gettime(ClockId::ThreadCPUTime);
        // It is never negative.
        self.follow(
            Instant::now(),
            Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32),
        );
        self.share.get()
    }

    fn follow(&self, now: Instant, used: Duration) {
        let Some((before, used_before)) = self.read.replace(Some((now, used))) else { return };
        let used = used.saturating_sub(used_before);
        let passed_s = now.saturating_duration_since(before).as_secs_f64();
        if passed_s > 0.0 {
            let beyond = used.as_secs_f64() / passed_s - BUSY;
            // A worker that was not woken for long says little about now.
            let change = GAIN_PER_S * beyond * passed_s.min(0.2);
            self.share.set((self.share.get() + change).clamp(0.0, 1.0));
        }
    }

    /// Whether nothing is handed off for want of CPU time.
    pub(super) fn is_idle(&self) -> bool {
        self.share.get() <= 0.0
    }

    /// Whether the next such request is handed off.
    pub(super) fn next_leaves(&self) -> bool {
        let owed = self.owed.get() + self.share.get();
        let leaves = owed >= 1.0;
        self.owed.set(if leaves { owed - 1.0 } else { owed });
        leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shares after so many steps of 50 ms, with a worker that is at work for `busy` of its time when it hands nothing off and
    /// is spared `spared` when it hands everything off.
    fn settled(busy: f64, spared: f64) -> f64 {
        let begin = Instant::now();
        let relief = Relief::new();
        let mut used = Duration::ZERO;
        relief.follow(begin, used);
        for step in 1..=400 {
            used += Duration::from_millis(50).mul_f64((busy - spared * relief.share.get()).clamp(0.0, 1.0));
            relief.follow(begin + Duration::from_millis(50) * step, used);
        }
        relief.share.get()
    }

    #[test]
    fn a_worker_hands_off_what_leaves_it_time() {
        assert!(settled(0.5, 0.3) < 1e-9, "it has time");
        let share = settled(0.9, 0.4);
        assert!((share - 0.5).abs() < 0.01, "0.9 - 0.4 · 0.5 is 0.7, not with {share}");
        assert!(settled(1.0, 0.1) > 0.999, "it has none, whatever it does");
    }

    #[test]
    fn as_many_leave_as_the_share_says() {
        let relief = Relief::new();
        assert!(!(0..100).any(|_| relief.next_leaves()));
        relief.share.set(0.25);
        assert_eq!((0..1000).filter(|_| relief.next_leaves()).count(), 250);
        relief.share.set(1.0);
        assert!((0..100).all(|_| relief.next_leaves()));
    }
}
