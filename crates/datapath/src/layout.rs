//! The encoding of the structs in `bpf/structs.h`. Numbers are in the machine's byte order, flow keys in
//! network order.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use plimsoll_wire::{FLOW_KEY_BYTES, Flow, TcpState, ipv6_mapped};

/// Bytes of `struct flow_entry`.
pub(crate) const FLOW_ENTRY_BYTES: usize = 96;
/// Bytes of `struct turn`.
pub(crate) const TURN_BYTES: usize = 64;
/// Bytes of `struct windows`.
pub(crate) const WINDOWS_BYTES: usize = 56;
/// Bytes of `struct ended`.
pub(crate) const ENDED_BYTES: usize = 48;
/// Bytes of `struct lease`.
pub(crate) const LEASE_BYTES: usize = 16;
/// Bytes of `struct vip_key`.
pub(crate) const VIP_KEY_BYTES: usize = 20;
/// Bytes of `struct held_head`.
pub(crate) const HELD_HEAD_BYTES: usize = 56;
/// Longest frame that is held, `HELD_LARGE_BYTES`.
pub(crate) const HELD_FRAME_BYTES: usize = 3072;
/// Most virtual addresses, `MAX_VIPS`.
pub(crate) const MAX_VIPS: usize = 256;

/// Largest window scale (RFC 7323, section 2.3).
pub(crate) const WINDOW_SCALE_MAX: u8 = 14;
/// A client's window counts as large as this at least: one that announces nothing now may announce this much at any time.
pub(crate) const CLIENT_WINDOW_MIN: u32 = 1 << 16;

const FIN: u32 = 1;
const RST: u32 = 2;
const OVER: u32 = 4;
pub(crate) const SEEN: u64 = 1 << 32;

/// A MAC address.
pub type Mac = [u8; 6];

/// The Ethernet destination of frames for a machine on the same segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    /// Index of our interface on that segment.
    pub ifindex: u32,
    /// The machine's MAC address.
    pub mac: Mac,
    /// Our interface's MAC address.
    pub own_mac: Mac,
}

/// The entry of a flow that a back-end has. Times are nanoseconds of `CLOCK_MONOTONIC`, see
/// [`crate::now_ns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowEntry {
    /// Where its packets go: interface 0 after [`crate::Forwarder::lead_here`].
    pub next_hop: NextHop,
    /// The number that the caller gave to the agent which has it.
    pub agent: u32,
    /// When the client last sent something, or else when the flow was entered.
    pub last_seen_ns: u64,
    /// The highest acknowledgment number that the client has sent since the flow was entered.
    pub last_ack: Option<u32>,
    /// The highest sequence number that the client has sent, plus what it covers (bytes, and 1 for a FIN), since the
    /// flow was entered.
    pub last_seq_end: Option<u32>,
    /// Whether the client has ended its side.
    pub fin: bool,
    /// Whether a RST with the right sequence number has come. Only a hint: the back-end's kernel decides.
    pub rst: bool,
    /// Whether the connection is over, see [`crate::Forwarder::end`].
    pub over: bool,
    /// Packets that were forwarded, merged ones counted once.
    pub packets: u64,
    /// Bytes of the forwarded frames.
    pub bytes: u64,
    /// When the flow was entered.
    pub began_ns: u64,
    /// Bytes of answers that the client has acknowledged since.
    pub acked_bytes: u64,
}

/// Permission to send on a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseEntry {
    /// Its end (`CLOCK_MONOTONIC`, nanoseconds); `u64::MAX` for an endless lease.
    pub until_ns: u64,
    /// When the kernel last sent a packet under it, or when it was entered.
    pub last_sent_ns: u64,
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    if let Some(found) = bytes.get(at..at + 4) {
        word.copy_from_slice(found);
    }
    u32::from_ne_bytes(word)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    if let Some(found) = bytes.get(at..at + 8) {
        word.copy_from_slice(found);
    }
    u64::from_ne_bytes(word)
}

fn mac_at(bytes: &[u8], at: usize) -> Mac {
    let mut mac = [0; 6];
    if let Some(found) = bytes.get(at..at + 6) {
        mac.copy_from_slice(found);
    }
    mac
}

pub(crate) fn flow_at(bytes: &[u8], at: usize) -> Option<Flow> {
    let key: &[u8; FLOW_KEY_BYTES] = bytes.get(at..at + FLOW_KEY_BYTES)?.try_into().ok()?;
    Some(Flow::from_key(key))
}

pub(crate) fn put_next_hop(to: &mut [u8], next_hop: &NextHop, agent: u32) {
    to[..6].copy_from_slice(&next_hop.mac);
    to[8..14].copy_from_slice(&next_hop.own_mac);
    to[16..20].copy_from_slice(&next_hop.ifindex.to_ne_bytes());
    to[20..24].copy_from_slice(&agent.to_ne_bytes());
}

/// A flow that has just been entered.
pub(crate) fn new_flow_entry(next_hop: &NextHop, agent: u32, now_ns: u64) -> [u8; FLOW_ENTRY_BYTES] {
    let mut bytes = [0; FLOW_ENTRY_BYTES];
    bytes[..8].copy_from_slice(&now_ns.to_ne_bytes());
    put_next_hop(&mut bytes[40..64], next_hop, agent);
    bytes[80..88].copy_from_slice(&now_ns.to_ne_bytes());
    bytes
}

pub(crate) fn turn(flow: &Flow, next_hop: &NextHop, agent: u32) -> [u8; TURN_BYTES] {
    let mut bytes = [0; TURN_BYTES];
    put_next_hop(&mut bytes[..24], next_hop, agent);
    bytes[24..24 + FLOW_KEY_BYTES].copy_from_slice(&flow.key());
    bytes
}

/// Leads a flow to this machine.
pub(crate) fn turn_here(flow: &Flow) -> [u8; TURN_BYTES] {
    let mut bytes = [0; TURN_BYTES];
    bytes[24..24 + FLOW_KEY_BYTES].copy_from_slice(&flow.key());
    bytes
}

/// The windows of a connection that was frozen in this state.
pub(crate) fn windows(state: &TcpState) -> [u8; WINDOWS_BYTES] {
    let (client_scale, our_scale) = state.window_scales.unwrap_or_default();
    let our_window = u32::from(u16::MAX) << our_scale.min(WINDOW_SCALE_MAX);
    let client_window = state.window.send_max.max(CLIENT_WINDOW_MIN);
    let words = [
        state.send_acknowledged(),
        state.receive_next,
        our_window,
        client_window,
        client_scale.min(WINDOW_SCALE_MAX).into(),
    ];
    let mut bytes = [0; WINDOWS_BYTES];
    for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    bytes[20..].copy_from_slice(&state.flow.key());
    bytes
}

pub(crate) fn ended(flow: &Flow, quiet: Duration) -> [u8; ENDED_BYTES] {
    let mut bytes = [0; ENDED_BYTES];
    let quiet_ns = u64::try_from(quiet.as_nanos()).unwrap_or(u64::MAX);
    bytes[..8].copy_from_slice(&quiet_ns.to_ne_bytes());
    bytes[8..8 + FLOW_KEY_BYTES].copy_from_slice(&flow.key());
    bytes
}

impl FlowEntry {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let number = |at| {
            let word = u64_at(bytes, at);
            (word & SEEN != 0).then_some(word as u32)
        };
        let seen = u32_at(bytes, 64);
        Self {
            last_seen_ns: u64_at(bytes, 0),
            packets: u64_at(bytes, 8),
            bytes: u64_at(bytes, 16),
            last_ack: number(24),
            last_seq_end: number(32),
            next_hop: NextHop {
                mac: mac_at(bytes, 40),
                own_mac: mac_at(bytes, 48),
                ifindex: u32_at(bytes, 56),
            },
            agent: u32_at(bytes, 60),
            fin: seen & FIN != 0,
            rst: seen & RST != 0,
            over: seen & OVER != 0,
            began_ns: u64_at(bytes, 80),
            acked_bytes: u64_at(bytes, 88),
        }
    }
}

impl LeaseEntry {
    pub(crate) fn to_bytes(self) -> [u8; LEASE_BYTES] {
        let mut bytes = [0; LEASE_BYTES];
        bytes[..8].copy_from_slice(&self.until_ns.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.last_sent_ns.to_ne_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        Self { until_ns: u64_at(bytes, 0), last_sent_ns: u64_at(bytes, 8) }
    }
}

/// Key of a virtual address with its port, or with port 0.
pub(crate) fn vip_key(address: IpAddr, port: u16) -> [u8; VIP_KEY_BYTES] {
    let mut key = [0; VIP_KEY_BYTES];
    key[..16].copy_from_slice(&ipv6_mapped(address).octets());
    key[16..18].copy_from_slice(&port.to_be_bytes());
    key
}

/// The bits of ports, as 1024 words.
pub(crate) fn port_bits(addresses: &[SocketAddr]) -> Vec<u64> {
    let mut words = vec![0_u64; 1024];
    for address in addresses {
        let port = usize::from(address.port());
        if let Some(word) = words.get_mut(port / 64) {
            *word |= 1 << (port % 64);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> Flow {
        Flow::new("10.0.0.9:4711".parse().unwrap(), "10.0.0.1:80".parse().unwrap())
    }

    #[test]
    fn entries_and_back() {
        let next_hop = NextHop { ifindex: 7, mac: [2, 0, 0, 0, 0, 1], own_mac: [2, 0, 0, 0, 0, 2] };
        let mut bytes = new_flow_entry(&next_hop, 3, 99);
        let entry = FlowEntry::from_bytes(&bytes);
        assert_eq!((entry.next_hop, entry.agent, entry.last_seen_ns), (next_hop, 3, 99));
        assert_eq!((entry.began_ns, entry.acked_bytes), (99, 0));
        assert_eq!((entry.last_ack, entry.last_seq_end, entry.fin, entry.rst), (None, None, false, false));
        bytes[24..32].copy_from_slice(&SEEN.to_ne_bytes());
        bytes[64] = 2;
        let entry = FlowEntry::from_bytes(&bytes);
        assert_eq!((entry.last_ack, entry.last_seq_end, entry.fin, entry.rst), (Some(0), None, false, true));
        let turn = turn(&flow(), &next_hop, 3);
        assert_eq!(turn[..24], bytes[40..64]);
        assert_eq!(flow_at(&turn, 24), Some(flow()));
        assert_eq!(flow_at(&turn, 60), None);
        let here = turn_here(&flow());
        assert_eq!((&here[..24], &here[24..]), (&[0; 24][..], &turn[24..]));
    }

    #[test]
    fn ports_are_bits() {
        let words = port_bits(&["0.0.0.0:80".parse().unwrap(), "[::1]:65535".parse().unwrap()]);
        assert_eq!(words.iter().map(|word| word.count_ones()).sum::<u32>(), 2);
        assert_eq!((words[1], words[1023]), (1 << 16, 1 << 63));
    }
}
