//! Whether a back-end sends more than belongs to its responses. The next time that may come when another request is under way on the
//! connection, and be taken for its answer; so for a while none is used twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::lesson::{Lesson, millis};

/// What the connections of all workers to one back-end have shown.
#[derive(Debug)]
pub(crate) struct Excess {
    start: Instant,
    came: AtomicBool,
    lesson: Mutex<Lesson>,
}

impl Default for Excess {
    fn default() -> Self {
        Self { start: Instant::now(), came: AtomicBool::new(false), lesson: Mutex::default() }
    }
}

impl Excess {
    /// Whether no connection is to be used twice.
    pub(crate) fn is_expected(&self) -> bool {
        self.came.load(Ordering::Relaxed) && self.is_expected_at(self.now_ms())
    }

    /// Bytes came that belong to no response; for how long they are expected now, if they were not.
    pub(super) fn came(&self) -> Option<Duration> {
        self.came_at(self.now_ms())
    }

    fn now_ms(&self) -> u64 {
        millis(self.start.elapsed())
    }

    fn is_expected_at(&self, now_ms: u64) -> bool {
        // The lock is held until it is stored.
        let lesson = self.lesson.lock().unwrap_or_else(PoisonError::into_inner);
        self.came.store(lesson.holds(now_ms), Ordering::Relaxed);
        lesson.holds(now_ms)
    }

    fn came_at(&self, now_ms: u64) -> Option<Duration> {
        let mut lesson = self.lesson.lock().unwrap_or_else(PoisonError::into_inner);
        self.came.store(true, Ordering::Relaxed);
        lesson.learn(now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_expected_for_a_while() {
        let excess = Excess::default();
        assert!(!excess.is_expected());
        assert_eq!(excess.came_at(0), Some(Duration::from_secs(10)));
        assert_eq!(excess.came_at(1), None);
        assert!(excess.is_expected() && excess.is_expected_at(9999));
        assert!(!excess.is_expected_at(10_000) && !excess.is_expected());
        assert_eq!(excess.came_at(10_000), Some(Duration::from_secs(20)));
    }
}
