//! What became of one request.

use std::fmt;
use std::time::Duration;

/// Why a request had no complete, right response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// No connection could be made.
    Connect,
    /// The connection ended before the head of the response had come.
    Closed,
    /// The head of the response is no HTTP/1.1.
    Malformed,
    /// The connection ended within the body.
    Truncated,
    /// The body is not what was expected.
    WrongBody,
    /// The response was not complete within the time limit.
    Timeout,
    /// All connections were taken for as long as the time limit: it was never sent. Open loop only.
    NotSent,
    /// The request cannot be sent: its path is no URI.
    Unusable,
}

impl fmt::Display for Failure {
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

/// What the header `X-Cache` of an origin says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cached {
    /// From memory.
    Hit,
    /// Read from disk for this request.
    Miss,
    /// Waited for the read of another request.
    Joined,
    /// Streamed past the cache, because it does not take files of this size.
    Bypass,
}

impl Cached {
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        match value {
            b"hit" => Some(Self::Hit),
            b"miss" => Some(Self::Miss),
            b"joined" => Some(Self::Joined),
            b"bypass" => Some(Self::Bypass),
            _ => None,
        }
    }
}

/// What became of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When it was due (open loop) or sent (closed loop), since the start of the load.
    pub due: Duration,
    /// From then until the response was complete or given up.
    pub latency: Duration,
    /// How long after it was due it was sent; zero in a closed loop.
    pub lateness: Duration,
    /// Status of the response, when its head came.
    pub status: Option<u16>,
    /// Bytes of the body that came.
    pub bytes: u64,
    /// Why there is no complete, right response.
    pub failure: Option<Failure>,
    /// What the response's `X-Cache` says.
    pub cached: Option<Cached>,
    /// What the response's `X-Backend` says.
    pub backend: Option<String>,
    /// Whether it was sent on a second connection because the first had ended before anything was sent on it.
    pub reconnected: bool,
}

impl Outcome {
    /// Whether the response is complete, as expected, and of a status below 400.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.failure.is_none() && self.status.is_some_and(|status| status < 400)
    }
}
