//! A packet that a tap has copied: IPv4 or IPv6 without extension headers, and TCP.

use std::net::{IpAddr, SocketAddr};

/// Bytes of a header of IPv4, or of TCP, without options.
const LEAST_HEADER_BYTES: usize = 20;

/// A TCP segment that has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapSegment<'a> {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Who sent it.
    pub source: SocketAddr,
    /// For whom it is.
    pub destination: SocketAddr,
    /// Whether it has the flag SYN.
    pub syn: bool,
    /// Whether it has the flag FIN or RST.
    pub end: bool,
    /// The sequence number of its first byte.
    pub seq: u32,
    /// The sequence number of the next byte that its sender awaits.
    pub ack: u32,
    /// Bytes of data.
    pub data_bytes: u32,
    /// The first of them.
    pub data: &'a [u8],
}

/// Reads a packet from its IP header on, as far as it was copied. `bytes` is its whole length, which may be more than its header
/// says where the link pads it.
pub(super) fn read(at_ns: u64, packet: &[u8], bytes: u32) -> Option<TapSegment<'_>> {
    let half = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let (header, told, [from, to]) = match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet[0] & 15) * 4;
            let ip = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
            (header, usize::from(half(2)?), [ip(12)?, ip(16)?])
        }
        6 => {
            let ip = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?));
            let told = half(4)?;
            (40, if told == 0 { 0 } else { usize::from(told) + 40 }, [ip(8)?, ip(24)?])
        }
        _ => return None,
    };
    // Packets that are longer than the field can say (BIG TCP) have 0 there.
    let told = if told == 0 { bytes as usize } else { told.min(bytes as usize) };
    let tcp = packet.get(header..)?;
    let flags = *tcp.get(13)?;
    let tcp_header = usize::from(tcp[12] >> 4) * 4;
    if header < LEAST_HEADER_BYTES || tcp_header < LEAST_HEADER_BYTES {
        return None;
    }
    let data_at = header + tcp_header;
    let data_bytes = told.checked_sub(data_at)?;
    let data = packet.get(data_at..).unwrap_or_default();
    Some(TapSegment {
        at_ns,
        source: SocketAddr::new(from, half(header)?),
        destination: SocketAddr::new(to, half(header + 2)?),
        syn: flags & 2 != 0,
        end: flags & 5 != 0,
        seq: u32::from_be_bytes(tcp.get(4..8)?.try_into().ok()?),
        ack: u32::from_be_bytes(tcp.get(8..12)?.try_into().ok()?),
        data_bytes: u32::try_from(data_bytes).ok()?,
        data: &data[..data.len().min(data_bytes)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(v6: bool, told: u16, flags: u8, data: &[u8]) -> Vec<u8> {
        let mut packet = match v6 {
            false => {
                let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 9, 10, 0, 0, 1];
                ip[2..4].copy_from_slice(&told.to_be_bytes());
                ip
            }
            true => {
                let mut ip = vec![0; 40];
                (ip[0], ip[6], ip[23], ip[39]) = (0x60, 6, 9, 1);
                ip[4..6].copy_from_slice(&told.to_be_bytes());
                ip
            }
        };
        packet.extend([0x12, 0x67, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0, 0x60, flags, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
        packet.extend(data);
        packet
    }

    #[test]
    fn both_families() {
        let bytes = packet(false, 47, 0x18, b"abc padding");
        let segment = read(7, &bytes, bytes.len() as u32).unwrap();
        assert_eq!(segment.source, "10.0.0.9:4711".parse().unwrap());
        assert_eq!(segment.destination, "10.0.0.1:80".parse().unwrap());
        assert_eq!((segment.seq, segment.data, segment.data_bytes), (0x0102_0304, &b"abc"[..], 3));
        assert_eq!((segment.syn, segment.end, segment.at_ns), (false, false, 7));
        let bytes = packet(true, 27, 0x11, b"abc");
        let segment = read(7, &bytes, bytes.len() as u32).unwrap();
        assert_eq!(segment.source, "[::9]:4711".parse().unwrap());
        assert_eq!((segment.data, segment.syn, segment.end), (&b"abc"[..], false, true));
        // A packet of which only the start was copied, and whose length the header cannot say.
        let bytes = packet(true, 0, 0x02, b"abc");
        let segment = read(7, &bytes, 100_000).unwrap();
        assert_eq!((segment.data, segment.data_bytes, segment.syn), (&b"abc"[..], 100_000 - 64, true));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_do_harm(mut bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..120), v6 in proptest::prelude::any::<bool>(), length in 0u32..200) {
            if let Some(first) = bytes.first_mut() {
                *first = if v6 { 0x60 } else { 0x40 | (*first & 15) };
            }
            let _ = read(0, &bytes, length);
        }
    }
}
