//! Predictions of misses, and what became of them.

use super::plan::WebRun;
use super::results::CsldResults;

/// What became of predicted misses, as numbers of requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Predictions {
    pub(super) hits_as_hits: f64,
    pub(super) hits_as_misses: f64,
    pub(super) misses_as_hits: f64,
    pub(super) misses_as_misses: f64,
}

impl Predictions {
    pub(super) fn of(r: &CsldResults, run: WebRun) -> Option<Self> {
        let [[hits_as_hits, misses_as_hits], [hits_as_misses, misses_as_misses]] = r.predictions(run)?;
        Some(Self { hits_as_hits, hits_as_misses, misses_as_hits, misses_as_misses })
    }

    fn all(&self) -> f64 {
        self.hits_as_hits + self.hits_as_misses + self.misses_as_hits + self.misses_as_misses
    }

    pub(super) fn accuracy(&self) -> f64 {
        (self.hits_as_hits + self.misses_as_misses) / self.all()
    }

    /// Of the predicted misses, those that were some.
    pub(super) fn precision(&self) -> f64 {
        self.misses_as_misses / (self.misses_as_misses + self.hits_as_misses)
    }

    /// Of the misses, those that were predicted.
    pub(super) fn recall(&self) -> f64 {
        self.misses_as_misses / (self.misses_as_misses + self.misses_as_hits)
    }

    /// What is right of "always a hit".
    pub(super) fn always_hit(&self) -> f64 {
        (self.hits_as_hits + self.hits_as_misses) / self.all()
    }
}
