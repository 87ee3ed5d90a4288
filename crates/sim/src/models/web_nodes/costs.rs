//! Costs of the nodes of the Socket Cloning study.

use plimsoll_policy::Nanos;

plimsoll_policy::params! {
    /// Parameters of the nodes of the Socket Cloning study: Pentium III of 733 MHz, Fast Ethernet, documents on a file server. What
    /// the paper does not tell is a reading, see decision 56.
    pub struct WebNodeParams {
        /// CPU time to accept a connection and to read its request.
        parse_us: f64 = 150.0, 0.0..=1e9, "µs";
        /// CPU time to send 1,024 bytes.
        send_per_kib_us: f64 = 12.0, 0.0..=1e9, "µs";
        /// CPU time at the original to send a socket away.
        clone_send_us: f64 = 23.0, 0.0..=1e9, "µs";
        /// CPU time at the node of the clone to make it; with the above the published startup cost.
        clone_make_us: f64 = 23.0, 0.0..=1e9, "µs";
        /// CPU time at the original to route an acknowledgment of the client to the node of the clone.
        route_ack_us: f64 = 5.0, 0.0..=1e9, "µs";
        /// CPU time at the node of a clone for an acknowledgment that it has to rewrite: of a TCP handoff, not of a clone.
        rewrite_ack_us: f64 = 0.0, 0.0..=1e9, "µs";
        /// Bytes that an acknowledgment of a client acknowledges.
        ack_bytes: u64 = 2920, 1..=1000000000, "bytes";
        /// Bytes per second of a node's network interface, which sends or receives.
        nic_bytes_per_s: f64 = 11700000.0, 1.0..=1e15, "bytes/s";
        /// Bytes per second of the file server, shared by all nodes.
        file_server_bytes_per_s: f64 = 29000000.0, 1.0..=1e15, "bytes/s";
        /// Time from asking the file server for a document until it begins to send.
        file_server_latency_us: f64 = 3000.0, 0.0..=1e9, "µs";
        /// Bytes that are sent, or fetched from another node, in one piece.
        chunk_bytes: u64 = 16384, 512..=1000000000000, "bytes";
        /// In `cooperative_caching`: 1 has a node keep what it fetched from another one; with 0 there is one copy of each document.
        replicates: u32 = 1, 0..=1, "";
        /// 1 has what comes from the file server take time of the network interface; with 0 it comes in beside what is sent.
        reads_use_nic: u32 = 1, 0..=1, "";
        /// 1 applies the mechanism to each request, as the study's micro-benchmark does: all connections are accepted by the node that
        /// comes after the one that serves; every document is fetched from there.
        always: u32 = 0, 0..=1, "";
    }
}

/// Costs in integer nanoseconds, derived once.
#[derive(Debug, Clone, Copy)]
pub(super) struct WebNodeCosts {
    pub(super) parse: Nanos,
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
    pub(super) fn new(p: &WebNodeParams) -> Self {
        let us = |us: f64| Nanos::new((us * 1e3).round() as u64);
        Self {
            parse: us(p.parse_us),
            clone_send: us(p.clone_send_us),
            clone_make: us(p.clone_make_us),
            file_server_latency: us(p.file_server_latency_us),
            route_ack: us(p.route_ack_us).as_nanos(),
            rewrite_ack: us(p.rewrite_ack_us).as_nanos(),
            ack_bytes: p.ack_bytes,
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
