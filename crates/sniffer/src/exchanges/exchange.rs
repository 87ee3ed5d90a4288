//! A request with what was seen of its answer.

use super::segment::Ends;

/// A request, and what was seen of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenExchange {
    /// When the request passed, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Its connection.
    pub ends: Ends,
    /// The number of that, by first segments.
    pub connection: u64,
    /// The method.
    pub method: Box<[u8]>,
    /// Path and query, as sent.
    pub target: Box<[u8]>,
    /// Whether it is HTTP/1.1, whose connections stay.
    pub http11: bool,
    /// The status; `None` where no answer was seen.
    pub status: Option<u16>,
    /// Bytes of the answer's body that have passed, with the frames of chunks; `None` where no answer was seen, or not its length.
    pub size_bytes: Option<u64>,
    /// Whether an answer may have passed whose head was not copied, or not known to be the answer to this request.
    pub unread: bool,
    /// From the request to the first byte of its answer.
    pub first_byte_ns: Option<u64>,
}
