//! What a client has got of a response's content.

use std::time::Instant;

use plimsoll_config::ContentCoding;

/// What a client has got of a response's content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PassedContent {
    /// Bytes that the client got.
    pub(crate) client_bytes: u64,
    /// Bytes that the back-end gave: others, where they were compressed on the way.
    pub(crate) original_bytes: u64,
    /// How the front-end has coded them, if it has.
    pub(crate) coding: Option<ContentCoding>,
    /// When the response's head was there, if it was.
    pub(crate) first_byte: Option<Instant>,
}

impl PassedContent {
    /// As the back-end gave it.
    pub(crate) fn plain(bytes: u64) -> Self {
        Self { client_bytes: bytes, original_bytes: bytes, coding: None, first_byte: None }
    }

    /// The same of a response whose head was there at this time.
    pub(crate) fn since(self, first_byte: Instant) -> Self {
        Self { first_byte: Some(first_byte), ..self }
    }
}
