//! A connection to a back-end, in use or idle.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use crate::backend::Backend;
use crate::net::halves::BackendIo;
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

impl<B> BackendConnection<B> {
    /// Whether it was used for another request before.
    pub(super) fn is_kept(&self) -> bool {
        // A stream of HTTP/2 is none of these.
        !self.is_new && !self.backend.http2
    }
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

/// The worker's time is behind by less than this, as long as it is not held up, in milliseconds.
const WORKER_LATE_MS: u64 = 100;
/// Bytes that come so soon after a response, in milliseconds, are taken for its excess. Later a server may say that it closes an idle connection.
const EXCESS_MS: u64 = 1000;
/// A connection that was idle for longer is not used for what must not be sent twice: back-ends close theirs after some seconds, and one that
/// is closed in that very moment loses the request.
const MOST_IDLE_MS: u64 = 500;

impl<B> Idle<B> {
    /// One that is idle from now on; `now_ms` is the worker's time.
    pub(super) fn now(connection: BackendConnection<B>, now_ms: u64) -> Self {
        let watched_since = (!connection.backend.leaves_open.is_sure()).then(Instant::now);
        Self { connection, since_ms: now_ms, watched_since }
    }

    /// For how long it has been left open at least.
    pub(super) fn left_open(&self, now_ms: u64) -> Duration {
        let by_worker = || Duration::from_millis(self.idle_ms(now_ms).saturating_sub(WORKER_LATE_MS));
        self.watched_since.map_or_else(by_worker, |since| since.elapsed())
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

impl<B: BackendIo> Idle<B> {
    /// What it means that it is not open any more.
    pub(super) fn note_closed(&self, now_ms: u64) {
        let (backend, idle_ms) = (&self.connection.backend, self.idle_ms(now_ms));
        if idle_ms < EXCESS_MS && self.connection.stream.has_excess() {
            backend.sent_excess();
        } else {
            backend.leaves_open.saw_closed(idle_ms);
        }
    }
}
