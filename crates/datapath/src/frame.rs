//! Prepares held frames for sending: completes checksums and sets addresses.

mod made;

pub(crate) use self::made::acknowledgment_to;
use crate::error::DatapathError;
use crate::layout::Mac;

const ETHERNET_BYTES: usize = 14;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
/// The least that a TCP header has.
const HEADER_BYTES: usize = 20;
/// Where the checksum is in a TCP header (RFC 9293, section 3.1).
const CHECKSUM_AT: usize = 16;
/// The same of its flags, and two of these.
const FLAGS_AT: usize = 13;
const FIN: u8 = 1;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;

/// IPv6 headers behind which TCP may come (RFC 8200): hop-by-hop options, routing, destination options; and the fragment header.
const EXTENSIONS: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;

/// The parts of a held frame.
struct FrameParts {
    /// Sum over the pseudo-header (RFC 9293, section 3.1), not folded.
    pseudo_sum: u64,
    /// The TCP segment, without Ethernet padding.
    segment: std::ops::Range<usize>,
}

/// `frame` with a complete TCP checksum.
///
/// A packet that never left its machine, or that the kernel merged from several, has only the sum over the
/// pseudo-header: the kernel knows that it is right, or will have it completed. Taken out of the kernel, this knowledge
/// is lost, so the checksum is completed here. One that is neither whole nor of this kind is wrong.
///
/// A fragment has the checksum of a segment that is not all here. It is complete: the kernel completes it before it fragments.
///
/// # Errors
/// [`DatapathError::Invalid`]: the checksum is wrong, or the frame is no TCP segment of a kind that the guard holds.
pub(crate) fn with_checksum(frame: &[u8]) -> Result<Vec<u8>, DatapathError> {
    let invalid = |why: &str| DatapathError::Invalid(format!("a held packet of {} bytes {why}", frame.len()));
    let parts = match contents(frame) {
        Some(Contents::Segment(parts)) => parts,
        Some(Contents::Fragment) => return Ok(frame.to_vec()),
        None => return Err(invalid("is no TCP segment")),
    };
    let segment = frame.get(parts.segment.clone()).ok_or_else(|| invalid("is cut off"))?;
    let sum = fold(parts.pseudo_sum + sum_of(segment));
    if sum == 0xffff {
        return Ok(frame.to_vec());
    }
    let at = parts.segment.start + CHECKSUM_AT;
    let found = word_at(frame, at).ok_or_else(|| invalid("is cut off"))?;
    if found != fold(parts.pseudo_sum) {
        return Err(invalid("has a wrong checksum"));
    }
    let mut whole = frame.to_vec();
    // The field holds the partial sum, so the sum over the segment includes the pseudo-header.
    let checksum = !fold(sum_of(segment));
    whole[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    Ok(whole)
}

/// Sets the MAC addresses of `frame`.
pub(crate) fn set_macs(frame: &mut [u8], to: Mac, from: Mac) {
    if let Some(header) = frame.get_mut(..12) {
        header[..6].copy_from_slice(&to);
        header[6..].copy_from_slice(&from);
    }
}

/// Whether a frame has bytes, or an end (FIN or RST), of what its sender sends. What is not understood is taken to have them.
pub(crate) fn is_of_stream(frame: &[u8]) -> bool {
    let Some(Contents::Segment(parts)) = contents(frame) else { return true };
    let Some((header_bytes, flags)) = header_of(frame, &parts) else { return true };
    parts.segment.len() > header_bytes || flags & (FIN | RST) != 0
}

/// The bytes of a frame that begin at this number, if it has nothing else of what its sender sends, acknowledges up to `ack` or
/// at most a window less (RFC 5961, section 5.2), and has the right checksum.
pub(crate) fn data_at(frame: &[u8], seq: u32, ack: u32, window_bytes: u32) -> Option<&[u8]> {
    let Some(Contents::Segment(parts)) = contents(frame) else { return None };
    let (header_bytes, flags) = header_of(frame, &parts)?;
    let segment = frame.get(parts.segment)?;
    let is_plain =
        flags & !PSH == ACK && segment.len() > header_bytes && segment.get(4..8)? == seq.to_be_bytes();
    let acknowledged = u32::from_be_bytes(segment.get(8..12)?.try_into().ok()?);
    let is_plain = is_plain && ack.wrapping_sub(acknowledged) <= window_bytes;
    (is_plain && with_checksum(frame).is_ok()).then(|| &segment[header_bytes..])
}

/// The sequence number of a frame that resets its connection.
pub(crate) fn reset_seq(frame: &[u8]) -> Option<u32> {
    let (seq, flags) = number_at(frame, 4)?;
    (flags & RST != 0).then_some(seq)
}

/// The acknowledgment number of a frame that has one and resets nothing.
pub(crate) fn acknowledged(frame: &[u8]) -> Option<u32> {
    let (number, flags) = number_at(frame, 8)?;
    (flags & (ACK | RST) == ACK).then_some(number)
}

/// The number at this place of the TCP header, and the flags.
fn number_at(frame: &[u8], at: usize) -> Option<(u32, u8)> {
    let Some(Contents::Segment(parts)) = contents(frame) else { return None };
    let (_, flags) = header_of(frame, &parts)?;
    let number = frame.get(parts.segment)?.get(at..at + 4)?.try_into().ok()?;
    Some((u32::from_be_bytes(number), flags))
}

/// Bytes of the TCP header, and its flags.
fn header_of(frame: &[u8], parts: &FrameParts) -> Option<(usize, u8)> {
    let segment = frame.get(parts.segment.clone())?;
    let header_bytes = usize::from(*segment.get(12)? >> 4) * 4;
    let flags = *segment.get(FLAGS_AT)?;
    (HEADER_BYTES..=segment.len()).contains(&header_bytes).then_some((header_bytes, flags))
}

/// The acknowledgment that a frame carries, without the bytes that it carries besides, nor FIN or PSH.
///
/// # Errors
/// As [`with_checksum`], and for a frame with extension headers.
pub(crate) fn acknowledgment(frame: &[u8]) -> Result<Vec<u8>, DatapathError> {
    let mut frame = with_checksum(frame)?;
    let cut = |frame: &mut Vec<u8>| {
        let Some(Contents::Segment(parts)) = contents(frame) else { return None };
        let (header_bytes, _) = header_of(frame, &parts)?;
        let start = parts.segment.start;
        frame.truncate(start + header_bytes);
        frame[start + FLAGS_AT] &= !(FIN | PSH);
        complete(frame, start, header_bytes)
    };
    match cut(&mut frame) {
        Some(()) => Ok(frame),
        None => Err(DatapathError::Invalid(format!(
            "no acknowledgment in a held packet of {} bytes",
            frame.len()
        ))),
    }
}

/// Has the headers of a frame say that a TCP segment of so many bytes begins at `start`, and have the right checksums.
fn complete(frame: &mut [u8], start: usize, bytes: usize) -> Option<()> {
    set_length(frame, start, bytes)?;
    let at = start + CHECKSUM_AT;
    frame.get_mut(at..at + 2)?.fill(0);
    let Some(Contents::Segment(parts)) = contents(frame) else { return None };
    let checksum = !fold(parts.pseudo_sum + sum_of(frame.get(parts.segment)?));
    frame.get_mut(at..at + 2)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// Has the IP header of a frame say that this many bytes follow it, which begin at `start`.
fn set_length(frame: &mut [u8], start: usize, bytes: usize) -> Option<()> {
    let ip = frame.get_mut(ETHERNET_BYTES..start)?;
    if *ip.first()? >> 4 == 4 {
        let total = u16::try_from(ip.len() + bytes).ok()?;
        ip.get_mut(2..4)?.copy_from_slice(&total.to_be_bytes());
        ip.get_mut(10..12)?.fill(0);
        let checksum = !fold(sum_of(ip));
        ip.get_mut(10..12)?.copy_from_slice(&checksum.to_be_bytes());
    } else {
        let payload = u16::try_from(ip.len().checked_sub(40)? + bytes).ok()?;
        ip.get_mut(4..6)?.copy_from_slice(&payload.to_be_bytes());
    }
    Some(())
}

/// What a held frame has behind its IP header.
enum Contents {
    Segment(FrameParts),
    Fragment,
}

fn contents(frame: &[u8]) -> Option<Contents> {
    let ip = frame.get(ETHERNET_BYTES..)?;
    let (addresses, start, end) = match word_at(frame, 12)? {
        IPV4 if *ip.first()? >> 4 == 4 && *ip.get(9)? == TCP => {
            if word_at(ip, 6)? & 0x3fff != 0 {
                return Some(Contents::Fragment);
            }
            (ip.get(12..20)?, usize::from(*ip.first()? & 15) * 4, usize::from(word_at(ip, 2)?))
        }
        IPV6 => {
            let (mut next, mut start) = (*ip.get(6)?, 40);
            while EXTENSIONS.contains(&next) {
                let header = ip.get(start..start + 2)?;
                next = header[0];
                start += (usize::from(header[1]) + 1) * 8;
            }
            match next {
                FRAGMENT => return Some(Contents::Fragment),
                TCP => (ip.get(8..40)?, start, 40 + usize::from(word_at(ip, 4)?)),
                _ => return None,
            }
        }
        _ => return None,
    };
    // A shorter one has no checksum, or one that the header's length leaves out.
    let segment_bytes = end.checked_sub(start).filter(|&bytes| bytes >= HEADER_BYTES)?;
    let pseudo_sum = sum_of(addresses) + u64::from(TCP) + segment_bytes as u64;
    let segment = ETHERNET_BYTES + start..ETHERNET_BYTES + end;
    Some(Contents::Segment(FrameParts { pseudo_sum, segment }))
}

fn word_at(bytes: &[u8], at: usize) -> Option<u16> {
    let word = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([word[0], word[1]]))
}

/// Sum of 16-bit words, an odd byte at the end as if a zero followed (RFC 1071).
fn sum_of(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2).map(|word| u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
    words.map(u64::from).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A SYN-ACK from 10.0.0.2:80 to 10.0.0.1:1000 with 3 bytes, padded by Ethernet, with checksum 0.
    fn frame() -> Vec<u8> {
        let mut frame = vec![0; ETHERNET_BYTES];
        frame[12..14].copy_from_slice(&IPV4.to_be_bytes());
        frame.extend([0x45, 0, 0, 43, 0, 0, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1]);
        frame.extend([0, 80, 3, 232, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x12, 1, 0, 0, 0, 0, 0]);
        frame.extend(*b"abc\0\0\0");
        frame
    }

    fn with(checksum: u16) -> Vec<u8> {
        let mut frame = frame();
        frame[50..52].copy_from_slice(&checksum.to_be_bytes());
        frame
    }

    #[test]
    fn checksums_are_completed_or_refused() {
        let Some(Contents::Segment(parts)) = contents(&frame()) else { panic!("no segment") };
        let right = !fold(parts.pseudo_sum + sum_of(&frame()[34..57]));
        let partial = fold(parts.pseudo_sum);
        assert_eq!(with_checksum(&with(right)).unwrap(), with(right));
        assert_eq!(with_checksum(&with(partial)).unwrap(), with(right));
        for wrong in [right ^ 1, partial ^ 1, 0] {
            assert!(with_checksum(&with(wrong)).is_err(), "{wrong:#x}");
        }
    }

    #[test]
    fn options_stand_before_the_segment() {
        let right = with_checksum(&with(fold(pseudo_sum(&frame())))).unwrap();
        let mut options = with(fold(pseudo_sum(&frame())));
        options.splice(34..34, [7, 3, 4, 0]);
        (options[14], options[17]) = (0x46, 47);
        assert_eq!(with_checksum(&options).unwrap()[38..], right[34..]);
        // Hop-by-hop options and destination options.
        let mut v6 = vec![0; ETHERNET_BYTES];
        v6[12..14].copy_from_slice(&IPV6.to_be_bytes());
        v6.extend([0x60, 0, 0, 0, 0, 47, 0, 64]);
        v6.extend([0; 15].into_iter().chain([2]).chain([0; 15]).chain([1]));
        v6.extend([60, 0, 1, 4, 0, 0, 0, 0, TCP, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        v6.extend(&frame()[34..57]);
        let start = ETHERNET_BYTES + 64;
        let partial = fold(pseudo_sum(&v6));
        v6[start + CHECKSUM_AT..start + CHECKSUM_AT + 2].copy_from_slice(&partial.to_be_bytes());
        let whole = with_checksum(&v6).unwrap();
        assert_eq!(fold(pseudo_sum(&v6) + sum_of(&whole[start..])), 0xffff);
    }

    fn pseudo_sum(frame: &[u8]) -> u64 {
        let Some(Contents::Segment(parts)) = contents(frame) else { panic!("no segment") };
        parts.pseudo_sum
    }

    #[test]
    fn an_acknowledgment_is_taken_out() {
        let mut whole = with(0);
        // ACK, PSH, FIN.
        whole[47] = 0x19;
        let partial = fold(pseudo_sum(&whole));
        whole[50..52].copy_from_slice(&partial.to_be_bytes());
        assert!(is_of_stream(&whole));
        let alone = acknowledgment(&whole).unwrap();
        assert_eq!((alone.len(), alone[47], word_at(&alone, 16)), (54, 0x10, Some(40)));
        assert_eq!(alone[34..46], whole[34..46], "ports and numbers");
        assert_eq!(with_checksum(&alone).unwrap(), alone);
        assert_eq!(fold(sum_of(&alone[14..34])), 0xffff);
        assert!(!is_of_stream(&alone));
        assert_eq!(acknowledged(&alone), Some(u32::from_be_bytes(whole[42..46].try_into().unwrap())));
        let mut end = alone;
        end[47] |= FIN;
        assert_eq!(reset_seq(&end), None);
        let mut reset = end.clone();
        reset[47] |= RST;
        assert!(is_of_stream(&reset) && acknowledged(&reset).is_none() && acknowledged(&[]).is_none());
        assert_eq!(reset_seq(&reset), Some(u32::from_be_bytes(reset[38..42].try_into().unwrap())));
        assert!(is_of_stream(&end) && is_of_stream(&end[..40]) && is_of_stream(&[]));
    }

    #[test]
    fn bytes_that_come_next_are_taken_out() {
        let mut whole = with(0);
        whole[47] = ACK | PSH;
        let partial = fold(pseudo_sum(&whole));
        whole[50..52].copy_from_slice(&partial.to_be_bytes());
        let number = |at: usize| u32::from_be_bytes(whole[at..at + 4].try_into().unwrap());
        let (seq, ack) = (number(38), number(42));
        let data = data_at(&whole, seq, ack, 0).unwrap();
        assert!(!data.is_empty() && whole[54..].starts_with(data));
        assert_eq!(data_at(&whole, seq, ack.wrapping_add(100), 100), Some(data));
        for (seq, ack) in
            [(seq.wrapping_add(1), ack), (seq, ack.wrapping_add(101)), (seq, ack.wrapping_sub(1))]
        {
            assert_eq!(data_at(&whole, seq, ack, 100), None);
        }
        for flags in [ACK | FIN, ACK | RST, ACK | 2, ACK | 0x20, PSH] {
            let mut other = whole.clone();
            other[47] = flags;
            assert_eq!(data_at(&other, seq, ack, 0), None, "{flags:#x}");
        }
        let mut wrong = with(0x1234);
        wrong[47] = ACK | PSH;
        assert_eq!(data_at(&wrong, seq, ack, 0), None);
        assert_eq!(data_at(&acknowledgment(&whole).unwrap(), seq, ack, 0), None);
    }

    #[test]
    fn fragments_stay_as_they_are() {
        let mut first = with(0x1234);
        first[20] = 0x20;
        assert_eq!(with_checksum(&first).unwrap(), first);
    }

    #[test]
    fn what_is_no_segment_is_refused() {
        let frame = frame();
        for cut in 0..57 {
            assert!(with_checksum(&frame[..cut]).is_err(), "{cut}");
        }
        let mut arp = frame;
        arp[13] = 6;
        assert!(with_checksum(&arp).is_err());
    }
}
