//! Counts while a load runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::outcome::RequestSample;
use super::summary::LoadSummary;

/// What a load has measured so far; can be read from any thread while it runs. Clones share one meter.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Mutex<LoadSummary>>);

impl Meter {
    /// What was measured so far.
    #[must_use]
    pub fn summary(&self) -> LoadSummary {
        self.lock().clone()
    }

    pub(super) fn record(&self, at: Duration, window: &std::ops::Range<Duration>, outcome: &RequestSample) {
        self.lock().record(at, window, outcome);
    }

    pub(super) fn finish(&self, measured: Duration) -> LoadSummary {
        let mut summary = self.lock();
        summary.measured = measured;
        summary.clone()
    }

    fn lock(&self) -> MutexGuard<'_, LoadSummary> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
