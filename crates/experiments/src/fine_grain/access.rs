//! Accesses before and after.

/// An access that a client is to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlannedAccess {
    /// When it arrives, since the start.
    pub(super) due_ns: u64,
    pub(super) service_ns: u64,
    /// The server, where none is chosen.
    pub(super) server: Option<usize>,
}

/// An access that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnsweredAccess {
    pub(super) due_ns: u64,
    /// From the time at which it was due to its answer.
    pub(super) response_ns: u64,
    /// Of it, the time that passed until loads were known.
    pub(super) asking_ns: u64,
}

/// What a client has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClientTally {
    pub(super) answered: Vec<AnsweredAccess>,
    /// Accesses for which servers were asked.
    pub(super) polls: u64,
    /// Inquiries for them.
    pub(super) inquiries: u64,
    /// Inquiries whose answer was not waited for any longer.
    pub(super) discarded: u64,
    /// Accesses that were sent.
    pub(super) sent: u64,
}

impl ClientTally {
    /// Adds what another client has done.
    pub(super) fn add(&mut self, other: Self) {
        self.answered.extend(other.answered);
        self.polls += other.polls;
        self.inquiries += other.inquiries;
        self.discarded += other.discarded;
        self.sent += other.sent;
    }
}
