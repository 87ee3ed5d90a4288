//! Whether a back-end leaves connections open after an answer, so that a request that must not be sent twice may use one again.
//!
//! Some servers close a connection after each answer, or after some tenths of a second, without a word of it in the answer. A request that
//! is sent in that moment is lost. Other requests are sent again; for these:
//!
//! ```text
//! sure  = a kept connection has answered a further request, or was open 100 ms after an answer,
//!         or an answer says so (Connection: keep-alive)
//! until then, and for 10 s, 20 s, ... ten minutes after a kept connection was closed by the back-end within a second,
//!         a request that must not be sent twice gets a new connection
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::lesson::{Lesson, millis};

/// Who closes after each answer has done so by then.
pub(crate) const LEFT_OPEN: Duration = Duration::from_millis(100);
/// Who closes later than this is not met in the act: connections that were idle for half as long are not used for such requests.
const SOON_MS: u64 = 1000;

/// What the connections of all workers to one back-end have shown.
#[derive(Debug)]
pub(crate) struct LeavesOpen {
    start: Instant,
    sure: AtomicBool,
    closed: Mutex<Lesson>,
}

impl Default for LeavesOpen {
    fn default() -> Self {
        Self { start: Instant::now(), sure: AtomicBool::new(false), closed: Mutex::default() }
    }
}

impl LeavesOpen {
    /// Whether a request that must not be sent twice may use a kept connection.
    pub(crate) fn is_sure(&self) -> bool {
        self.sure.load(Ordering::Relaxed)
    }

    /// A kept connection was seen to be open so long after an answer.
    pub(crate) fn saw_open(&self, idle: Duration) {
        if idle >= LEFT_OPEN && !self.is_sure() {
            self.leaves_open_at(self.now_ms());
        }
    }

    /// Whether a connection that stays open could show that they are left open.
    pub(crate) fn can_be_shown(&self) -> bool {
        !self.is_sure() && !self.closed.lock().unwrap_or_else(PoisonError::into_inner).holds(self.now_ms())
    }

    /// A kept connection has answered a further request, or the back-end says that it leaves one open.
    pub(crate) fn said(&self) {
        if !self.is_sure() {
            self.leaves_open_at(self.now_ms());
        }
    }

    /// A kept connection was found to be closed by the back-end, so long after an answer.
    pub(crate) fn saw_closed(&self, idle_ms: u64) {
        if idle_ms < SOON_MS {
            self.closes_at(self.now_ms());
        }
    }

    fn now_ms(&self) -> u64 {
        millis(self.start.elapsed())
    }

    fn leaves_open_at(&self, now_ms: u64) {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        self.sure.store(!closed.holds(now_ms), Ordering::Relaxed);
    }

    fn closes_at(&self, now_ms: u64) {
        // The lock is held until it is stored.
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        closed.learn(now_ms);
        self.sure.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_sure_once_a_connection_was_left_open() {
        let leaves_open = LeavesOpen::default();
        leaves_open.saw_open(LEFT_OPEN - Duration::from_millis(1));
        assert!(!leaves_open.is_sure());
        leaves_open.saw_open(LEFT_OPEN);
        assert!(leaves_open.is_sure());
        let leaves_open = LeavesOpen::default();
        leaves_open.said();
        assert!(leaves_open.is_sure());
    }

    #[test]
    fn one_that_is_closed_soon_counts_for_a_while() {
        let leaves_open = LeavesOpen::default();
        leaves_open.said();
        leaves_open.saw_closed(SOON_MS);
        assert!(leaves_open.is_sure(), "after a second");
        leaves_open.saw_closed(SOON_MS - 1);
        assert!(!leaves_open.is_sure() && !leaves_open.can_be_shown());
        leaves_open.said();
        leaves_open.saw_open(LEFT_OPEN);
        assert!(!leaves_open.is_sure());
        leaves_open.leaves_open_at(11_000);
        assert!(leaves_open.is_sure());
        leaves_open.closes_at(12_000);
        leaves_open.leaves_open_at(31_999);
        assert!(!leaves_open.is_sure());
        leaves_open.leaves_open_at(32_000);
        assert!(leaves_open.is_sure());
    }
}
