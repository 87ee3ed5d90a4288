//! Frames for packet programs, good ones and bad ones.

use std::net::{IpAddr, SocketAddr};

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;

const ETHERNET: usize = 14;

/// A TCP segment in an Ethernet frame. Programs are tried at `lo`, whose MAC address is zero.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) payload: Vec<u8>,
    pub(crate) to_mac: [u8; 6],
}

impl Packet {
    pub(crate) fn new(from: SocketAddr, to: SocketAddr, flags: u8) -> Self {
        Self { from, to, seq: 1000, ack: 2000, flags, payload: Vec::new(), to_mac: [0; 6] }
    }

    pub(crate) fn numbers(self, seq: u32, ack: u32) -> Self {
        Self { seq, ack, ..self }
    }

    pub(crate) fn payload(self, bytes: usize) -> Self {
        Self { payload: vec![b'x'; bytes], ..self }
    }

    fn tcp(&self) -> Vec<u8> {
        let mut tcp = Vec::new();
        tcp.extend(self.from.port().to_be_bytes());
        tcp.extend(self.to.port().to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        // With the timestamp option, as real ones have it.
        tcp.extend([0x80, self.flags, 1, 0, 0, 0, 0, 0]);
        tcp.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        tcp.extend(&self.payload);
        tcp
    }

    /// A UDP datagram with this payload between the same ends.
    pub(crate) fn udp(&self, payload: &[u8]) -> Vec<u8> {
        let mut frame = self.frame();
        let (header, at) = if self.from.is_ipv4() { (20, ETHERNET + 9) } else { (40, ETHERNET + 6) };
        frame[at] = 17;
        frame.truncate(ETHERNET + header + 4);
        let length = u16::try_from(8 + payload.len()).unwrap();
        frame.extend(length.to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(payload);
        match self.from.is_ipv4() {
            true => frame[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&(20 + length).to_be_bytes()),
            false => frame[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&length.to_be_bytes()),
        }
        frame
    }

    /// The frame, without checksums: packet programs do not look at them.
    pub(crate) fn frame(&self) -> Vec<u8> {
        self.with(0, &[])
    }

    /// With bytes between the IP header and TCP: IPv4 options, or IPv6 extension headers of which the first is `next`.
    pub(crate) fn with(&self, next: u8, between: &[u8]) -> Vec<u8> {
        let tcp = self.tcp();
        let mut frame = self.to_mac.to_vec();
        frame.extend([2, 0, 0, 0, 0, 0xc]);
        let length = |bytes: usize| u16::try_from(bytes).unwrap().to_be_bytes();
        match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let header = 20 + between.len();
                frame.extend([8, 0, 0x40 | u8::try_from(header / 4).unwrap(), 0]);
                frame.extend(length(header + tcp.len()));
                frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
                frame.extend(from.octets());
                frame.extend(to.octets());
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
                frame.extend(length(between.len() + tcp.len()));
                frame.extend([if between.is_empty() { 6 } else { next }, 64]);
                frame.extend(from.octets());
                frame.extend(to.octets());
            }
            mixed => panic!("no packet has {mixed:?}"),
        }
        frame.extend(between);
        frame.extend(tcp);
        frame
    }

    /// A router's error about this packet, sent to where it comes from: "packet too big".
    pub(crate) fn too_big(&self) -> Vec<u8> {
        let about = &self.frame()[ETHERNET..];
        let about = &about[..about.len().min(if self.from.is_ipv4() { 28 } else { 100 })];
        let mut frame = Packet::new(self.from, self.from, 0).frame();
        let header = if self.from.is_ipv4() { 20 } else { 40 };
        frame.truncate(ETHERNET + header);
        let length = u16::try_from(8 + about.len()).unwrap();
        if self.from.is_ipv4() {
            frame[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&(20 + length).to_be_bytes());
            frame[ETHERNET + 9] = 1;
            frame.extend([3, 4, 0, 0, 0, 0, 2, 0]);
        } else {
            frame[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&length.to_be_bytes());
            frame[ETHERNET + 6] = 58;
            frame.extend([2, 0, 0, 0, 0, 0, 5, 0]);
        }
        frame.extend(about);
        frame
    }

    /// As a fragment: the first, or a later one.
    pub(crate) fn fragment(&self, first: bool) -> Vec<u8> {
        let bits: u16 = if first { 0x2000 } else { 100 };
        if self.from.is_ipv4() {
            let mut frame = self.frame();
            frame[ETHERNET + 6..ETHERNET + 8].copy_from_slice(&bits.to_be_bytes());
            return frame;
        }
        let offset: u16 = if first { 1 } else { 800 };
        let mut header = [6, 0, 0, 0, 0, 0, 0, 7];
        header[2..4].copy_from_slice(&offset.to_be_bytes());
        self.with(44, &header)
    }
}
