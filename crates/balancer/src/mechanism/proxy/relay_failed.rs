//! Why a response is not passed on to its end.

use crate::http::chunked::BadChunk;
use crate::http::response::BadResponse;
use crate::mechanism::carry::Failure;
use crate::passed_content::PassedContent;

/// Why the client did not get the whole response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelayFailed {
    /// The client has gone.
    ClientGone,
    /// The front-end stops.
    Stopped,
    /// The client takes nothing of it, or sends nothing of what is left of its request.
    ClientTimeout,
    /// The back-end's body was cut off, too long or badly framed, or took too long.
    Broken {
        /// Whether it is the back-end's fault: perhaps not while the client was waited for, to send the rest of the request.
        by_backend: bool,
    },
}

impl RelayFailed {
    /// The failure of a request whose response had this status, and of which the client got so much.
    pub(super) fn after(self, status: u16, content: PassedContent) -> Failure {
        match self {
            Self::ClientGone => Failure::ClientLeft { content },
            Self::ClientTimeout => Failure::ClientTimeout { content },
            Self::Stopped => Failure::StoppedAnswering { status, content },
            Self::Broken { by_backend } => Failure::Broken { status, content, by_backend },
        }
    }
}

impl From<NotTaken> for RelayFailed {
    fn from(not_taken: NotTaken) -> Self {
        Self::Broken { by_backend: matches!(not_taken, NotTaken::Malformed(_)) }
    }
}

/// Why what has come does not go on.
pub(super) enum NotTaken {
    /// It is no body.
    Malformed(BadChunk),
    /// There is no memory to compress it.
    NoMemory,
}

impl From<BadChunk> for NotTaken {
    fn from(bad: BadChunk) -> Self {
        Self::Malformed(bad)
    }
}

impl From<NotTaken> for BadResponse {
    fn from(not_taken: NotTaken) -> Self {
        match not_taken {
            NotTaken::Malformed(bad) => Self::Wrong(bad.0),
            NotTaken::NoMemory => Self::OverLimit("there is no memory to compress it"),
        }
    }
}
