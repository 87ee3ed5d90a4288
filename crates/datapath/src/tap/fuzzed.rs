//! Packets, for the fuzz targets.

use super::packet::read;

/// What is read of a packet is within it, and the same as of a longer copy as far as both have it.
pub(crate) fn packet(bytes: &[u8]) {
    let Some((length, packet)) = bytes.split_first_chunk::<2>() else { return };
    let whole = u32::from(u16::from_le_bytes(*length));
    let Some(segment) = read(1, packet, whole) else { return };
    assert!(segment.data.len() <= segment.data_bytes as usize && segment.data_bytes <= whole);
    assert!(segment.data.len() <= packet.len());
    let headers = packet.len() - segment.data.len();
    for end in headers..packet.len() {
        let shorter = read(1, &packet[..end], whole);
        assert_eq!(shorter.map(|s| (s.data_bytes, s.seq)), Some((segment.data_bytes, segment.seq)));
    }
}
