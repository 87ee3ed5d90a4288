//! What the threads share with those who look.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use plimsoll_wire::load::{LoadCounters, LoadGauge};

use super::answer::AnswerShared;
use super::status::LoadStatus;
use super::writers::Writers;

/// What the threads share with those who look.
pub(super) struct LoadShared {
    pub(super) gauge: LoadGauge,
    pub(super) counters: Arc<LoadCounters>,
    pub(super) answering: Arc<AnswerShared>,
    pub(super) writers: Mutex<Writers>,
}

impl LoadShared {
    pub(super) fn status(&self) -> LoadStatus {
        let (load, latency_us) = self.gauge.tell();
        let mut writers = self.writers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        writers.sweep(Instant::now());
        LoadStatus {
            load,
            latency_us,
            raised: self.answering.raised.load(Ordering::Relaxed),
            counts: self.counters.counts(),
            told: writers.list(Instant::now()),
        }
    }
}
