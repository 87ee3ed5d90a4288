//! The identity of a client's TCP connection.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use serde::{Deserialize, Serialize};

/// A client's TCP connection to a virtual address. Addresses are canonical: an IPv4 address that a dual-stack socket shows
/// as IPv6 (`::ffff:a.b.c.d`) is IPv4 here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "(SocketAddr, SocketAddr)", into = "(SocketAddr, SocketAddr)")]
pub struct Flow {
    /// The client's end.
    pub client: SocketAddr,
    /// Our end: the virtual address that clients connect to.
    pub vip: SocketAddr,
}

/// Bytes of a flow's key in the maps: two addresses (IPv4 as IPv4-mapped IPv6) and two ports, all in network order, the
/// client's first.
pub const FLOW_KEY_BYTES: usize = 36;

impl Flow {
    /// The flow of a client to a virtual address.
    #[must_use]
    pub fn new(client: SocketAddr, vip: SocketAddr) -> Self {
        Self { client: canonical(client), vip: canonical(vip) }
    }

    /// The key by which the maps know it.
    #[must_use]
    pub fn key(&self) -> [u8; FLOW_KEY_BYTES] {
        let mut key = [0; FLOW_KEY_BYTES];
        key[..16].copy_from_slice(&ipv6_mapped(self.client.ip()).octets());
        key[16..32].copy_from_slice(&ipv6_mapped(self.vip.ip()).octets());
        key[32..34].copy_from_slice(&self.client.port().to_be_bytes());
        key[34..].copy_from_slice(&self.vip.port().to_be_bytes());
        key
    }

    /// The flow of a key.
    #[must_use]
    pub fn from_key(key: &[u8; FLOW_KEY_BYTES]) -> Self {
        let address = |at: usize, port: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&key[at..at + 16]);
            let port = u16::from_be_bytes([key[port], key[port + 1]]);
            SocketAddr::new(Ipv6Addr::from(octets).to_canonical(), port)
        };
        Self { client: address(0, 32), vip: address(16, 34) }
    }
}

impl From<(SocketAddr, SocketAddr)> for Flow {
    fn from((client, vip): (SocketAddr, SocketAddr)) -> Self {
        Self::new(client, vip)
    }
}

impl From<Flow> for (SocketAddr, SocketAddr) {
    fn from(flow: Flow) -> Self {
        (flow.client, flow.vip)
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The address as IPv6; an IPv4 address is IPv4-mapped (`::ffff:a.b.c.d`).
#[must_use]
pub fn ipv6_mapped(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_back() {
        for (client, vip) in [("10.0.0.9:4711", "10.0.0.1:80"), ("[fd00::9]:1", "[fd00::1]:65535")] {
            let flow = Flow::new(client.parse().unwrap(), vip.parse().unwrap());
            assert_eq!(Flow::from_key(&flow.key()), flow);
        }
        let dual = Flow::new("[::ffff:10.0.0.9]:1".parse().unwrap(), "[::ffff:10.0.0.1]:80".parse().unwrap());
        assert_eq!(dual, Flow::new("10.0.0.9:1".parse().unwrap(), "10.0.0.1:80".parse().unwrap()));
        assert_eq!(dual.key()[10..16], [0xff, 0xff, 10, 0, 0, 9]);
    }
}
