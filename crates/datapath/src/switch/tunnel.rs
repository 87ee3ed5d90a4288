//! Tunnels to back-ends behind routers.

use std::net::IpAddr;

use libbpf_rs::{MapCore, MapFlags};
use plimsoll_wire::ipv6_mapped;

use super::{MOST_BACKENDS, Switch, failed};
use crate::error::DatapathError;

/// Bytes of `struct switch_tunnel`.
const TUNNEL_BYTES: usize = 40;
/// Most bytes of an IP packet that a way must have room for at least: those of the longest that any way must take (1,280, by RFC 8200),
/// in the longest outer headers (IPv6 and UDP).
const LEAST_BYTES: u32 = 1280 + 40 + 8;

/// How packets are wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TunnelKind {
    /// IP in IP, of any two families.
    Ipip,
    /// An IP packet in a UDP datagram to port 6080: GUE, variant 1.
    Gue,
}

/// A tunnel to a back-end, which has a [`crate::TunnelEnd`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tunnel {
    /// How packets are wrapped.
    pub kind: TunnelKind,
    /// Our address.
    pub local: IpAddr,
    /// The back-end's, of the same family.
    pub remote: IpAddr,
    /// Most bytes of an IP packet on the way. Senders of packets that are longer with the outer headers are told what fits.
    pub most_bytes: u32,
}

impl Tunnel {
    fn check(&self) -> Result<(), DatapathError> {
        let Self { local, remote, most_bytes, .. } = self;
        if local.to_canonical().is_ipv4() != remote.to_canonical().is_ipv4() {
            let text = format!("a tunnel from {local} to {remote}: the addresses are of different families");
            return Err(DatapathError::Invalid(text));
        }
        if !(LEAST_BYTES..=65_535).contains(most_bytes) {
            let text = format!(
                "a tunnel to {remote} for packets of {most_bytes} bytes: there must be room for {LEAST_BYTES} to 65535"
            );
            return Err(DatapathError::Invalid(text));
        }
        Ok(())
    }

    fn encode(&self) -> [u8; TUNNEL_BYTES] {
        let mut bytes = [0; TUNNEL_BYTES];
        bytes[..16].copy_from_slice(&ipv6_mapped(self.local.to_canonical()).octets());
        bytes[16..32].copy_from_slice(&ipv6_mapped(self.remote.to_canonical()).octets());
        let kind = match self.kind {
            TunnelKind::Ipip => 1_u32,
            TunnelKind::Gue => 2,
        };
        bytes[32..36].copy_from_slice(&kind.to_ne_bytes());
        bytes[36..].copy_from_slice(&self.most_bytes.to_ne_bytes());
        bytes
    }
}

impl Switch {
    /// Packets for the back-end of this index go by `tunnel` from now on, or else as they are. To be told before
    /// [`Switch::set_backend`].
    ///
    /// # Errors
    /// [`DatapathError::Invalid`] for an index that is too large or a tunnel between families; the kernel's.
    pub fn set_tunnel(&self, backend: u16, tunnel: Option<&Tunnel>) -> Result<(), DatapathError> {
        if usize::from(backend) >= MOST_BACKENDS {
            let text = format!("a switch has at most {MOST_BACKENDS} back-ends at a time");
            return Err(DatapathError::Invalid(text));
        }
        tunnel.map_or(Ok(()), Tunnel::check)?;
        let entry = tunnel.map_or([0; TUNNEL_BYTES], Tunnel::encode);
        let index = u32::from(backend).to_ne_bytes();
        self.tunnels.update(&index, &entry, MapFlags::ANY).map_err(failed("cannot set a tunnel"))
    }
}
