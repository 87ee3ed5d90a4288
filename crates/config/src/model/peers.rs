//! Front-ends beside one another.

use std::net::SocketAddr;
use std::time::Duration;

use super::BackendName;

/// One of several front-ends, each on the machine of a back-end, which tell one another what sizes they have seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeersConfig {
    /// What the others call this one.
    pub name: String,
    /// The back-end on this machine.
    pub local: BackendName,
    /// Where the others connect.
    pub address: SocketAddr,
    /// What all of them share.
    pub key: plimsoll_wire::Key,
    /// The others, by name; names unique.
    pub others: Vec<PeerConfig>,
    /// How often they are told.
    pub period: Duration,
    /// How long what one has told counts.
    pub keep: Duration,
}

/// Another front-end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerConfig {
    /// What it calls itself.
    pub name: String,
    /// Its host: a name or an address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}
