//! What is asked of a machine.

use std::net::{IpAddr, SocketAddr};

use crate::switch::Transport;

/// The role of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It forwards clients' packets.
    FrontEnd,
    /// It answers clients.
    Backend,
}

/// What to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its role.
    pub role: Role,
    /// Interfaces at which clients' packets arrive.
    pub interfaces: Vec<String>,
    /// Virtual addresses.
    pub vips: Vec<IpAddr>,
    /// Ports to be bound, as far as they are known.
    pub ports: Vec<u16>,
    /// Where nobody may listen: this machine's kernel is to tell clients there that their back-end is gone.
    pub unused: Vec<(SocketAddr, Transport)>,
    /// Where this machine is to listen for clients by TCP.
    pub listeners: Vec<SocketAddr>,
    /// The machines on the other side: back-ends of a front-end, front-ends of a back-end.
    pub peers: Vec<IpAddr>,
    /// The machines to which this one connects, over routers, too, and which have the addresses `shared`, as it may have them.
    pub destinations: Vec<IpAddr>,
    /// Virtual addresses that this machine has now, or will have when it takes over.
    pub shared: Vec<IpAddr>,
}
