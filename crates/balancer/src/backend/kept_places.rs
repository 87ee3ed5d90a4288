//! Whether connections that are kept take places at a back-end that others wait for.
//!
//! A server with a process or a thread for each connection (Apache's prefork, many a small one) serves as many connections as it
//! has of them. One that the front-end keeps for its next request occupies its place, while a request on a new connection waits until the server
//! ends an idle one, for seconds.
//!
//! ```text
//! starving  = others were answered, and a request on a new connection has waited for its answer for 150 ms, and for three times as
//!             long as any that was answered in the last ten seconds or twenty
//! while a request is starving, no connection is kept; if a second after the first was closed it still waits, it takes long by nature
//! learned   = it is answered within 150 ms of the first connection that was closed for it: none is kept for 10 s then,
//!             for 20 s the next time, ... for ten minutes
//! ```

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::lesson::{Lesson, millis};

/// The least that a request waits before it is starving, in milliseconds.
const LEAST_WAIT_MS: u64 = 150;
/// And in times of the longest wait of late.
const TIMES: u64 = 3;
/// The longest wait is remembered for so long at least.
const MEMORY_MS: u64 = 10_000;
/// How soon a request is answered that got the place of a connection that was closed.
pub(crate) const SOON: Duration = Duration::from_millis(150);
/// One that is not answered so soon takes long by nature.
const LATE_MS: u64 = 1000;
/// No connection was closed yet.
const NEVER: u64 = u64::MAX;

/// What the connections of all workers to one back-end have shown. All times are milliseconds since its start.
#[derive(Debug)]
pub(crate) struct KeptPlaces {
    start: Instant,
    /// Requests that are starving.
    starving: AtomicU32,
    /// When the first connection was closed for them.
    closed_at_ms: AtomicU64,
    /// Whether none is kept, as was learned.
    learned: AtomicBool,
    lesson: Mutex<Lesson>,
    /// The longest wait since the memory began, and 1 more; 0 if nothing was answered yet.
    longest_ms: AtomicU64,
    memory: Mutex<Memory>,
}

/// The longest wait before the current one began.
#[derive(Debug, Default)]
struct Memory {
    before_ms: u64,
    since_ms: u64,
}

impl Default for KeptPlaces {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            starving: AtomicU32::new(0),
            closed_at_ms: AtomicU64::new(NEVER),
            learned: AtomicBool::new(false),
            lesson: Mutex::default(),
            longest_ms: AtomicU64::new(0),
            memory: Mutex::default(),
        }
    }
}

impl KeptPlaces {
    fn now_ms(&self) -> u64 {
        millis(self.start.elapsed())
    }

    /// Whether a connection that has no request now is to be closed.
    pub(crate) fn closes(&self) -> bool {
        let starving = self.starving.load(Ordering::Relaxed) > 0;
        (starving || self.learned.load(Ordering::Relaxed)) && self.closes_at(starving, self.now_ms())
    }

    fn closes_at(&self, starving: bool, now_ms: u64) -> bool {
        if starving {
            let _ = self.closed_at_ms.compare_exchange(NEVER, now_ms, Ordering::Relaxed, Ordering::Relaxed);
            return true;
        }
        // The lock is held until it is stored.
        let lesson = self.lesson.lock().unwrap_or_else(PoisonError::into_inner);
        self.learned.store(lesson.holds(now_ms), Ordering::Relaxed);
        lesson.holds(now_ms)
    }

    /// A request has waited for so long, and not because connections are kept.
    pub(crate) fn took(&self, wait_ms: u64) {
        if wait_ms.saturating_add(1) > self.longest_ms.load(Ordering::Relaxed) {
            self.longest_ms.fetch_max(wait_ms.saturating_add(1), Ordering::Relaxed);
        }
    }

    /// How long a request on a new connection waits at most before it is starving, as far as that is known.
    fn most_wait_ms(&self, now_ms: u64) -> Option<u64> {
        let mut longest = self.longest_ms.load(Ordering::Relaxed).checked_sub(1)?;
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if now_ms.saturating_sub(memory.since_ms) >= MEMORY_MS {
            *memory = Memory { before_ms: longest, since_ms: now_ms };
            self.longest_ms.store(1, Ordering::Relaxed);
        }
        longest = longest.max(memory.before_ms);
        Some(LEAST_WAIT_MS.max(longest.saturating_mul(TIMES)))
    }

    /// A request on a new connection has waited for so long: whether it is starving. None is where no connection is kept.
    pub(crate) fn waited(self: &Arc<Self>, wait_ms: u64) -> Option<Starving> {
        if self.learned.load(Ordering::Relaxed) {
            return None;
        }
        let waits_long = || self.most_wait_ms(self.now_ms()).is_some_and(|most_ms| wait_ms >= most_ms);
        (wait_ms >= LEAST_WAIT_MS && waits_long()).then(|| self.starves())
    }

    fn starves(self: &Arc<Self>) -> Starving {
        if self.starving.fetch_add(1, Ordering::Relaxed) == 0 {
            self.closed_at_ms.store(NEVER, Ordering::Relaxed);
        }
        Starving(Arc::clone(self))
    }

    /// Takes in whether one that starved was answered soon after a connection was closed.
    fn learn(&self, soon: Duration, now_ms: u64) -> AfterStarving {
        let closed_at_ms = self.closed_at_ms.load(Ordering::Relaxed);
        if closed_at_ms > now_ms || now_ms - closed_at_ms > millis(soon) {
            return AfterStarving::TookLong;
        }
        let mut lesson = self.lesson.lock().unwrap_or_else(PoisonError::into_inner);
        self.learned.store(true, Ordering::Relaxed);
        lesson.learn(now_ms).map_or(AfterStarving::Known, AfterStarving::NoneIsKept)
    }

    fn is_late(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.closed_at_ms.load(Ordering::Relaxed)) > LATE_MS
    }
}

/// What the answer to one that starved says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterStarving {
    /// Kept connections were not why it waited.
    TookLong,
    /// They were, as is known.
    Known,
    /// They were: none is kept for so long.
    NoneIsKept(Duration),
}

/// One that starves, until it is dropped.
#[derive(Debug)]
pub(crate) struct Starving(Arc<KeptPlaces>);

impl Starving {
    /// It was answered: that says something if it was `soon` after the first connection was closed.
    pub(crate) fn answered(self, soon: Duration) -> AfterStarving {
        self.0.learn(soon, self.0.now_ms())
    }

    /// Whether that connections were closed has not helped.
    pub(crate) fn is_late(&self) -> bool {
        self.0.is_late(self.0.now_ms())
    }
}

impl Drop for Starving {
    fn drop(&mut self) {
        self.0.starving.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_waits_longer_than_others_did_starves() {
        let places = Arc::<KeptPlaces>::default();
        assert!(places.waited(1000).is_none(), "nobody was answered");
        places.took(0);
        assert!(places.waited(149).is_none());
        assert!(!places.closes());
        let starving = places.waited(150).unwrap();
        assert!(places.closes());
        drop(starving);
        assert!(!places.closes());
        places.took(100);
        assert!(places.waited(299).is_none() && places.waited(300).is_some());
        // It is remembered for ten seconds at least.
        assert_eq!(places.most_wait_ms(10_000), Some(300));
        assert_eq!(places.most_wait_ms(19_999), Some(300));
        assert_eq!(places.most_wait_ms(20_000), Some(150));
    }

    #[test]
    fn an_answer_soon_after_a_connection_was_closed_teaches_for_longer_and_longer() {
        let places = Arc::<KeptPlaces>::default();
        let mut now_ms = 0;
        for for_s in [10, 20, 40, 80, 160, 320, 600, 600] {
            let starving = places.starves();
            assert_eq!(places.learn(SOON, now_ms), AfterStarving::TookLong, "none was closed");
            assert!(!places.is_late(now_ms + 5000));
            assert!(places.closes_at(true, now_ms) && places.closes_at(true, now_ms + 100));
            assert_eq!(
                places.learn(SOON, now_ms + 151),
                AfterStarving::TookLong,
                "the first was closed before that"
            );
            assert_eq!(
                places.learn(SOON, now_ms + 150),
                AfterStarving::NoneIsKept(Duration::from_secs(for_s))
            );
            assert_eq!(places.learn(SOON, now_ms + 150), AfterStarving::Known);
            assert!(!places.is_late(now_ms + 1000) && places.is_late(now_ms + 1001));
            drop(starving);
            assert!(places.waited(1_000_000).is_none(), "nobody starves where none is kept");
            now_ms += 150 + 1000 * for_s;
            assert!(places.closes_at(false, now_ms - 1) && !places.closes_at(false, now_ms));
            assert!(!places.learned.load(Ordering::Relaxed));
        }
    }

    #[test]
    fn what_was_closed_for_others_before_is_no_sign() {
        let places = Arc::<KeptPlaces>::default();
        let first = places.starves();
        assert!(places.closes_at(true, 0));
        drop(first);
        let _second = places.starves();
        assert_eq!(places.learn(SOON, 1), AfterStarving::TookLong);
    }
}
