//! What counts had come to at some times, so that it can be said what was added to them within a window.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Notes, oldest first; of those older than the window, the last one.
#[derive(Debug)]
pub(crate) struct WindowNotes<T>(VecDeque<(Instant, T)>);

impl<T> Default for WindowNotes<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: Copy> WindowNotes<T> {
    /// Notes what there is now, unless the last note is younger than `step`, so that there are few of them.
    pub(crate) fn note(&mut self, value: T, now: Instant, (window, step): (Duration, Duration)) {
        let is_past = |at: Instant, time| now.saturating_duration_since(at) >= time;
        while self.0.get(1).is_some_and(|(at, _)| is_past(*at, window)) {
            self.0.pop_front();
        }
        if self.0.back().is_none_or(|(at, _)| is_past(*at, step)) {
            self.0.push_back((now, value));
        }
    }

    /// What there was when the window began, or at the first note in it.
    pub(crate) fn first(&self) -> Option<T> {
        self.0.front().map(|(_, value)| *value)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
