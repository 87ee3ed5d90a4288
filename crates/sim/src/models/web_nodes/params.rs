//! Parameters of the nodes of the Socket Cloning study, and how they work together.

use plimsoll_policy::params::{ParamSpec, Params as _};

plimsoll_policy::params! {
    /// Parameters of all nodes of the Socket Cloning study: Pentium III of 733 MHz, Fast Ethernet, documents on a file server. What
    /// the paper does not tell is a reading, see decision 56.
    pub struct WebNodeParams {
        /// CPU time to accept a connection and to read its request.
        parse_us: f64 = 150.0, 0.0..=1e9, "µs";
        /// CPU time to send 1,024 bytes.
        send_per_kib_us: f64 = 12.0, 0.0..=1e9, "µs";
        /// Bytes per second of a node's network interface, which sends or receives.
        nic_bytes_per_s: f64 = 11700000.0, 1.0..=1e15, "bytes/s";
        /// Bytes per second of the file server, shared by all nodes.
        file_server_bytes_per_s: f64 = 29000000.0, 1.0..=1e15, "bytes/s";
        /// Time from asking the file server for a document until it begins to send.
        file_server_latency_us: f64 = 3000.0, 0.0..=1e9, "µs";
        /// Bytes that are sent, or fetched from another node, in one piece.
        chunk_bytes: u64 = 16384, 512..=1000000000000, "bytes";
        /// 1 has what comes from the file server take time of the network interface; with 0 it comes in beside what is sent.
        reads_use_nic: u32 = 1, 0..=1, "";
    }
}

plimsoll_policy::params! {
    /// Parameters of nodes that fetch documents from each other's memory.
    pub struct PeerParams {
        /// CPU time at each of two nodes for the messages of a fetch, of which each sends one and takes one: as much as a socket
        /// that is sent and one that is made.
        fetch_us: f64 = 46.0, 0.0..=1e9, "µs";
        /// 1 has a node keep what it fetched from another one; with 0 there is one copy of each document.
        replicates: u32 = 1, 0..=1, "";
        /// 1 has every document fetched from the node that comes after the one that serves, as in the study's micro-benchmark.
        always: u32 = 0, 0..=1, "";
    }
}

plimsoll_policy::params! {
    /// Parameters of nodes that clone sockets to each other.
    pub struct CloneParams {
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
        /// 1 has every connection accepted by the node that comes after the one that serves, as in the study's micro-benchmark.
        always: u32 = 0, 0..=1, "";
    }
}

/// Parameters of `cooperative_caching`.
pub(super) const COOPERATIVE_PARAMS: [ParamSpec; WebNodeParams::SPECS.len() + PeerParams::SPECS.len()] =
    joined(WebNodeParams::SPECS, PeerParams::SPECS);

/// Parameters of `cloning`.
pub(super) const CLONING_PARAMS: [ParamSpec; WebNodeParams::SPECS.len() + CloneParams::SPECS.len()] =
    joined(WebNodeParams::SPECS, CloneParams::SPECS);

const fn joined<const ALL: usize>(first: &[ParamSpec], second: &[ParamSpec]) -> [ParamSpec; ALL] {
    let mut all = [first[0]; ALL];
    let mut at = 0;
    while at < ALL {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

/// How nodes work together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NodeMechanism {
    /// Not at all.
    Alone,
    /// They fetch documents from each other's memory.
    CooperativeCaching(PeerParams),
    /// They clone sockets to each other.
    Cloning(CloneParams),
}

impl NodeMechanism {
    /// Whether each request goes by the mechanism, as in the study's micro-benchmark.
    pub(super) fn is_forced(self) -> bool {
        match self {
            Self::Alone => false,
            Self::CooperativeCaching(params) => params.always == 1,
            Self::Cloning(params) => params.always == 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_the_parameters_of_its_mechanism_alone() {
        let names = |specs: &[ParamSpec]| specs.iter().map(|spec| spec.name).collect::<Vec<_>>();
        let (cooperative, cloning) = (names(&COOPERATIVE_PARAMS), names(&CLONING_PARAMS));
        assert!(cooperative.contains(&"fetch_us") && !cooperative.contains(&"clone_send_us"));
        assert!(cloning.contains(&"clone_send_us") && !cloning.contains(&"replicates"));
        for mut names in [cooperative, cloning] {
            assert!(names.contains(&"parse_us") && names.contains(&"always"));
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }
}
