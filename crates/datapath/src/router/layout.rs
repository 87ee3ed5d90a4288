//! The encoding of what `bpf/structs.h` has for the packet router.

use plimsoll_wire::{FLOW_KEY_BYTES, Flow, TcpState};

use crate::layout::{
    CLIENT_WINDOW_MIN, HELD_HEAD_BYTES, Mac, NextHop, SEEN, TURN_BYTES, WINDOW_SCALE_MAX, flow_at, turn,
    u32_at, u64_at,
};
use crate::ring::{FromRecord, HeldPacket};

/// The table of cloned connections.
pub(super) const CLONES: &str = "plimsoll_clones";
/// Bytes of `struct clone_entry`.
pub(super) const CLONE_ENTRY_BYTES: usize = 80;
/// Bytes of `struct expected_end`.
const EXPECTED_BYTES: usize = 40;
/// Where `told` is in `struct held_head`.
const TOLD_AT: usize = HELD_HEAD_BYTES - 4;

const NUMBERED: u32 = 1;
const RESET: u32 = 4;
const FORGED: u32 = 8;
const KEPT: u32 = 0x10;
const CLOSING: u32 = 0x20;
const BEGUN_ANEW: u32 = 0x40;

/// What the packet router reports of a cloned connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouterEvent {
    /// A packet that is held.
    Packet(HeldPacket),
    /// The client has acknowledged the whole answer.
    Acknowledged(Flow),
    /// The client has reset the connection.
    Reset(Flow),
    /// Somebody has acknowledged, with the client's numbers, what nobody can have sent.
    Forged(Flow),
}

impl FromRecord for RouterEvent {
    fn from_record(record: &[u8]) -> Option<Self> {
        let flow = flow_at(record, 16)?;
        match u32_at(record, TOLD_AT) {
            0 => HeldPacket::from_record(record).map(Self::Packet),
            1 => Some(Self::Acknowledged(flow)),
            2 => Some(Self::Reset(flow)),
            3 => Some(Self::Forged(flow)),
            _ => None,
        }
    }
}

/// How far the client of a cloned connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloneEntry {
    /// The highest acknowledgment number; `None` before [`crate::PacketRouter::number`].
    pub last_ack: Option<u32>,
    /// The number after the answer's last byte, once it is known.
    pub end: Option<u32>,
    /// The window that the client announced last, in bytes.
    pub client_window: u32,
    /// Packets that were sent on.
    pub packets: u64,
    /// Whether the client has reset the connection.
    pub reset: bool,
    /// Whether more was acknowledged than can have been sent.
    pub forged: bool,
    /// Whether its clone keeps the connection and has ended it.
    pub closing: bool,
    /// Whether a SYN of the client has come. It may be somebody else's, who only knows the addresses.
    pub begun_anew: bool,
    /// The number of the next byte that the original expects from the client.
    pub expected_seq: u32,
}

impl CloneEntry {
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let number = |at| {
            let word = u64_at(bytes, at);
            (word & SEEN != 0).then_some(word as u32)
        };
        Self {
            last_ack: number(0),
            end: number(8),
            client_window: u32_at(bytes, 64),
            packets: u64_at(bytes, 24),
            reset: u32_at(bytes, 56) & RESET != 0,
            forged: u32_at(bytes, 56) & FORGED != 0,
            closing: u32_at(bytes, 56) & CLOSING != 0,
            begun_anew: u32_at(bytes, 56) & BEGUN_ANEW != 0,
            expected_seq: u32_at(bytes, 72),
        }
    }
}

/// An entry whose packets are held, with the numbers of a connection that is frozen in this state.
pub(super) fn numbered(state: &TcpState, now_ns: u64) -> [u8; CLONE_ENTRY_BYTES] {
    let (client_scale, our_scale) = state.window_scales.unwrap_or_default();
    let acknowledged = state.send_acknowledged();
    let edge = acknowledged.wrapping_add(state.window.send_max.max(CLIENT_WINDOW_MIN));
    let words = [
        NUMBERED,
        edge,
        state.window.send,
        client_scale.min(WINDOW_SCALE_MAX).into(),
        state.receive_next,
        u32::from(u16::MAX) << our_scale.min(WINDOW_SCALE_MAX),
    ];
    let mut bytes = [0; CLONE_ENTRY_BYTES];
    bytes[..8].copy_from_slice(&(SEEN | u64::from(acknowledged)).to_ne_bytes());
    bytes[16..24].copy_from_slice(&now_ns.to_ne_bytes());
    for (to, word) in bytes[56..].chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// Leads a flow to a clone that keeps its connection.
pub(super) fn turn_all(flow: &Flow, next_hop: &NextHop, closing: bool) -> [u8; TURN_BYTES] {
    let mut bytes = turn(flow, next_hop, 0);
    let marks = if closing { KEPT | CLOSING } else { KEPT };
    bytes[TURN_BYTES - 4..].copy_from_slice(&marks.to_ne_bytes());
    bytes
}

pub(super) fn expected(flow: &Flow, end: u32) -> [u8; EXPECTED_BYTES] {
    let mut bytes = [0; EXPECTED_BYTES];
    bytes[..4].copy_from_slice(&end.to_ne_bytes());
    bytes[4..4 + FLOW_KEY_BYTES].copy_from_slice(&flow.key());
    bytes
}

pub(super) fn node_key(mac: &Mac) -> [u8; 8] {
    let mut key = [0; 8];
    key[..6].copy_from_slice(mac);
    key
}
