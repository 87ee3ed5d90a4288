//! The result of one request.

use std::fmt;
use std::time::Duration;

/// Why a request had no complete, correct response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestFailure {
    /// No connection could be made.
    Connect,
    /// The connection ended before the head of the response.
    Closed,
    /// The head of the response is not HTTP/1.1.
    Malformed,
    /// The connection ended within the body.
    Truncated,
    /// The body is not what was expected.
    WrongBody,
    /// The response was not complete within the time limit.
    Timeout,
    /// All connections were in use for the whole time limit, so it was never sent. Open loop only.
    NotSent,
    /// The request cannot be sent: its path is not a URI.
    Unusable,
}

impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "could not connect",
            Self::Closed => "closed before the response",
            Self::Malformed => "malformed response",
            Self::Truncated => "truncated body",
            Self::WrongBody => "wrong body",
            Self::Timeout => "timed out",
            Self::NotSent => "never sent",
            Self::Unusable => "unusable request",
        })
    }
}

/// Value of an origin's `X-Cache` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheStatus {
    /// From memory.
    Hit,
    /// Read from disk for this request.
    Miss,
    /// Waited for the read of another request.
    Joined,
    /// From another node's memory.
    Peer,
    /// Streamed past the cache, because it does not take files of this size.
    Bypass,
}

impl CacheStatus {
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        match value {
            b"hit" => Some(Self::Hit),
            b"miss" => Some(Self::Miss),
            b"joined" => Some(Self::Joined),
            b"peer" => Some(Self::Peer),
            b"bypass" => Some(Self::Bypass),
            _ => None,
        }
    }
}

/// The result of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestSample {
    /// When it was due (open loop) or sent (closed loop), since the start of the load.
    pub due: Duration,
    /// From then until the response was complete or given up.
    pub latency: Duration,
    /// Delay between due time and sending; zero in a closed loop.
    pub lateness: Duration,
    /// Status of the response, if its head came.
    pub status: Option<u16>,
    /// Bytes of the body received.
    pub bytes: u64,
    /// Why there is no complete, correct response.
    pub failure: Option<RequestFailure>,
    /// The response's `X-Cache`.
    pub cached: Option<CacheStatus>,
    /// The response's `X-Backend`.
    pub backend: Option<String>,
    /// Whether it was sent on a second connection because the kept one had ended before anything was sent.
    pub reconnected: bool,
}

impl RequestSample {
    /// Whether the response is complete, as expected, and of a status below 400.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.failure.is_none() && self.status.is_some_and(|status| status < 400)
    }
}
