//! Facts about a client's connection besides its stream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::dispatch::Assignment;

/// Where a connection came in and from whom.
pub(crate) struct Accepted {
    /// The client's end.
    pub(crate) peer: SocketAddr,
    /// Our end, if known without a system call.
    pub(crate) local: Option<SocketAddr>,
    pub(crate) peer_text: Box<str>,
    /// Whether the peer's forwarding fields are trusted.
    pub(crate) trusted: bool,
    /// Identity of the client for policies.
    pub(crate) client: u64,
    /// Set when its listener closes: the next response is the last.
    pub(crate) closing: Arc<AtomicBool>,
}

/// The state in which a connection begins here.
#[derive(Default)]
pub(crate) struct Start {
    /// Requests on it that have been answered.
    pub(crate) requests: u64,
    /// The back-end already chosen for its next request, which does not move again.
    pub(crate) given: Option<Assignment>,
    /// Whether its next request stays here, whatever the mechanism.
    pub(crate) stays: bool,
    /// Bytes read from it and not yet answered.
    pub(crate) input: Vec<u8>,
}
