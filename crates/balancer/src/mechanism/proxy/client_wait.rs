//! How long a client that takes a response is waited for.

use std::time::Duration;

use crate::net::deadline::Deadline;
use crate::net::pace::Pace;
use crate::stalling::{SLOW, Stalling};

/// Waiting for a client to take a piece.
pub(super) struct ClientWait<'a> {
    pub(super) deadline: &'a Deadline,
    /// Without this piece.
    pub(super) pace: Pace,
    pub(super) began_ms: u64,
    /// The time-out of one step.
    pub(super) most: Duration,
    /// Content that the client has taken before, in bytes.
    pub(super) moved_bytes: u64,
}

impl ClientWait<'_> {
    /// Sets the deadline, after `written` bytes of the piece.
    pub(super) fn set(&self, stalling: &Stalling<'_>, written: usize) {
        let waited_ms = self.waited_ms();
        let most = self.pace.after(waited_ms).next(self.most, self.moved_bytes + written as u64);
        self.deadline.set(stalling.next(most, waited_ms));
    }

    /// How long this piece has waited.
    fn waited_ms(&self) -> u64 {
        self.deadline.now_ms().saturating_sub(self.began_ms)
    }

    /// Whether all pieces together have waited so long that the client counts as slow.
    pub(super) fn is_long(&self) -> bool {
        self.pace.after(self.waited_ms()).waited() >= SLOW
    }
}
