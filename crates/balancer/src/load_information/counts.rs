//! What is counted of load information.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_wire::load::{LoadCounters, LoadRefusal};

use crate::metrics::{FINE_BUCKETS_US, Histogram, SharedCounter};

/// Counters of all threads.
#[derive(Debug)]
pub(crate) struct LoadInformationCounts {
    /// Requests for which back-ends were asked.
    pub(crate) polls: SharedCounter,
    /// Back-ends that were asked, for a request or ahead of one.
    pub(crate) inquiries: SharedCounter,
    /// Loads that had been asked for already by another request.
    pub(crate) shared: SharedCounter,
    /// Answers that came in time.
    pub(crate) answers: SharedCounter,
    /// Inquiries without an answer in time.
    pub(crate) discarded: SharedCounter,
    /// Loads that were announced or written into responses.
    pub(crate) reports: SharedCounter,
    /// How often a back-end's load was set to the mean of the others'.
    pub(crate) neutral: SharedCounter,
    /// Values in responses that are no loads.
    pub(crate) unreadable: SharedCounter,
    /// Values in responses that no back-end has.
    pub(crate) implausible: SharedCounter,
    /// How long requests waited for answers.
    pub(crate) poll_time: Histogram,
    wire: Mutex<Vec<Arc<LoadCounters>>>,
}

impl Default for LoadInformationCounts {
    fn default() -> Self {
        Self {
            polls: SharedCounter::default(),
            inquiries: SharedCounter::default(),
            shared: SharedCounter::default(),
            answers: SharedCounter::default(),
            discarded: SharedCounter::default(),
            reports: SharedCounter::default(),
            neutral: SharedCounter::default(),
            unreadable: SharedCounter::default(),
            implausible: SharedCounter::default(),
            poll_time: Histogram::with(&FINE_BUCKETS_US),
            wire: Mutex::default(),
        }
    }
}

impl LoadInformationCounts {
    /// Adds up these as well.
    pub(super) fn follow(&self, counters: Arc<LoadCounters>) {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner).push(counters);
    }

    /// What was refused, by reason.
    pub(crate) fn refused(&self) -> Vec<(&'static str, u64)> {
        let wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        let counts: Vec<_> = wire.iter().map(|counters| counters.counts()).collect();
        let of = |why| counts.iter().map(|counts| counts.refused_for(why)).sum::<u64>();
        let by_reason = LoadRefusal::ALL.into_iter().map(|why| {
            let here = match why {
                LoadRefusal::Form => self.unreadable.get(),
                LoadRefusal::Implausible => self.implausible.get(),
                _ => 0,
            };
            (why.name(), of(why) + here)
        });
        by_reason.collect()
    }
}
