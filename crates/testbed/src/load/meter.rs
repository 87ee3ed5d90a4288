//! Counts while a load runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::outcome::Outcome;
use super::summary::Summary;

/// What a load has measured so far; to be read from any thread while it runs. Clones are of the same meter.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Mutex<Summary>>);

impl Meter {
    /// What was measured so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.lock().clone()
    }

    pub(super) fn record(&self, at: Duration, window: &std::ops::Range<Duration>, outcome: &Outcome) {
        self.lock().record(at, window, outcome);
    }

    pub(super) fn finish(&self, measured: Duration) -> Summary {
        let mut summary = self.lock();
        summary.measured = measured;
        summary.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Summary> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
