//! Counters of the packet programs, summed over CPUs.

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::layout::u64_at;

/// The forwarder's counters since its maps were created.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ForwarderCounters {
    /// Packets sent on to a back-end; merged ones count once.
    pub forwarded_packets: u64,
    /// Their bytes.
    pub forwarded_bytes: u64,
    /// TCP packets to listeners' ports whose connection no back-end has: the front-end's own.
    pub unknown: u64,
    /// Flows whose client had ended them and that a new connection from the same port removed.
    pub syn_removed: u64,
    /// ICMP errors about packets of back-ends, sent on to these. Among them are those by which a sender learns of a
    /// smaller MTU on the way.
    pub errors: u64,
    /// IP fragments. They are forwarded if the first fragment of their packet was.
    pub fragments: u64,
    /// Packets with IPv6 extension headers that the program does not understand. They are never forwarded.
    pub options: u64,
    /// Packets whose lengths contradict one another. They are never forwarded.
    pub malformed: u64,
}

/// The guard's counters since its maps were created.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct GuardCounters {
    /// Packets for a virtual address that had their socket.
    pub passed: u64,
    /// Packets without a socket that were held for the agent.
    pub held: u64,
    /// Packets without a socket that were dropped because the ring was full.
    pub ring_full: u64,
    /// Packets without a socket that were dropped because they were too long to be held.
    pub too_long: u64,
    /// Dropped SYNs without a matching socket: connections begin at the front-end.
    pub syn_dropped: u64,
    /// SYNs sent back to the front-end, because the connection that they follow is over.
    pub syn_returned: u64,
    /// Packets sent under a lease.
    pub sent: u64,
    /// Packets dropped because their flow had no lease.
    pub fenced_unknown: u64,
    /// Packets dropped because the lease was over.
    pub fenced_late: u64,
    /// IP fragments.
    pub fragments: u64,
    /// Packets with IPv6 extension headers that the program does not understand.
    pub options: u64,
    /// Packets whose lengths contradict one another.
    pub malformed: u64,
}

/// The packet router's counters since it was opened.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RouterCounters {
    /// Packets sent on to clones; merged ones count once.
    pub routed_packets: u64,
    /// Their bytes.
    pub routed_bytes: u64,
    /// Packets that were held for the original, or until the clone is there.
    pub held: u64,
    /// Packets that were to be held, and events, for which the ring had no room.
    pub ring_full: u64,
    /// Packets that were to be held and are too long; the client sends them again.
    pub too_long: u64,
    /// Packets from other nodes for clones that are no more.
    pub late: u64,
    /// RSTs of clients, by their number, whose connections were cloned.
    pub resets: u64,
    /// Acknowledgments of what nobody can have sent.
    pub forged: u64,
    /// ICMP errors about packets of clones, sent on to these.
    pub errors: u64,
    /// IP fragments. They are not sent on.
    pub fragments: u64,
    /// Packets with IPv6 extension headers that the program does not understand. They are not sent on.
    pub options: u64,
    /// Packets whose lengths contradict one another.
    pub malformed: u64,
}

impl RouterCounters {
    pub(crate) fn read(map: &MapHandle) -> Result<Self, DatapathError> {
        let [routed_packets, routed_bytes, held, ring_full, too_long, late, rest @ ..]: [u64; 12] =
            read(map)?;
        let [resets, forged, errors, fragments, options, malformed] = rest;
        Ok(Self {
            routed_packets,
            routed_bytes,
            held,
            ring_full,
            too_long,
            late,
            resets,
            forged,
            errors,
            fragments,
            options,
            malformed,
        })
    }
}

impl ForwarderCounters {
    pub(crate) fn read(map: &MapHandle) -> Result<Self, DatapathError> {
        let [forwarded_packets, forwarded_bytes, unknown, syn_removed, errors, fragments, options, malformed] =
            read(map)?;
        Ok(Self {
            forwarded_packets,
            forwarded_bytes,
            unknown,
            syn_removed,
            errors,
            fragments,
            options,
            malformed,
        })
    }
}

impl GuardCounters {
    pub(crate) fn read(map: &MapHandle) -> Result<Self, DatapathError> {
        let [
            passed,
            held,
            ring_full,
            too_long,
            syn_dropped,
            syn_returned,
            sent,
            unknown,
            late,
            fragments,
            options,
            malformed,
        ] = read(map)?;
        Ok(Self {
            passed,
            held,
            ring_full,
            too_long,
            syn_dropped,
            syn_returned,
            sent,
            fenced_unknown: unknown,
            fenced_late: late,
            fragments,
            options,
            malformed,
        })
    }
}

/// Counters of a program, summed over CPUs, in the order in which it has them.
pub(crate) fn read<const N: usize>(map: &MapHandle) -> Result<[u64; N], DatapathError> {
    let per_cpu = map
        .lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| DatapathError::of_bpf("cannot read the counters", BPF_CAPABILITIES, &error))?;
    let mut sums = [0_u64; N];
    for counts in per_cpu.unwrap_or_default() {
        for (index, sum) in sums.iter_mut().enumerate() {
            *sum = sum.wrapping_add(u64_at(&counts, 8 * index));
        }
    }
    Ok(sums)
}
