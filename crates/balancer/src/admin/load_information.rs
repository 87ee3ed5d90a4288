//! What `/metrics` tells of load information.

use std::fmt::Error;

use plimsoll_config::LoadSource;

use crate::load_information::LoadIntake;
use crate::metrics::FINE_BUCKETS_US;
use plimsoll_observe::exposition::Out;

/// The counts as they are now.
#[derive(Debug)]
pub(super) struct LoadInformationSample {
    polls: u64,
    inquiries: u64,
    answers: u64,
    known: u64,
    discarded: u64,
    reports: u64,
    neutral: u64,
    refused: Vec<(&'static str, u64)>,
    poll_time: (Vec<u64>, f64),
}

impl LoadInformationSample {
    /// `None` where loads are the front-end's own counts.
    pub(super) fn take(information: &LoadIntake, known: u64) -> Option<Self> {
        let counts = &information.counts;
        (information.config.from != LoadSource::Own).then(|| Self {
            polls: counts.polls.get(),
            inquiries: counts.inquiries.get(),
            answers: counts.answers.get(),
            known: known + counts.shared.get(),
            discarded: counts.discarded.get(),
            reports: counts.reports.get(),
            neutral: counts.neutral.get(),
            refused: counts.refused(),
            poll_time: (
                counts.poll_time.buckets.iter().map(|bucket| bucket.get()).collect(),
                counts.poll_time.sum_us.get() as f64 / 1e6,
            ),
        })
    }

    pub(super) fn encode(&self, out: &mut Out<'_>) -> Result<(), Error> {
        out.counter("plimsoll_load_polls", "Requests for which back-ends were asked", self.polls)?;
        out.counter("plimsoll_load_inquiries", "Inquiries sent to agents", self.inquiries)?;
        out.counter("plimsoll_load_answers", "Answers of agents in time", self.answers)?;
        out.counter(
            "plimsoll_load_known",
            "Loads that were needed and not asked for, as they had been told or asked for a moment before",
            self.known,
        )?;
        out.counter(
            "plimsoll_load_discarded",
            "Inquiries without an answer in time: it counts no more if it comes",
            self.discarded,
        )?;
        out.counter(
            "plimsoll_load_reports",
            "Loads that were announced, or written into responses",
            self.reports,
        )?;
        out.counter(
            "plimsoll_load_neutral",
            "Times that the load of a back-end that was silent or not to be believed became the mean of the others'",
            self.neutral,
        )?;
        out.counters("plimsoll_load_refused", "Load information that was refused, by reason", || {
            self.refused.iter().map(|&(reason, count)| ([("reason", reason)], count))
        })?;
        let (counts, sum_s) = &self.poll_time;
        let help = "How long requests waited for answers of agents";
        out.histogram("plimsoll_load_poll_time", help, &FINE_BUCKETS_US, (counts, *sum_s))
    }
}
