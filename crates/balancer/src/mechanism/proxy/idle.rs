//! A connection to a back-end, in use or idle.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use crate::backend::Backend;
use crate::net::proxy_protocol::ConnectionEnds;

/// A connection to a back-end.
#[derive(Debug)]
pub(crate) struct BackendConnection<B> {
    pub(crate) stream: B,
    pub(crate) backend: Arc<Backend>,
    /// No request was answered on it yet.
    pub(crate) is_new: bool,
    /// For how long it was idle before its present use, in milliseconds.
    pub(crate) idle_ms: u64,
    /// Whose connection it was said to be for: it is for requests on that one alone.
    pub(super) client: Option<Box<ConnectionEnds>>,
    pub(super) _permit: OwnedSemaphorePermit,
}

/// The pool and index of a back-end.
pub(super) type BackendKey = (u32, usize);

pub(super) fn key(backend: &Backend) -> BackendKey {
    (backend.pool, backend.id.index())
}

/// One that waits for its next request.
pub(super) struct Idle<B> {
    pub(super) connection: BackendConnection<B>,
    pub(super) since_ms: u64,
    /// The same by the clock, where it is to be seen whether it is left open.
    pub(super) watched_since: Option<Instant>,
}

/// What a kept connection is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptFor {
    /// A request that is sent again where the back-end has closed the connection.
    Repeatable,
    /// One for which the system is asked whether the back-end has closed it this very moment.
    Careful,
    /// One that must not be sent twice.
    Once,
}

/// A connection that was idle for longer is not used for what must not be sent twice: back-ends close theirs after some seconds, and one that
/// is closed in that very moment loses the request.
const MOST_IDLE_MS: u64 = 500;

impl<B> Idle<B> {
    /// One that is idle from now on; `now_ms` is the worker's time.
    pub(super) fn now(connection: BackendConnection<B>, now_ms: u64) -> Self {
        let watched_since = (!connection.backend.leaves_open.is_sure()).then(Instant::now);
        Self { connection, since_ms: now_ms, watched_since }
    }

    /// For how long it has been left open, as far as that was watched.
    pub(super) fn left_open(&self) -> Duration {
        self.watched_since.map(|since| since.elapsed()).unwrap_or_default()
    }

    pub(super) fn idle_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.since_ms)
    }

    /// Its connection, to be used now.
    pub(super) fn used(self, now_ms: u64) -> BackendConnection<B> {
        BackendConnection { idle_ms: self.idle_ms(now_ms), ..self.connection }
    }

    /// Whether it can be used for that.
    pub(super) fn is_fit(&self, wanted_for: KeptFor, now_ms: u64) -> bool {
        wanted_for != KeptFor::Once
            || self.connection.backend.leaves_open.is_sure() && self.idle_ms(now_ms) <= MOST_IDLE_MS
    }
}
