//! What a client has got of a response's content.

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
}

impl PassedContent {
    /// As the back-end gave it.
    pub(crate) fn plain(bytes: u64) -> Self {
        Self { client_bytes: bytes, original_bytes: bytes, coding: None }
    }
}
