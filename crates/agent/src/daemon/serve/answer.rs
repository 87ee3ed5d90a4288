//! How a request was answered, and what follows for its connection.

use std::time::Instant;

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Answer {
    /// The status code; 0 if there was no answer.
    pub(in super::super) status: u16,
    /// Whether the kernel took all of the answer.
    pub(in super::super) complete: bool,
    /// How many bytes of content the kernel took.
    pub(in super::super) content_bytes: u64,
    pub(in super::super) first_byte_at: Option<Instant>,
    /// What happens to the connection next.
    pub(in super::super) then: AfterAnswer,
}

/// What happens to a connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum AfterAnswer {
    /// It waits for the next request.
    KeepAlive,
    /// It is closed in the normal way.
    Close,
    /// It is reset at once: the answer is incomplete.
    Abort,
}

impl Answer {
    /// No answer at all.
    pub(in super::super) const NONE: Self =
        Self { status: 0, complete: false, content_bytes: 0, first_byte_at: None, then: AfterAnswer::Abort };
}
