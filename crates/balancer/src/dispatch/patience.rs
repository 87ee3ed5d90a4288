//! Whether a request may wait long for room: in a short burst it may, not while the queue has been standing.
//!
//! A queue that empties now and then absorbs bursts, and waiting in it is worth while. One that never empties only makes
//! each request late by its length: then all wait briefly, and what is too much is refused soon. This is the idea of
//! CoDel (Nichols and Jacobson, "Controlling queue delay", ACM Queue 10(5), 2012), in the form for requests of Maurer,
//! "Fail at scale", ACM Queue 13(8), 2015.

use std::time::Duration;

use plimsoll_policy::{Nanos, Time};

/// A queue that has not been empty for longer is standing.
const STANDING: Nanos = Nanos::from_millis(100);
/// What a request waits at most in a standing queue, and where no back-end takes requests.
pub(super) const BRIEF: Duration = Duration::from_millis(100);

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

    /// Whether the queue has been standing.
    pub(super) fn is_standing(self, now: Time) -> bool {
        now.since(self.empty_at) > STANDING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_stands_until_it_is_seen_empty() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut patience = Patience::new();
        patience.is_empty(at(1000));
        assert!(!patience.is_standing(at(1100)));
        assert!(patience.is_standing(at(1101)));
        patience.is_empty(at(1200));
        assert!(!patience.is_standing(at(1201)));
    }
}
