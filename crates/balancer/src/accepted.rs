//! Facts about a client's connection besides its stream.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plimsoll_policy::Tried;

use crate::dispatch::Assignment;
use crate::placement_row::PlacementRow;

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
    /// How it speaks to us.
    pub(crate) way: ClientWay,
    /// Where its latest requests went.
    pub(crate) row: Cell<PlacementRow>,
}

/// What its listener says of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientWay {
    /// Whether it is under TLS.
    pub(crate) secure: bool,
    /// The port of HTTPS to which its requests are sent in place of being served.
    pub(crate) redirect_port: Option<u16>,
}

/// A request whose back-end has been chosen before its connection begins here.
pub(crate) struct GivenRequest {
    pub(crate) assignment: Assignment,
    /// Back-ends that were tried, the chosen one included.
    pub(crate) attempts: u32,
    /// Those that failed it.
    pub(crate) tried: Tried,
}

/// The state in which a connection begins here.
#[derive(Default)]
pub(crate) struct Start {
    /// Requests on it that have been answered.
    pub(crate) requests: u64,
    /// What is known of its next request, which does not move again.
    pub(crate) given: Option<Box<GivenRequest>>,
    /// Whether its next request stays here, whatever the mechanism.
    pub(crate) stays: bool,
    /// Bytes read from it and not yet answered.
    pub(crate) input: Vec<u8>,
}

/// A client's address as text: IPv4 that came over IPv6 as IPv4.
pub(crate) fn peer_text(ip: IpAddr) -> String {
    ip.to_canonical().to_string()
}
