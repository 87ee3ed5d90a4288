//! What is known of a client's connection beside its stream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::dispatch::Assignment;

/// Where a connection came in and from whom.
pub(crate) struct Accepted {
    /// The client's end.
    pub(crate) peer: SocketAddr,
    /// Our end, where that is known without asking the system.
    pub(crate) local: Option<SocketAddr>,
    pub(crate) peer_text: Box<str>,
    /// Whether the peer's forwarding fields are believed.
    pub(crate) trusted: bool,
    /// Identity of the client for policies.
    pub(crate) client: u64,
    /// Set when its listener closes: the next response is the last.
    pub(crate) closing: Arc<AtomicBool>,
}

/// How a connection begins here.
#[derive(Default)]
pub(crate) struct Start {
    /// Requests on it that have been answered.
    pub(crate) requests: u64,
    /// The back-end that has been chosen for its next request, which is not moved any more.
    pub(crate) given: Option<Assignment>,
    /// Whether its next request stays here, whatever the mechanism.
    pub(crate) stays: bool,
    /// What has been read from it and not answered.
    pub(crate) input: Vec<u8>,
}
