//! A client with a TCP of its own, over raw sockets, so that it can send packets of any shape. It sends again what is not
//! answered, and drops what comes in another order.

use std::io::{ErrorKind, Read as _};
use std::net::{IpAddr, SocketAddr, UdpSocket};

use std::time::{Duration, Instant};

use plimsoll_testkit::{PATIENCE, uninterrupted};
use socket2::{Domain, Protocol, Socket, Type};

use super::bed::Bed;

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const ACK: u8 = 16;

/// Of raw sockets whose packets bring their IP header (`IPPROTO_RAW`).
const WITH_HEADER: i32 = 255;
const TCP: u8 = 6;
const TCP_HEADER_BYTES: usize = 20;
/// Bytes of an IP packet's content in each of its fragments.
const FRAGMENT_BYTES: usize = 64;
/// After so long without a packet the client sends its last segment again.
const AGAIN: Duration = Duration::from_millis(300);

/// What packets look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Plain,
    /// With IPv4 options, or IPv6 hop-by-hop and destination options, which say nothing.
    Options,
    /// Those with content in fragments, the first of which has the TCP header.
    Fragments,
}

/// The sum of RFC 1071 over several parts, of which all but the last have an even number of bytes.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u64 =
        words.map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum as u16
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// A TCP segment, without options.
pub(super) fn segment(
    from: SocketAddr,
    to: SocketAddr,
    flags: u8,
    (sequence, ack): (u32, u32),
    content: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(from.port().to_be_bytes());
    bytes.extend(to.port().to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(ack.to_be_bytes());
    // Length of the header in words, flags, window, checksum, urgent pointer.
    bytes.extend([5 << 4, flags, 0x7f, 0xff, 0, 0, 0, 0]);
    bytes.extend(content);
    let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    let pseudo = [octets(from.ip()), octets(to.ip()), vec![0, TCP], length.to_vec()].concat();
    let sum = checksum(&[&pseudo, &bytes]).to_be_bytes();
    bytes[16..18].copy_from_slice(&sum);
    bytes
}

/// The IP packets that carry a segment. The kernel fills IPv4's checksum in.
pub(super) fn packets(
    from: SocketAddr,
    to: SocketAddr,
    shape: Shape,
    id: u16,
    segment: &[u8],
) -> Vec<Vec<u8>> {
    let whole = shape != Shape::Fragments || segment.len() == TCP_HEADER_BYTES;
    let size = if whole { segment.len() } else { FRAGMENT_BYTES };
    let count = segment.len().div_ceil(size);
    let parts = segment.chunks(size).enumerate();
    parts
        .map(|(index, part)| {
            // In units of 8 bytes.
            let offset = u16::try_from(index * size / 8).unwrap();
            ip_packet([from, to], shape, id, (offset, index + 1 < count), part)
        })
        .collect()
}

fn ip_packet(
    ends: [SocketAddr; 2],
    shape: Shape,
    id: u16,
    (offset, more): (u16, bool),
    part: &[u8],
) -> Vec<u8> {
    let length = |bytes: usize| u16::try_from(bytes).unwrap().to_be_bytes();
    let is_fragment = offset > 0 || more;
    let mut packet = Vec::new();
    if ends[0].is_ipv4() {
        let options: &[u8] = if shape == Shape::Options { &[1, 1, 1, 0] } else { &[] };
        let header_bytes = 20 + options.len();
        packet.extend([0x40 | u8::try_from(header_bytes / 4).unwrap(), 0]);
        packet.extend(length(header_bytes + part.len()));
        packet.extend(id.to_be_bytes());
        packet.extend((offset | if more { 0x2000 } else { 0 }).to_be_bytes());
        packet.extend([64, TCP, 0, 0]);
        packet.extend(ends.iter().flat_map(|end| octets(end.ip())));
        packet.extend(options);
    } else {
        let mut headers = Vec::new();
        let first = match shape {
            Shape::Options => {
                headers.extend([60, 0, 1, 4, 0, 0, 0, 0, TCP, 0, 1, 4, 0, 0, 0, 0]);
                0
            }
            Shape::Fragments if is_fragment => {
                headers.extend([TCP, 0]);
                headers.extend(((offset * 8) | u16::from(more)).to_be_bytes());
                headers.extend(u32::from(id).to_be_bytes());
                44
            }
            _ => TCP,
        };
        packet.extend([0x60, 0, 0, 0]);
        packet.extend(length(headers.len() + part.len()));
        packet.extend([first, 64]);
        packet.extend(ends.iter().flat_map(|end| octets(end.ip())));
        packet.extend(headers);
    }
    packet.extend(part);
    packet
}

/// What sends packets that bring their IP header.
pub(super) fn sender(to: SocketAddr) -> Socket {
    Socket::new(Domain::for_address(to), Type::RAW, Some(Protocol::from(WITH_HEADER))).unwrap()
}

/// A connection.
pub(super) struct RawClient {
    pub(super) from: SocketAddr,
    to: SocketAddr,
    shape: Shape,
    sender: Socket,
    receiver: Socket,
    id: u16,
    sequence: u32,
    ack: u32,
    /// The latest segment that has to be acknowledged, and what it ends with.
    latest: (Vec<u8>, u32),
    /// What the other side has acknowledged.
    acknowledged: u32,
}

impl RawClient {
    /// Opens a connection from this port of the client's node. The bed drops what the node's kernel, which knows nothing of the
    /// connection, says to it.
    pub(super) fn connect(bed: &Bed, to: SocketAddr, port: u16, shape: Shape) -> Self {
        let resets = format!("iifname \"client\" tcp sport {port} tcp flags & rst == rst");
        bed.lab.drop_frames(&resets).unwrap();
        bed.client(|| {
            let receiver = Socket::new(Domain::for_address(to), Type::RAW, Some(Protocol::TCP)).unwrap();
            receiver.set_read_timeout(Some(AGAIN)).unwrap();
            receiver.set_recv_buffer_size(4 << 20).unwrap();
            let from = SocketAddr::new(source(to), port);
            let sequence = 1_000_000;
            let latest = (Vec::new(), sequence);
            let sender = sender(to);
            let mut client = Self {
                from,
                to,
                shape,
                sender,
                receiver,
                id: 1,
                sequence,
                ack: 0,
                latest,
                acknowledged: sequence,
            };
            client.send(SYN, b"");
            let (flags, sequence, _) = client.next();
            assert_eq!(flags & (SYN | ACK), SYN | ACK);
            client.ack = sequence.wrapping_add(1);
            client.send(ACK, b"");
            client
        })
    }

    /// Sends a segment with these flags.
    pub(super) fn send(&mut self, flags: u8, content: &[u8]) {
        let segment = segment(self.from, self.to, flags, (self.sequence, self.ack), content);
        let length = u32::try_from(content.len()).unwrap() + u32::from(flags & (SYN | FIN) != 0);
        self.sequence = self.sequence.wrapping_add(length);
        self.send_segment(&segment);
        if length > 0 {
            self.latest = (segment, self.sequence);
        }
    }

    fn send_segment(&mut self, segment: &[u8]) {
        self.id += 1;
        let to = SocketAddr::new(self.to.ip(), 0).into();
        for packet in packets(self.from, self.to, self.shape, self.id, segment) {
            self.sender.send_to(&packet, &to).unwrap();
        }
    }

    /// The next segment of the connection: flags, sequence number, content. Sends again what may have been lost meanwhile.
    fn next(&mut self) -> (u8, u32, Vec<u8>) {
        let mut buffer = vec![0; 1 << 16];
        let began = Instant::now();
        loop {
            let count = match uninterrupted(|| (&self.receiver).read(&mut buffer)) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && began.elapsed() < PATIENCE => {
                    self.send_again();
                    continue;
                }
                count => count.unwrap(),
            };
            // With IPv4 the kernel gives the IP header, too.
            let start = if self.to.is_ipv4() { usize::from(buffer[0] & 15) * 4 } else { 0 };
            let tcp = &buffer[start..count];
            let ports = [self.to.port().to_be_bytes(), self.from.port().to_be_bytes()].concat();
            if tcp[..4] == ports {
                assert_eq!(tcp[13] & RST, 0, "{:?} was reset", self.shape);
                let content = tcp[usize::from(tcp[12] >> 4) * 4..].to_vec();
                let acknowledged = u32::from_be_bytes(tcp[8..12].try_into().unwrap());
                if acknowledged.wrapping_sub(self.acknowledged).cast_signed() > 0 {
                    self.acknowledged = acknowledged;
                }
                return (tcp[13], u32::from_be_bytes(tcp[4..8].try_into().unwrap()), content);
            }
        }
    }

    /// Sends the latest segment again if it was not acknowledged, or else an acknowledgment.
    fn send_again(&mut self) {
        if self.acknowledged == self.latest.1 {
            self.send(ACK, b"");
        } else {
            let (segment, _) = self.latest.clone();
            self.send_segment(&segment);
        }
    }

    /// Waits for content, and returns it.
    fn receive(&mut self) -> Vec<u8> {
        loop {
            let (_, sequence, content) = self.next();
            // What was sent again has been received.
            if sequence == self.ack && !content.is_empty() {
                self.ack = self.ack.wrapping_add(u32::try_from(content.len()).unwrap());
                return content;
            }
            // Something before it is missing, or an acknowledgment was lost.
            if !content.is_empty() {
                self.send(ACK, b"");
            }
        }
    }

    /// Ends the connection, and waits until the other side has.
    pub(super) fn close(&mut self) {
        self.send(FIN | ACK, b"");
        while !matches!(self.next(), (flags, sequence, _) if flags & FIN != 0 && sequence == self.ack) {}
        self.ack += 1;
        // Nobody sends it again when the other side has not got it.
        (0..3).for_each(|_| self.send(ACK, b""));
    }

    /// Sends a request, and returns what comes until it ends with this.
    pub(super) fn request(&mut self, request: &str, end: &[u8]) -> Vec<u8> {
        self.send(ACK, request.as_bytes());
        let mut answer = Vec::new();
        while !answer.ends_with(end) {
            answer.extend(self.receive());
            self.send(ACK, b"");
        }
        answer
    }
}

/// The address that packets to another one come from.
fn source(to: SocketAddr) -> IpAddr {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).unwrap();
    socket.connect(to).unwrap();
    socket.local_addr().unwrap().ip()
}
