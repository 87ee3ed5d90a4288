//! Answers requests on connections taken over.

mod copy;
mod framing;
mod origin;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

pub(super) use self::origin::answer_short;
use super::client::ClientConnection;
use super::connection::Connection;
use super::head::{Foreign, Outline};
use plimsoll_origin::OriginService;

/// What answers.
#[derive(Debug, Clone)]
pub(super) enum Serve {
    /// The origin.
    Origin(OriginService),
    /// The server at this address.
    Copy(SocketAddr),
    /// The server with the accept shim at this socket, which gets the connection itself.
    Shim(PathBuf),
}

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    /// Its status; 0 without an answer.
    pub(super) status: u16,
    /// Whether it was handed to the kernel completely.
    pub(super) complete: bool,
    /// Bytes of content that were handed to the kernel.
    pub(super) content_bytes: u64,
    pub(super) first_byte_at: Option<Instant>,
    /// What becomes of the connection.
    pub(super) then: AfterAnswer,
}

/// What becomes of a connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterAnswer {
    /// The next request.
    KeepAlive,
    /// It ends gracefully.
    Close,
    /// It ends at once, because the answer is incomplete.
    Abort,
}

impl Answer {
    /// No answer at all.
    pub(super) const NONE: Self =
        Self { status: 0, complete: false, content_bytes: 0, first_byte_at: None, then: AfterAnswer::Abort };
}

/// The state of what answers, for one connection.
pub(super) enum Session<'a> {
    Origin(&'a OriginService),
    Copy(copy::Copy),
}

impl Serve {
    /// A session for a connection; `None` if its bytes do not pass through the agent.
    pub(super) fn session(&self) -> Option<Session<'_>> {
        match self {
            Self::Origin(service) => Some(Session::Origin(service)),
            Self::Copy(address) => Some(Session::Copy(copy::Copy::new(*address))),
            Self::Shim(_) => None,
        }
    }

    /// Whether the agent itself reads requests.
    pub(super) fn reads_here(&self) -> bool {
        !matches!(self, Self::Shim(_))
    }
}

impl Session<'_> {
    /// Answers the request at the start of the input and removes it.
    pub(super) async fn answer(
        &mut self,
        client: &mut ClientConnection,
        outline: Outline,
        connection: &Connection,
    ) -> Answer {
        match self {
            Self::Origin(service) => origin::answer(service, client, outline, connection).await,
            Self::Copy(copy) => copy.answer(client, outline).await,
        }
    }

    /// Handles a request that is not for the agent but stays here. The connection ends with it.
    pub(super) async fn answer_foreign(&mut self, client: &mut ClientConnection, why: Foreign) -> Answer {
        match self {
            Self::Copy(copy) if why == Foreign::Body => copy.pass_all(client).await,
            _ => origin::refuse(client, why).await,
        }
    }
}
