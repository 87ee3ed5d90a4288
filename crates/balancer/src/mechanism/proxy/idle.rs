//! A connection to a back-end, in use or idle.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use crate::backend::Backend;
use crate::net::proxy_protocol::ConnectionEnds;

/// A connection to a back-end.
#[derive(Debug)]
pub(crate) struct BackendConnection<B> {
    pub(crate) stream: B,
    pub(crate) backend: Arc<Backend>,
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
}
