//! One poll, and what waits for it.

use plimsoll_policy::{BackendId, Candidates, PollAnswer, Time};

use crate::arrivals::Arrived;

/// A request that waits for loads, or a probe for which no request waits.
#[derive(Clone, Copy)]
pub(crate) enum PolledFor {
    Request(Arrived),
    Probe,
}

/// One poll of several back-ends.
#[derive(Clone, Copy)]
pub(crate) struct PollUnderWay {
    pub(crate) polled_for: PolledFor,
    pub(crate) front_end: u16,
    pub(super) sent: Time,
    /// Tells it from later polls in the same place.
    pub(super) serial: u64,
    pub(super) candidates: Candidates,
    pub(super) answers: [PollAnswer; Candidates::MOST],
    /// Answers that have arrived.
    pub(super) heard: u8,
    /// Answers under way together, stored behind those that have arrived.
    pub(super) prompt: u8,
    pub(super) outstanding: u8,
    /// Whether the inquiries have reached their back-ends.
    pub(super) asked: bool,
}

impl PollUnderWay {
    pub(super) const VOID: Self = Self {
        polled_for: PolledFor::Probe,
        front_end: 0,
        sent: Time::ZERO,
        serial: u64::MAX,
        candidates: Candidates::NONE,
        answers: [PollAnswer::of(BackendId(0), 0); Candidates::MOST],
        heard: 0,
        prompt: 0,
        outstanding: 0,
        asked: false,
    };

    pub(crate) fn answers(&self) -> &[PollAnswer] {
        &self.answers[..usize::from(self.heard)]
    }
}
