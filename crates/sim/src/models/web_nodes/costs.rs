//! Costs of the nodes of the Socket Cloning study.

use plimsoll_policy::Nanos;

use super::params::{CloneParams, NodeMechanism, PeerParams, WebNodeParams};

/// Costs in integer nanoseconds, derived once. What a mechanism does not do is not asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct WebNodeCosts {
    pub(super) parse: Nanos,
    pub(super) fetch: Nanos,
    pub(super) clone_send: Nanos,
    pub(super) clone_make: Nanos,
    pub(super) file_server_latency: Nanos,
    route_ack: u64,
    rewrite_ack: u64,
    ack_bytes: u64,
    send_per_byte_ns: f64,
    nic_per_byte_ns: f64,
    file_server_per_byte_ns: f64,
}

impl WebNodeCosts {
    pub(super) fn new(p: &WebNodeParams, mechanism: NodeMechanism) -> Self {
        let us = |us: f64| Nanos::new((us * 1e3).round() as u64);
        let (mut clone, mut peer) = (CloneParams::default(), PeerParams::default());
        match mechanism {
            NodeMechanism::Alone => {}
            NodeMechanism::CooperativeCaching(params) => peer = params,
            NodeMechanism::Cloning(params) => clone = params,
        }
        Self {
            parse: us(p.parse_us),
            fetch: us(peer.fetch_us),
            clone_send: us(clone.clone_send_us),
            clone_make: us(clone.clone_make_us),
            file_server_latency: us(p.file_server_latency_us),
            route_ack: us(clone.route_ack_us).as_nanos(),
            rewrite_ack: us(clone.rewrite_ack_us).as_nanos(),
            ack_bytes: clone.ack_bytes,
            send_per_byte_ns: p.send_per_kib_us * 1e3 / 1024.0,
            nic_per_byte_ns: 1e9 / p.nic_bytes_per_s,
            file_server_per_byte_ns: 1e9 / p.file_server_bytes_per_s,
        }
    }

    /// CPU time to send this many bytes, or to receive them.
    pub(super) fn send(&self, bytes: u64) -> Nanos {
        scaled(bytes, self.send_per_byte_ns)
    }

    /// Time of the network interface for this many bytes.
    pub(super) fn nic(&self, bytes: u64) -> Nanos {
        scaled(bytes, self.nic_per_byte_ns)
    }

    /// Time of the file server for this many bytes.
    pub(super) fn file_server(&self, bytes: u64) -> Nanos {
        scaled(bytes, self.file_server_per_byte_ns)
    }

    /// CPU times at the original and at the node of the clone for the acknowledgments of this many bytes; there is one at least.
    pub(super) fn acks(&self, bytes: u64) -> (Nanos, Nanos) {
        let acks = bytes.div_ceil(self.ack_bytes).max(1);
        (Nanos::new(acks.saturating_mul(self.route_ack)), Nanos::new(acks.saturating_mul(self.rewrite_ack)))
    }
}

fn scaled(bytes: u64, per_byte_ns: f64) -> Nanos {
    Nanos::new((bytes as f64 * per_byte_ns).round() as u64)
}
