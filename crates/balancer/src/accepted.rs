//! Facts about a client's connection besides its stream.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plimsoll_policy::Tried;

use crate::dispatch::Assignment;
use crate::net::proxy_protocol::ConnectionEnds;
use crate::placement_row::PlacementRow;

/// Where a connection came in and from whom.
pub(crate) struct Accepted {
    /// The client's end; where a proxy has told of it, that one.
    pub(crate) peer: SocketAddr,
    /// Our end, if it is known: without a system call, because back-ends are told it, or as a proxy has told.
    pub(crate) local: Cell<Option<SocketAddr>>,
    pub(crate) peer_text: Box<str>,
    /// Whether the peer's forwarding fields are trusted.
    pub(crate) trusted: bool,
    /// Identity of the client for policies.
    pub(crate) client: u64,
    /// Set when its listener closes: the next response is the last.
    pub(crate) closing: Arc<AtomicBool>,
    /// How it speaks to us.
    pub(crate) way: ClientWay,
    /// It has ended; requests of it may still be under way.
    pub(crate) over: Cell<bool>,
    /// Where its latest requests went.
    pub(crate) row: Cell<PlacementRow>,
}

impl Accepted {
    /// Both ends of the connection; ours is unspecified where it is not known.
    pub(crate) fn ends(&self) -> ConnectionEnds {
        let nowhere = || match self.peer.ip().to_canonical() {
            IpAddr::V4(_) => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0),
            IpAddr::V6(_) => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0),
        };
        ConnectionEnds { source: self.peer, destination: self.local.get().unwrap_or_else(nowhere) }
    }
}

/// What its listener says of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientWay {
    /// Whether it is under TLS.
    pub(crate) secure: bool,
    /// The port of HTTPS to which its requests are sent in place of being served.
    pub(crate) redirect_port: Option<u16>,
    /// Whether the other end is a proxy that begins with whose connection it is.
    pub(crate) is_proxied: bool,
}

/// A request that began under another account, before its connection comes here.
pub(crate) struct GivenRequest {
    /// The back-end that has been chosen, unless it has failed already.
    pub(crate) assignment: Option<Assignment>,
    /// Back-ends that were tried, a chosen one included.
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
