//! Answers requests on connections taken over.

mod answer;
mod copy;
mod framing;
pub(super) mod fuzzed;
mod origin;
mod rest;

use std::net::SocketAddr;
use std::path::PathBuf;

pub(super) use self::answer::{AfterAnswer, Answer};
pub(super) use self::origin::answer_short;
pub(super) use self::rest::{Beginning, BegunAnswer, begin, rest, write_rest};
use super::client::ClientConnection;
use super::closing::Closing;
use super::config::ServeConfig;
use super::head::{Foreign, Outline};
use plimsoll_origin::{OriginConfig, OriginError, OriginService, OriginStats};
use plimsoll_wire::load::LoadGauge;

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

/// The state of what answers, for one connection.
pub(super) enum Session<'a> {
    Origin(&'a OriginService),
    Copy(copy::Copy),
}

impl Serve {
    /// What is configured; the origin counts what it answers with `gauge`.
    ///
    /// # Errors
    /// When the origin's configuration is invalid.
    pub(super) fn of(config: &ServeConfig, gauge: &LoadGauge) -> Result<Self, OriginError> {
        Ok(match config {
            ServeConfig::Origin(origin) => {
                let origin = OriginConfig { gauge: gauge.clone(), ..OriginConfig::clone(origin) };
                Self::Origin(OriginService::new(origin)?)
            }
            ServeConfig::Copy(address) => Self::Copy(*address),
            ServeConfig::Shim(path) => Self::Shim(path.clone()),
        })
    }

    /// Counts of the origin, if it answers.
    pub(super) fn origin_stats(&self) -> Option<OriginStats> {
        match self {
            Self::Origin(service) => Some(service.stats()),
            Self::Copy(_) | Self::Shim(_) => None,
        }
    }

    /// A session for a connection; `None` if its bytes do not pass through the agent.
    pub(super) fn session(&self) -> Option<Session<'_>> {
        match self {
            Self::Origin(service) => Some(Session::Origin(service)),
            Self::Copy(address) => Some(Session::Copy(copy::Copy::new(*address))),
            Self::Shim(_) => None,
        }
    }

    /// Whether requests are counted as load where they are answered.
    pub(super) fn counts_load(&self) -> bool {
        matches!(self, Self::Origin(_))
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
        connection: &impl Closing,
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
