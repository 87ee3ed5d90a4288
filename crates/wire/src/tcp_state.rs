//! The state of a connection, and its encoding.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::Flow;

/// Version of the encoding: the first byte of an encoded state.
pub const STATE_VERSION: u8 = 1;

/// Most bytes of an encoded state beyond its queues.
pub const STATE_OVERHEAD_BYTES: usize = 6 + 2 * 18 + 9 * 4 + 2 * 4;

/// Largest window scale (RFC 7323, section 2.3).
const WINDOW_SCALE_MAX: u8 = 14;

const IPV6: u8 = 1;
const SACK: u8 = 2;
const TIMESTAMPS: u8 = 4;
const WINDOW_SCALING: u8 = 8;

/// Windows of a connection, in bytes and sequence numbers, as `TCP_REPAIR_WINDOW` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// Sequence number of the segment that last changed the send window.
    pub update_seq: u32,
    /// Bytes that the client accepts beyond what it has acknowledged.
    pub send: u32,
    /// The largest `send` so far.
    pub send_max: u32,
    /// What we announced.
    pub receive: u32,
    /// What we had received when we announced it.
    pub receive_from: u32,
}

/// An established TCP connection between two segments: all that another kernel needs to continue it.
///
/// Not included: congestion window and round-trip time (measured anew), ECN (off afterwards), the client's
/// last timestamp (its next segment brings it), segments received out of order (the client sends them again).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpState {
    /// Both ends.
    pub flow: Flow,
    /// Sequence number after the last byte of the send queue.
    pub send_next: u32,
    /// Sequence number after the last byte received; the receive queue ends here.
    pub receive_next: u32,
    /// Largest segment that the client accepts, in bytes, options not deducted.
    pub mss: u16,
    /// Window scales (client's, ours), when both sides agreed on scaling.
    pub window_scales: Option<(u8, u8)>,
    /// Whether selective acknowledgments were agreed on.
    pub sack: bool,
    /// Our timestamp clock as `TCP_TIMESTAMP` has it, when timestamps were agreed on.
    pub timestamp: Option<u32>,
    /// The windows.
    pub window: Window,
    /// Bytes for the client that it has not acknowledged, in order.
    pub send_queue: Vec<u8>,
    /// How many bytes at the end of the send queue have never been sent.
    pub unsent_bytes: usize,
    /// Unread bytes of the client. See [`TcpState::set_receive_queue`].
    pub receive_queue: Vec<u8>,
}

/// Why bytes are not an encoded [`TcpState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// They end too early.
    #[error("the state of a connection ends too early")]
    Truncated,
    /// They go on after the end.
    #[error("the state of a connection is followed by {0} more bytes")]
    Trailing(usize),
    /// Another version.
    #[error("version {0} of the state of a connection is not known (version {STATE_VERSION} is)")]
    Version(u8),
    /// A value that no connection has.
    #[error("impossible value in the state of a connection: {0}")]
    Value(&'static str),
}

impl TcpState {
    /// Replaces the receive queue by any bytes; the connection's sequence numbers stay. A restored socket
    /// delivers exactly these bytes before what the client sends from then on. So bytes that were read before
    /// the freeze can be put back.
    pub fn set_receive_queue(&mut self, bytes: Vec<u8>) {
        self.receive_queue = bytes;
    }

    /// Sequence number of the first byte of the send queue: what the client has acknowledged.
    #[must_use]
    pub fn send_acknowledged(&self) -> u32 {
        self.send_next.wrapping_sub(low_bits(self.send_queue.len()))
    }

    /// Sequence number before which every byte has been sent.
    #[must_use]
    pub fn send_sent(&self) -> u32 {
        self.send_next.wrapping_sub(low_bits(self.unsent_bytes))
    }

    /// Sequence number of the first byte of the receive queue.
    #[must_use]
    pub fn receive_queue_start(&self) -> u32 {
        self.receive_next.wrapping_sub(low_bits(self.receive_queue.len()))
    }

    /// Bytes of the encoded state.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        let address_bytes = if self.flow.vip.is_ipv6() { 36 } else { 12 };
        STATE_OVERHEAD_BYTES - 36 + address_bytes + self.send_queue.len() + self.receive_queue.len()
    }

    /// Appends the encoded state. The queues must be shorter than 4 GiB, as the kernel's are.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(self.encoded_bytes());
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        let flags = flag(self.flow.vip.is_ipv6(), IPV6)
            | flag(self.sack, SACK)
            | flag(self.timestamp.is_some(), TIMESTAMPS)
            | flag(self.window_scales.is_some(), WINDOW_SCALING);
        let (client_scale, our_scale) = self.window_scales.unwrap_or_default();
        out.extend([STATE_VERSION, flags, client_scale, our_scale]);
        out.extend(self.mss.to_be_bytes());
        for end in [self.flow.client, self.flow.vip] {
            match end.ip() {
                IpAddr::V4(ip) => out.extend(ip.octets()),
                IpAddr::V6(ip) => out.extend(ip.octets()),
            }
            out.extend(end.port().to_be_bytes());
        }
        let window = &self.window;
        let numbers = [
            self.send_next,
            self.receive_next,
            self.timestamp.unwrap_or_default(),
            window.update_seq,
            window.send,
            window.send_max,
            window.receive,
            window.receive_from,
            low_bits(self.unsent_bytes),
            low_bits(self.send_queue.len()),
            low_bits(self.receive_queue.len()),
        ];
        for number in numbers {
            out.extend(number.to_be_bytes());
        }
        out.extend_from_slice(&self.send_queue);
        out.extend_from_slice(&self.receive_queue);
    }

    /// Decodes a state that uses all of `bytes`.
    ///
    /// # Errors
    ///
    /// See [`StateError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, StateError> {
        let mut rest = Reader(bytes);
        let [version] = rest.take()?;
        if version != STATE_VERSION {
            return Err(StateError::Version(version));
        }
        let [flags, client_scale, our_scale] = rest.take()?;
        if flags & !(IPV6 | SACK | TIMESTAMPS | WINDOW_SCALING) != 0 {
            return Err(StateError::Value("unknown flag"));
        }
        let scaled = flags & WINDOW_SCALING != 0;
        let scale_max = if scaled { WINDOW_SCALE_MAX } else { 0 };
        check(client_scale.max(our_scale) <= scale_max, "window scale")?;
        let mss = u16::from_be_bytes(rest.take()?);
        check(mss > 0, "segment size 0")?;
        let client = rest.address(flags & IPV6 != 0)?;
        let vip = rest.address(flags & IPV6 != 0)?;
        let [send_next, receive_next, timestamp] = rest.numbers()?;
        check(flags & TIMESTAMPS != 0 || timestamp == 0, "timestamp without timestamps")?;
        let [update_seq, send, send_max, receive, receive_from] = rest.numbers()?;
        check(send <= send_max, "window above its maximum")?;
        let [unsent_bytes, send_bytes, receive_bytes] = rest.numbers()?;
        check(unsent_bytes <= send_bytes, "more bytes unsent than queued")?;
        let send_queue = rest.bytes(send_bytes)?.to_vec();
        let receive_queue = rest.bytes(receive_bytes)?.to_vec();
        if !rest.0.is_empty() {
            return Err(StateError::Trailing(rest.0.len()));
        }
        Ok(Self {
            flow: Flow { client, vip },
            send_next,
            receive_next,
            mss,
            window_scales: scaled.then_some((client_scale, our_scale)),
            sack: flags & SACK != 0,
            timestamp: (flags & TIMESTAMPS != 0).then_some(timestamp),
            window: Window { update_seq, send, send_max, receive, receive_from },
            send_queue,
            unsent_bytes: unsent_bytes as usize,
            receive_queue,
        })
    }
}

/// A length as a sequence number counts it, modulo 2^32.
fn low_bits(length: usize) -> u32 {
    (length & 0xffff_ffff) as u32
}

fn check(right: bool, what: &'static str) -> Result<(), StateError> {
    if right { Ok(()) } else { Err(StateError::Value(what)) }
}

/// The rest of the bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], StateError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(StateError::Truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    fn bytes(&mut self, len: u32) -> Result<&'a [u8], StateError> {
        let (first, rest) = self.0.split_at_checked(len as usize).ok_or(StateError::Truncated)?;
        self.0 = rest;
        Ok(first)
    }

    fn numbers<const N: usize>(&mut self) -> Result<[u32; N], StateError> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = u32::from_be_bytes(self.take()?);
        }
        Ok(numbers)
    }

    fn address(&mut self, ipv6: bool) -> Result<SocketAddr, StateError> {
        let ip = if ipv6 {
            let ip = Ipv6Addr::from(self.take::<16>()?);
            check(ip.to_ipv4_mapped().is_none(), "IPv4 address written as IPv6")?;
            IpAddr::V6(ip)
        } else {
            IpAddr::V4(Ipv4Addr::from(self.take::<4>()?))
        };
        let port = u16::from_be_bytes(self.take()?);
        check(!ip.is_unspecified() && !ip.is_multicast(), "address")?;
        check(port != 0, "port 0")?;
        Ok(SocketAddr::new(ip, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn sample() -> TcpState {
        TcpState {
            flow: Flow::new("10.0.0.9:4711".parse().unwrap(), "10.0.0.1:80".parse().unwrap()),
            send_next: 3,
            receive_next: u32::MAX,
            mss: 1460,
            window_scales: Some((7, 14)),
            sack: true,
            timestamp: Some(7),
            window: Window { update_seq: 1, send: 2, send_max: 3, receive: 4, receive_from: 5 },
            send_queue: b"answer".to_vec(),
            unsent_bytes: 2,
            receive_queue: b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        }
    }

    fn encoded(state: &TcpState) -> Vec<u8> {
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        assert_eq!(bytes.len(), state.encoded_bytes());
        bytes
    }

    #[test]
    fn sequence_numbers_wrap() {
        let state = sample();
        assert_eq!(state.send_acknowledged(), u32::MAX - 2);
        assert_eq!(state.send_sent(), 1);
    }

    #[test]
    fn refusals() {
        let good = encoded(&sample());
        assert_eq!(TcpState::decode(&[]), Err(StateError::Truncated));
        let changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            TcpState::decode(&bytes)
        };
        assert_eq!(changed(0, 2), Err(StateError::Version(2)));
        assert_eq!(changed(1, 0x10), Err(StateError::Value("unknown flag")));
        assert_eq!(changed(2, 15), Err(StateError::Value("window scale")));
        let mut long = good.clone();
        long.push(0);
        assert_eq!(TcpState::decode(&long), Err(StateError::Trailing(1)));
        for len in 0..good.len() {
            assert_eq!(TcpState::decode(&good[..len]), Err(StateError::Truncated), "{len} bytes");
        }
    }

    prop_compose! {
        fn end(ipv6: bool)(v4: [u8; 4], v6: [u8; 16], port in 1..=u16::MAX) -> SocketAddr {
            let v6 = Ipv6Addr::from(v6);
            let usable = |ip: IpAddr| !ip.is_unspecified() && !ip.is_multicast();
            let ip = if ipv6 { IpAddr::V6(v6) } else { IpAddr::V4(v4.into()) };
            let ip = if usable(ip) && ip.to_canonical() == ip { ip } else if ipv6 {
                IpAddr::V6(Ipv6Addr::LOCALHOST)
            } else {
                IpAddr::V4(Ipv4Addr::LOCALHOST)
            };
            SocketAddr::new(ip, port)
        }
    }

    prop_compose! {
        fn state(ipv6: bool)(
            ends in (end(ipv6), end(ipv6)),
            seqs: (u32, u32),
            mss in 1..=u16::MAX,
            window_scales in proptest::option::of((0..=14u8, 0..=14u8)),
            sack: bool,
            timestamp in proptest::option::of(any::<u32>()),
            window: [u32; 4],
            send_max: u32,
            queues in (vec(any::<u8>(), 0..200), vec(any::<u8>(), 0..200)),
            unsent in 0..200usize,
        ) -> TcpState {
            let [update_seq, send, receive, receive_from] = window;
            TcpState {
                flow: Flow::new(ends.0, ends.1),
                send_next: seqs.0,
                receive_next: seqs.1,
                mss, window_scales, sack, timestamp,
                window: Window { update_seq, send: send.min(send_max), send_max, receive, receive_from },
                unsent_bytes: unsent.min(queues.0.len()),
                send_queue: queues.0,
                receive_queue: queues.1,
            }
        }
    }

    proptest! {
        #[test]
        fn round_trip(state in any::<bool>().prop_flat_map(state)) {
            prop_assert_eq!(TcpState::decode(&encoded(&state)), Ok(state));
        }

        #[test]
        fn any_bytes(mut bytes in vec(any::<u8>(), 0..300), right_version: bool) {
            if right_version && let Some(first) = bytes.first_mut() {
                *first = STATE_VERSION;
            }
            if let Ok(state) = TcpState::decode(&bytes) {
                prop_assert_eq!(encoded(&state), bytes);
            }
        }

        #[test]
        fn one_changed_byte(at in 0..300usize, byte: u8) {
            let mut bytes = encoded(&sample());
            let len = bytes.len();
            bytes[at % len] = byte;
            if let Ok(state) = TcpState::decode(&bytes) {
                prop_assert_eq!(encoded(&state), bytes);
            }
        }
    }
}
