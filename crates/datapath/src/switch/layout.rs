//! The encoding of the structs in `bpf/switch_structs.h`. Numbers are in the machine's byte order, keys in network order.

use std::net::{IpAddr, SocketAddr};

use plimsoll_wire::{FLOW_KEY_BYTES, Flow, ipv6_mapped};

use crate::layout::{Mac, flow_at, u32_at, u64_at};

/// Bytes of `struct conn_key`.
pub(crate) const CONN_KEY_BYTES: usize = FLOW_KEY_BYTES + 4;
/// Bytes of `struct switch_conn`.
pub(crate) const CONN_BYTES: usize = 64;
/// Places in `struct switch_interfaces`.
pub(crate) const MOST_INTERFACES: usize = 32;
/// Bytes of `struct switch_interface`.
const INTERFACE_BYTES: usize = 16;
/// Bytes of `struct service_key`.
pub(crate) const SERVICE_BYTES: usize = 20;
/// Bytes of `struct sample` without its payload.
const SAMPLE_HEAD_BYTES: usize = 72;
/// Bytes of the payload of `struct sample`.
pub(crate) const SAMPLE_BYTES: usize = 2048;

const FIN: u32 = 1;
const RST: u32 = 2;
const HASHED: u32 = 4;

/// A transport protocol whose connections the switch distributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP, where the datagrams between two ports count as a connection.
    Udp,
}

impl Transport {
    /// Its number in IP headers.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    fn of(number: u32) -> Option<Self> {
        match number {
            6 => Some(Self::Tcp),
            17 => Some(Self::Udp),
            _ => None,
        }
    }
}

/// A client's connection through the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchConn {
    /// Its ends.
    pub flow: Flow,
    /// Its protocol.
    pub transport: Transport,
}

impl SwitchConn {
    pub(crate) fn key(&self) -> [u8; CONN_KEY_BYTES] {
        let mut key = [0; CONN_KEY_BYTES];
        key[..FLOW_KEY_BYTES].copy_from_slice(&self.flow.key());
        key[FLOW_KEY_BYTES..].copy_from_slice(&u32::from(self.transport.number()).to_ne_bytes());
        key
    }

    pub(crate) fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let transport = Transport::of(u32_at(bytes, at + FLOW_KEY_BYTES))?;
        Some(Self { flow: flow_at(bytes, at)?, transport })
    }
}

/// Who has a connection: the index of a back-end, and which of those that had this index it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnHolder {
    /// The index, below [`super::MOST_BACKENDS`].
    pub backend: u16,
    /// How many back-ends had it before, modulo 65,536.
    pub generation: u16,
}

impl ConnHolder {
    pub(crate) fn word(self) -> u32 {
        u32::from(self.backend) | u32::from(self.generation) << 16
    }

    pub(crate) fn of(word: u32) -> Self {
        Self { backend: word as u16, generation: (word >> 16) as u16 }
    }
}

/// `struct switch_interfaces`: numbers of interfaces, MAC addresses, and whether they are virtual. `None` if there are too many.
pub(crate) fn interfaces(all: impl Iterator<Item = (u32, Mac, bool)>) -> Option<Vec<u8>> {
    let mut bytes = vec![0; MOST_INTERFACES * INTERFACE_BYTES];
    let mut places = bytes.chunks_mut(INTERFACE_BYTES);
    for (index, mac, is_virtual) in all {
        let place = places.next()?;
        place[..6].copy_from_slice(&mac);
        place[8..12].copy_from_slice(&index.to_ne_bytes());
        place[12..].copy_from_slice(&u32::from(is_virtual).to_ne_bytes());
    }
    Some(bytes)
}

pub(crate) fn service(address: SocketAddr, transport: Transport) -> [u8; SERVICE_BYTES] {
    let mut key = [0; SERVICE_BYTES];
    key[..16].copy_from_slice(&ipv6_mapped(address.ip().to_canonical()).octets());
    key[16..18].copy_from_slice(&address.port().to_be_bytes());
    key[18..].copy_from_slice(&u16::from(transport.number()).to_ne_bytes());
    key
}

/// The inverse of [`service`].
pub(super) fn service_of(key: &[u8]) -> Option<(SocketAddr, Transport)> {
    let (ip, rest) = key.split_first_chunk::<16>()?;
    let (port, rest) = rest.split_first_chunk()?;
    let transport = Transport::of(u16::from_ne_bytes(*rest.first_chunk()?).into())?;
    let ip = IpAddr::from(*ip).to_canonical();
    Some((SocketAddr::new(ip, u16::from_be_bytes(*port)), transport))
}

/// In which table a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnTable {
    /// The client has answered the handshake, or sent a second datagram.
    Established,
    /// Only first packets have come.
    Opening,
    /// Placed by the hash.
    Hashed,
}

impl ConnTable {
    /// All of them. Who reads them in this order misses no connection that is established meanwhile.
    pub const ALL: [Self; 3] = [Self::Opening, Self::Established, Self::Hashed];
}

/// What the switch knows of a connection. Times are nanoseconds of [`crate::now_ns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnEntry {
    /// When the client last sent something, to within a few milliseconds.
    pub last_seen_ns: u64,
    /// When its first packet came.
    pub began_ns: u64,
    /// Packets of the client; merged ones count once.
    pub packets: u64,
    /// Bytes of their frames.
    pub bytes: u64,
    /// The number of the choice that it took; `None` where the hash has placed it.
    pub choice: Option<u64>,
    /// Who has it.
    pub holder: ConnHolder,
    /// Whether the client has ended its side.
    pub fin: bool,
    /// Whether the client has reset it, or its back-end is gone.
    pub rst: bool,
    /// Whether the hash has placed it.
    pub hashed: bool,
    /// The number after the highest sequence number of the client; while it opens, the number after its SYN's.
    pub seq_end: u32,
    /// The last acknowledgment number of the client.
    pub last_ack: u32,
}

impl ConnEntry {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let flags = u32_at(bytes, 44);
        Self {
            last_seen_ns: u64_at(bytes, 0),
            began_ns: u64_at(bytes, 8),
            packets: u64_at(bytes, 16),
            bytes: u64_at(bytes, 24),
            choice: choice_number(u64_at(bytes, 32)),
            holder: ConnHolder::of(u32_at(bytes, 40)),
            fin: flags & FIN != 0,
            rst: flags & RST != 0,
            hashed: flags & HASHED != 0,
            seq_end: u32_at(bytes, 48),
            last_ack: u32_at(bytes, 52),
        }
    }

    /// Whether only one packet of it has come where the hash has placed it: that may be forged, and is no load.
    #[must_use]
    pub fn is_unproven(&self) -> bool {
        self.hashed && self.packets < 2
    }

    /// Whether the client has ended it, or it is lost.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.fin || self.rst
    }
}

/// A choice for a connection to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreparedChoice {
    /// Its number, from 1 to 2^48 - 1.
    pub number: u64,
    /// The index of the chosen back-end.
    pub backend: u16,
}

/// The largest number of a choice.
pub(crate) const MOST_NUMBER: u64 = (1 << 48) - 1;

impl PreparedChoice {
    pub(crate) fn word(self) -> u64 {
        (u64::from(self.backend) + 1) << 48 | (self.number & MOST_NUMBER)
    }

    pub(crate) fn of(word: u64) -> Option<Self> {
        let backend = u16::try_from((word >> 48).checked_sub(1)?).ok()?;
        Some(Self { number: word & MOST_NUMBER, backend })
    }
}

fn choice_number(word: u64) -> Option<u64> {
    PreparedChoice::of(word).map(|choice| choice.number)
}

/// What became of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnChange {
    /// Its first packet took a choice.
    Began,
    /// The client has answered the handshake, or has sent a second datagram; or it has sent a second packet of a connection that
    /// the hash has placed.
    Established {
        /// From the client's first packet to its second; `None` where only one was seen.
        round_trip_ns: Option<u64>,
    },
    /// The client has ended it.
    Ended,
    /// Its back-end was gone when the client sent something.
    Lost,
}

/// A change of a connection, as the packet program has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnEvent {
    /// When, in nanoseconds of [`crate::now_ns`].
    pub at_ns: u64,
    /// The connection.
    pub conn: SwitchConn,
    /// The number of the choice that it took; `None` where the hash has placed it.
    pub choice: Option<u64>,
    /// Who has it.
    pub holder: ConnHolder,
    /// What became of it.
    pub change: ConnChange,
}

impl ConnEvent {
    /// From `struct switch_event`.
    pub(crate) fn from_record(record: &[u8]) -> Option<Self> {
        let at = 16 + CONN_KEY_BYTES;
        let change = match u32_at(record, at + 4) {
            1 => ConnChange::Began,
            2 => ConnChange::Established { round_trip_ns: Some(u64_at(record, at + 8)).filter(|&ns| ns > 0) },
            3 => ConnChange::Ended,
            4 => ConnChange::Lost,
            _ => return None,
        };
        Some(Self {
            at_ns: u64_at(record, 0),
            choice: choice_number(u64_at(record, 8)),
            conn: SwitchConn::at(record, 16)?,
            holder: ConnHolder::of(u32_at(record, at)),
            change,
        })
    }
}

/// The first bytes of what a client has sent in one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketSample<'a> {
    /// When, in nanoseconds of [`crate::now_ns`].
    pub at_ns: u64,
    /// Its connection.
    pub conn: SwitchConn,
    /// Who has that.
    pub holder: ConnHolder,
    /// The round-trip time of its handshake in microseconds; 0 where it is not known.
    pub round_trip_us: u32,
    /// The packet's sequence number.
    pub seq: u32,
    /// Bytes that the client has sent in the packet.
    pub payload_bytes: u32,
    /// The first of them.
    pub payload: &'a [u8],
}

impl<'a> PacketSample<'a> {
    /// From `struct sample`.
    pub(crate) fn from_record(record: &'a [u8]) -> Option<Self> {
        let at = 8 + CONN_KEY_BYTES;
        let bytes = (u32_at(record, at + 12) as usize).min(SAMPLE_BYTES);
        Some(Self {
            at_ns: u64_at(record, 0),
            conn: SwitchConn::at(record, 8)?,
            holder: ConnHolder::of(u32_at(record, at)),
            seq: u32_at(record, at + 4),
            round_trip_us: u32_at(record, at + 16),
            payload_bytes: u32_at(record, at + 8),
            payload: record.get(SAMPLE_HEAD_BYTES..SAMPLE_HEAD_BYTES + bytes)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conn() -> SwitchConn {
        let flow = Flow::new("10.0.0.9:4711".parse().unwrap(), "10.0.0.1:80".parse().unwrap());
        SwitchConn { flow, transport: Transport::Udp }
    }

    #[test]
    fn keys_and_back() {
        let conn = conn();
        assert_eq!(SwitchConn::at(&conn.key(), 0), Some(conn));
        let mut other = conn.key();
        other[FLOW_KEY_BYTES..].copy_from_slice(&1_u32.to_ne_bytes());
        assert_eq!(SwitchConn::at(&other, 0), None, "ICMP is no transport");
        let holder = ConnHolder { backend: 4095, generation: 65_535 };
        assert_eq!(ConnHolder::of(holder.word()), holder);
    }

    #[test]
    fn choices_and_back() {
        for choice in [
            PreparedChoice { number: 1, backend: 0 },
            PreparedChoice { number: MOST_NUMBER, backend: 4095 },
            PreparedChoice { number: 7, backend: 65_534 },
        ] {
            assert_eq!(PreparedChoice::of(choice.word()), Some(choice));
        }
        assert_eq!(PreparedChoice::of(0), None);
    }

    #[test]
    fn cut_off_records_are_none() {
        assert_eq!(ConnEvent::from_record(&[0; 30]), None);
        assert_eq!(PacketSample::from_record(&[0; 71]), None);
    }
}
