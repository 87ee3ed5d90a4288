//! What the switch is to do with a frame, written down once more from the standards, without a look at the program.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use plimsoll_datapath::Flow;
use plimsoll_datapath::switch::{SwitchConn, TABLE_SLOTS, Transport};

use crate::packet::{ACK, FIN, RST, SYN};

/// What is behind a frame's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Nothing for a switch.
    Other,
    /// Of a connection; the first of several fragments has a number.
    Packet { conn: SwitchConn, segment: Segment, fragment: Option<u32> },
    /// A later fragment.
    Later { from: IpAddr, to: IpAddr, protocol: u8, number: u32 },
    /// A router's error about a packet that was sent from the service.
    Error(SwitchConn),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Segment {
    flags: u8,
    seq: u32,
    payload_bytes: u32,
}

/// Bytes, read one after the other.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }
}

fn transport(protocol: u8) -> Option<Transport> {
    match protocol {
        6 => Some(Transport::Tcp),
        17 => Some(Transport::Udp),
        _ => None,
    }
}

/// `None`: malformed, or with headers that are not understood; it is left alone, too.
fn read(frame: &[u8]) -> Option<Content> {
    let mut reader = Reader(frame);
    let to_mac: [u8; 6] = reader.array()?;
    reader.take(6)?;
    let mut kind = reader.u16()?;
    if matches!(kind, 0x8100 | 0x88a8) {
        reader.u16()?;
        kind = reader.u16()?;
    }
    match kind {
        _ if to_mac != [0; 6] => Some(Content::Other),
        0x0800 => read_v4(reader.0),
        0x86dd => read_v6(reader.0),
        _ => Some(Content::Other),
    }
}

fn read_v4(packet: &[u8]) -> Option<Content> {
    let mut reader = Reader(packet);
    let first = reader.u8()?;
    let header_bytes = usize::from(first & 15) * 4;
    if first >> 4 != 4 || header_bytes < 20 {
        return None;
    }
    reader.u8()?;
    let total_bytes = match reader.u16()? {
        0 => packet.len(),
        bytes => bytes.into(),
    };
    let number = u32::from(reader.u16()?);
    let fragment = reader.u16()?;
    let (more, offset) = (fragment & 0x2000 != 0, fragment & 0x1fff);
    reader.u8()?;
    let protocol = reader.u8()?;
    reader.u16()?;
    let from = IpAddr::from(Ipv4Addr::from(reader.u32()?));
    let to = IpAddr::from(Ipv4Addr::from(reader.u32()?));
    if protocol == 1 && !more && offset == 0 {
        return Some(error(packet.get(header_bytes..).unwrap_or_default(), false));
    }
    let Some(transport) = transport(protocol) else { return Some(Content::Other) };
    if offset != 0 {
        return Some(Content::Later { from, to, protocol, number });
    }
    let content = packet.get(..total_bytes)?.get(header_bytes..)?;
    read_transport(content, (from, to), transport, more.then_some(number))
}

fn read_v6(packet: &[u8]) -> Option<Content> {
    let mut reader = Reader(packet);
    if reader.u8()? >> 4 != 6 {
        return None;
    }
    reader.take(3)?;
    let length = usize::from(reader.u16()?);
    let mut next = reader.u8()?;
    reader.u8()?;
    let from = IpAddr::from(Ipv6Addr::from(reader.array::<16>()?));
    let to = IpAddr::from(Ipv6Addr::from(reader.array::<16>()?));
    let payload = reader.0;
    let length = if length == 0 { payload.len() } else { length };
    // A length beyond the frame is found out before its content is looked at; but what is no connection is no business of ours.
    let is_extension = |next: u8| matches!(next, 0 | 43 | 44 | 51 | 60);
    let content = payload.get(..length)?;
    let mut offset = 0;
    let mut fragment = None;
    for _ in 0..8 {
        if transport(next).is_some() || next == 58 {
            break;
        }
        if !is_extension(next) {
            return Some(Content::Other);
        }
        let mut extension = Reader(payload.get(offset..offset + 8)?);
        let following = extension.u8()?;
        let extension_bytes = (usize::from(extension.u8()?) + 1) * 8;
        let bits = extension.u16()?;
        let number = extension.u32()?;
        if next == 51 || (next == 43 && bits & 0xff != 0) {
            return None;
        }
        if next == 44 {
            if bits & 0xfff8 != 0 {
                return Some(match transport(following) {
                    Some(_) => Content::Later { from, to, protocol: following, number },
                    None => Content::Other,
                });
            }
            fragment = if bits & 1 != 0 { Some(number) } else { None };
            offset += 8;
        } else {
            offset += extension_bytes;
        }
        next = following;
    }
    match (next, transport(next)) {
        (58, _) if fragment.is_none() => Some(error(payload.get(offset..).unwrap_or_default(), true)),
        (58, _) => Some(Content::Other),
        (_, Some(transport)) => read_transport(content.get(offset..)?, (from, to), transport, fragment),
        _ => None,
    }
}

fn read_transport(
    content: &[u8],
    (from, to): (IpAddr, IpAddr),
    transport: Transport,
    fragment: Option<u32>,
) -> Option<Content> {
    let mut reader = Reader(content);
    let (from_port, to_port) = (reader.u16()?, reader.u16()?);
    let flow = Flow { client: SocketAddr::new(from, from_port), vip: SocketAddr::new(to, to_port) };
    let conn = SwitchConn { flow, transport };
    let segment = match transport {
        Transport::Udp => {
            reader.take(4)?;
            Segment { payload_bytes: u32::try_from(reader.0.len()).unwrap(), ..Segment::default() }
        }
        Transport::Tcp => {
            let seq = reader.u32()?;
            reader.u32()?;
            let header_bytes = usize::from(reader.u8()? >> 4) * 4;
            let flags = reader.u8()?;
            reader.take(6)?;
            if header_bytes < 20 {
                return None;
            }
            let payload = content.get(header_bytes..)?;
            Segment { flags, seq, payload_bytes: u32::try_from(payload.len()).unwrap() }
        }
    };
    Some(Content::Packet { conn, segment, fragment })
}

fn error(message: &[u8], v6: bool) -> Content {
    about(message, v6).map_or(Content::Other, Content::Error)
}

fn about(message: &[u8], v6: bool) -> Option<SwitchConn> {
    let mut reader = Reader(message);
    let kind = reader.u8()?;
    reader.take(7)?;
    let packet = reader.0;
    let (from, to, protocol, at);
    if v6 {
        if !(1..=4).contains(&kind) || packet.first()? >> 4 != 6 {
            return None;
        }
        let address = |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?));
        (from, to) = (IpAddr::from(address(8)?), IpAddr::from(address(24)?));
        (protocol, at) = (packet[6], 40);
    } else {
        let header = packet.get(..20)?;
        let length = usize::from(header[0] & 15) * 4;
        let offset = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
        if !matches!(kind, 3 | 11 | 12) || header[0] >> 4 != 4 || length < 20 || offset != 0 {
            return None;
        }
        let address = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&header[at..at + 4]).unwrap());
        (from, to) = (address(12), address(16));
        (protocol, at) = (header[9], length);
    }
    let transport = transport(protocol)?;
    let mut ports = Reader(packet.get(at..)?);
    let (from_port, to_port) = (ports.u16()?, ports.u16()?);
    let flow = Flow { client: SocketAddr::new(to, to_port), vip: SocketAddr::new(from, from_port) };
    Some(SwitchConn { flow, transport })
}

/// A connection as the switch must know it.
#[derive(Debug, Clone, Copy)]
struct Known {
    backend: u16,
    seq_end: u32,
    is_over: bool,
}

/// A switch without choices, whose hash places slot n at n modulo 3.
#[derive(Debug)]
pub(crate) struct Model {
    vips: Vec<SocketAddr>,
    conns: BTreeMap<SwitchConn, Known>,
    /// By addresses, protocol and number.
    fragments: BTreeMap<(IpAddr, IpAddr, u8, u32), u16>,
}

fn hashed(conn: &SwitchConn) -> u16 {
    let mut bytes = conn.flow.key().to_vec();
    bytes.extend(u32::from(conn.transport.number()).to_ne_bytes());
    let step = |hash: u64, word: &[u8]| {
        let word = u32::from_ne_bytes(word.try_into().unwrap());
        let hash = (hash ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^ hash >> 32
    };
    (bytes.chunks(4).fold(0, step) % TABLE_SLOTS as u64 % 3) as u16
}

impl Model {
    pub(crate) fn new(vips: Vec<SocketAddr>) -> Self {
        Self { vips, conns: BTreeMap::new(), fragments: BTreeMap::new() }
    }

    /// The connection has been established with this back-end, and its client has sent up to `seq_end`.
    pub(crate) fn know(&mut self, conn: SwitchConn, backend: u16, seq_end: u32) {
        self.conns.insert(conn, Known { backend, seq_end, is_over: false });
    }

    /// Whether the frame is a router's error about a packet.
    pub(crate) fn is_error(frame: &[u8]) -> bool {
        matches!(read(frame), Some(Content::Error(_)))
    }

    /// Which back-end gets the frame, if one does.
    pub(crate) fn judge(&mut self, frame: &[u8]) -> Option<u16> {
        match read(frame)? {
            Content::Other => None,
            Content::Later { from, to, protocol, number } => {
                self.fragments.get(&(from, to, protocol, number)).copied()
            }
            Content::Error(conn) if self.vips.contains(&conn.flow.vip) => {
                Some(self.conns.get(&conn).map_or_else(|| hashed(&conn), |known| known.backend))
            }
            Content::Error(_) => None,
            Content::Packet { conn, segment, fragment } => {
                if !self.vips.contains(&conn.flow.vip) {
                    return None;
                }
                let backend = self.place(conn, segment);
                if let Some(number) = fragment {
                    let Flow { client, vip } = conn.flow;
                    self.fragments.insert((client.ip(), vip.ip(), conn.transport.number(), number), backend);
                }
                Some(backend)
            }
        }
    }

    fn place(&mut self, conn: SwitchConn, segment: Segment) -> u16 {
        let Segment { flags, seq, payload_bytes } = segment;
        let tcp = conn.transport == Transport::Tcp;
        let opens = flags & (SYN | ACK | RST | FIN) == SYN;
        let end = seq.wrapping_add(payload_bytes).wrapping_add(u32::from(flags & FIN != 0));
        if tcp && opens && self.conns.get(&conn).is_some_and(|known| known.is_over) {
            self.conns.remove(&conn);
        }
        let Some(known) = self.conns.get_mut(&conn) else {
            let backend = hashed(&conn);
            if !tcp || flags & (SYN | ACK | RST) == ACK {
                self.conns.insert(conn, Known { backend, seq_end: end, is_over: tcp && flags & FIN != 0 });
            }
            return backend;
        };
        if tcp && flags & SYN == 0 {
            let ahead = i64::from(end.wrapping_sub(known.seq_end).cast_signed());
            if ahead.abs() <= 1 << 20 {
                known.seq_end = if ahead > 0 { end } else { known.seq_end };
                known.is_over |= flags & (FIN | RST) != 0;
            }
        }
        known.backend
    }
}
