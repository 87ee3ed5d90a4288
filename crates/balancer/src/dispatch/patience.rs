//! How long a request may wait for room: long in a short burst, briefly while the queue has been standing.
//!
//! A queue that empties now and then absorbs bursts, and waiting in it is worth while. One that never empties only makes
//! each request late by its length: then all wait briefly, and what is too much is refused soon. This is the idea of
//! CoDel (Nichols and Jacobson, "Controlling queue delay", ACM Queue 10(5), 2012), in the form for requests of Maurer,
//! "Fail at scale", ACM Queue 13(8), 2015.

use std::time::Duration;

use plimsoll_policy::Time;

/// A queue that has not been empty for this share of the longest wait is standing.
const STANDING: f64 = 0.4;
/// What a request waits at most in a standing queue, as a share of the longest wait; and where no back-end takes requests.
const BRIEF: f64 = 0.1;

/// When the queue was last seen empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    empty_at: Time,
}

impl Patience {
    pub(super) const fn new() -> Self {
        Self { empty_at: Time::ZERO }
    }

    /// The queue is empty.
    pub(super) fn is_empty(&mut self, now: Time) {
        self.empty_at = now;
    }

    /// How long a request may wait from now on that is allowed `longest`. Without a back-end that takes requests there is
    /// little to wait for.
    pub(super) fn of(self, longest: Duration, any_backend: bool, now: Time) -> Duration {
        let standing = Duration::from_nanos(now.since(self.empty_at).as_nanos()) > longest.mul_f64(STANDING);
        if standing || !any_backend { longest.mul_f64(BRIEF) } else { longest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_wait_and_a_standing_queue_does_not() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let longest = Duration::from_millis(250);
        let mut patience = Patience::new();
        patience.is_empty(at(1000));
        assert_eq!(patience.of(longest, true, at(1100)), longest);
        assert_eq!(patience.of(longest, true, at(1101)), Duration::from_millis(25));
        patience.is_empty(at(1200));
        assert_eq!(patience.of(longest, true, at(1201)), longest);
        assert_eq!(patience.of(longest, false, at(1201)), Duration::from_millis(25));
        assert_eq!(patience.of(Duration::ZERO, true, at(1201)), Duration::ZERO);
    }
}
