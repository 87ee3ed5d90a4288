//! What was learned of a back-end by bad experience holds for a while: longer each time.

use std::time::Duration;

/// For how long it holds at first, and at most, in milliseconds.
const FIRST_MS: u64 = 10_000;
const MOST_MS: u64 = 600_000;
/// After so long without such experience, the next one is the first again.
const FORGOTTEN_AFTER_MS: u64 = 3_600_000;

/// A lesson. Times are milliseconds since some moment that all calls share.
#[derive(Debug)]
pub(super) struct Lesson {
    /// Until when it holds.
    until_ms: u64,
    /// For how long it holds the next time.
    next_ms: u64,
}

impl Default for Lesson {
    fn default() -> Self {
        Self { until_ms: 0, next_ms: FIRST_MS }
    }
}

impl Lesson {
    /// Whether it holds.
    pub(super) fn holds(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms
    }

    /// The experience was made; for how long it holds, if it did not hold already.
    pub(super) fn learn(&mut self, now_ms: u64) -> Option<Duration> {
        if self.holds(now_ms) {
            return None;
        }
        if now_ms - self.until_ms >= FORGOTTEN_AFTER_MS {
            self.next_ms = FIRST_MS;
        }
        let for_ms = self.next_ms;
        self.until_ms = now_ms + for_ms;
        self.next_ms = (2 * for_ms).min(MOST_MS);
        Some(Duration::from_millis(for_ms))
    }
}

/// Whole milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_for_longer_each_time_until_it_is_forgotten() {
        let mut lesson = Lesson::default();
        let mut now_ms = 0;
        for for_s in [10, 20, 40, 80, 160, 320, 600, 600] {
            assert!(!lesson.holds(now_ms));
            assert_eq!(lesson.learn(now_ms), Some(Duration::from_secs(for_s)));
            assert_eq!(lesson.learn(now_ms + 1), None);
            now_ms += for_s * 1000;
            assert!(lesson.holds(now_ms - 1) && !lesson.holds(now_ms));
        }
        assert_eq!(lesson.learn(now_ms + FORGOTTEN_AFTER_MS - 1), Some(Duration::from_secs(600)));
        now_ms += FORGOTTEN_AFTER_MS - 1 + 600_000;
        assert_eq!(lesson.learn(now_ms + FORGOTTEN_AFTER_MS), Some(Duration::from_secs(10)));
    }
}
