//! The PROXY protocol (HAProxy, versions 1 and 2): the header by which one proxy tells the next one whose connection it passes on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use plimsoll_config::ProxyProtocol;

/// The most bytes of a header, what it holds besides addresses included: HAProxy sends some hundred.
pub(crate) const MOST_BYTES: usize = 4096;
/// The most bytes of a header of version 1, its end included.
const MOST_V1_BYTES: usize = 107;
/// What begins one of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes before the addresses in version 2.
const FIXED_BYTES: usize = 16;

/// Both ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionEnds {
    /// The client's.
    pub(crate) source: SocketAddr,
    /// The one that it has connected to.
    pub(crate) destination: SocketAddr,
}

/// What bytes from the beginning of a connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyHeader {
    /// The beginning of a header.
    Open,
    /// A header, which is so long.
    Whole {
        length: usize,
        /// The ends of the client's connection; none where there is no client, or it is not known: the connection is the proxy's own.
        told: Option<ConnectionEnds>,
    },
    /// No header, and why.
    Bad(&'static str),
}

/// Reads a header from the beginning of what has come.
pub(crate) fn parse(bytes: &[u8]) -> ProxyHeader {
    let same = |begin: &[u8]| bytes.iter().zip(begin).all(|(a, b)| a == b);
    match bytes.len() {
        _ if same(SIGNATURE) => parse_v2(bytes),
        _ if same(b"PROXY ") => parse_v1(bytes),
        _ => ProxyHeader::Bad("what came begins no header of the PROXY protocol"),
    }
}

fn parse_v1(bytes: &[u8]) -> ProxyHeader {
    const WRONG: ProxyHeader = ProxyHeader::Bad("a header of version 1 that is not one");
    let within = &bytes[..bytes.len().min(MOST_V1_BYTES)];
    let Some(end) = memchr::memchr(b'\n', within) else {
        return if bytes.len() < MOST_V1_BYTES { ProxyHeader::Open } else { WRONG };
    };
    let Some(line) = within[..end].strip_suffix(b"\r").and_then(|line| std::str::from_utf8(line).ok()) else {
        return WRONG;
    };
    let length = end + 1;
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        // Whatever follows does not count.
        ["PROXY", "UNKNOWN", ..] => ProxyHeader::Whole { length, told: None },
        ["PROXY", family @ ("TCP4" | "TCP6"), source, destination, source_port, destination_port] => {
            let end = |address: &str, port: &str| {
                let ip = match family {
                    "TCP4" => address.parse().map(IpAddr::V4).ok()?,
                    _ => address.parse().map(IpAddr::V6).ok()?,
                };
                // `parse` would take a sign and leading zeros.
                let plain = port == "0" || (!port.starts_with(['0', '+']) && !port.is_empty());
                Some(SocketAddr::new(ip, port.parse().ok().filter(|_| plain)?))
            };
            match (end(source, source_port), end(destination, destination_port)) {
                (Some(source), Some(destination)) => {
                    ProxyHeader::Whole { length, told: Some(ConnectionEnds { source, destination }) }
                }
                _ => WRONG,
            }
        }
        _ => WRONG,
    }
}

fn parse_v2(bytes: &[u8]) -> ProxyHeader {
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_BYTES>() else { return ProxyHeader::Open };
    let (is_proxy, family) = match (fixed[12], fixed[13]) {
        (0x20, family) => (false, family),
        (0x21, family) => (true, family),
        _ => return ProxyHeader::Bad("a header of another version than 1 and 2, or with an unknown command"),
    };
    let rest_bytes = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    let length = FIXED_BYTES + rest_bytes;
    if length > MOST_BYTES {
        return ProxyHeader::Bad("a header longer than 4096 bytes");
    }
    let Some(rest) = rest.get(..rest_bytes) else { return ProxyHeader::Open };
    // What follows the addresses (TLVs) is skipped.
    let told = match family {
        // A connection of the proxy's own, and a client that it does not know.
        _ if !is_proxy => None,
        0x00 => None,
        0x11 => match rest.first_chunk::<12>() {
            Some(ends) => Some(ends_of(ends, |ip: &[u8; 4]| Ipv4Addr::from(*ip).into())),
            None => return ProxyHeader::Bad("a header without room for its addresses"),
        },
        0x21 => match rest.first_chunk::<36>() {
            Some(ends) => Some(ends_of(ends, |ip: &[u8; 16]| Ipv6Addr::from(*ip).into())),
            None => return ProxyHeader::Bad("a header without room for its addresses"),
        },
        _ => return ProxyHeader::Bad("a header of something else than a TCP connection"),
    };
    ProxyHeader::Whole { length, told }
}

/// Source, destination and their ports, as version 2 has them.
fn ends_of<const ADDRESS: usize>(bytes: &[u8], ip: impl Fn(&[u8; ADDRESS]) -> IpAddr) -> ConnectionEnds {
    let address = |at: usize| {
        let mut address = [0; ADDRESS];
        address.copy_from_slice(&bytes[at..at + ADDRESS]);
        ip(&address)
    };
    let port = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    ConnectionEnds {
        source: SocketAddr::new(address(0), port(2 * ADDRESS)),
        destination: SocketAddr::new(address(ADDRESS), port(2 * ADDRESS + 2)),
    }
}

/// The header that tells of a client's connection; without one, that the connection is the front-end's own. Empty where back-ends are
/// told nothing.
pub(crate) fn header(version: ProxyProtocol, ends: Option<&ConnectionEnds>) -> Vec<u8> {
    match version {
        ProxyProtocol::None => Vec::new(),
        ProxyProtocol::V1 => header_v1(ends),
        ProxyProtocol::V2 => header_v2(ends),
    }
}

fn header_v1(ends: Option<&ConnectionEnds>) -> Vec<u8> {
    let Some(ends) = ends else { return b"PROXY UNKNOWN\r\n".to_vec() };
    let (from, to) = (ends.source.port(), ends.destination.port());
    match alike(ends) {
        Alike::V4(source, destination) => format!("PROXY TCP4 {source} {destination} {from} {to}\r\n"),
        Alike::V6(source, destination) => format!("PROXY TCP6 {source} {destination} {from} {to}\r\n"),
    }
    .into_bytes()
}

fn header_v2(ends: Option<&ConnectionEnds>) -> Vec<u8> {
    let mut out = SIGNATURE.to_vec();
    let Some(ends) = ends else {
        out.extend_from_slice(&[0x20, 0, 0, 0]);
        return out;
    };
    match alike(ends) {
        Alike::V4(source, destination) => {
            out.extend_from_slice(&[0x21, 0x11, 0, 12]);
            out.extend_from_slice(&source.octets());
            out.extend_from_slice(&destination.octets());
        }
        Alike::V6(source, destination) => {
            out.extend_from_slice(&[0x21, 0x21, 0, 36]);
            out.extend_from_slice(&source.octets());
            out.extend_from_slice(&destination.octets());
        }
    }
    out.extend_from_slice(&ends.source.port().to_be_bytes());
    out.extend_from_slice(&ends.destination.port().to_be_bytes());
    out
}

/// Two addresses of one family, as a header has them.
enum Alike {
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
}

fn alike(ends: &ConnectionEnds) -> Alike {
    let mapped = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    match (ends.source.ip().to_canonical(), ends.destination.ip().to_canonical()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Alike::V4(source, destination),
        (source, destination) => Alike::V6(mapped(source), mapped(destination)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ends(source: &str, destination: &str) -> ConnectionEnds {
        ConnectionEnds { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
    }

    #[test]
    fn what_is_written_reads_back() {
        for told in [
            ends("192.0.2.1:1234", "198.51.100.7:80"),
            ends("[2001:db8::1]:65535", "[2001:db8::2]:443"),
            ends("[2001:db8::1]:0", "[::ffff:198.51.100.7]:443"),
        ] {
            for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
                let written = header(version, Some(&told));
                let whole = ProxyHeader::Whole { length: written.len(), told: Some(told) };
                assert_eq!(parse(&written), whole);
                assert_eq!(parse(&[&written[..], b"GET /"].concat()), whole);
                for length in 0..written.len() {
                    assert_eq!(parse(&written[..length]), ProxyHeader::Open, "{length}");
                }
            }
        }
        for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
            let own = header(version, None);
            assert_eq!(parse(&own), ProxyHeader::Whole { length: own.len(), told: None });
        }
        assert!(header(ProxyProtocol::None, None).is_empty());
        let mapped = header(ProxyProtocol::V1, Some(&ends("[::ffff:192.0.2.1]:1", "10.0.0.1:2")));
        assert_eq!(mapped, b"PROXY TCP4 192.0.2.1 10.0.0.1 1 2\r\n", "one family, however it came");
    }

    #[test]
    fn headers_of_version_1() {
        let longest = format!("PROXY UNKNOWN {}\r\n", "f".repeat(107 - 16));
        assert_eq!(parse(longest.as_bytes()), ProxyHeader::Whole { length: 107, told: None });
        for bad in [
            "PROXY TCP4 192.0.2.1 10.0.0.1 1 2\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 1\r\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 1 2 3\r\n",
            "PROXY TCP4 ::1 ::1 1 2\r\n",
            "PROXY TCP6 192.0.2.1 10.0.0.1 1 2\r\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 01 2\r\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 +1 2\r\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 1 65536\r\n",
            "PROXY TCP4 192.0.2.1  10.0.0.1 1 2\r\n",
            "PROXY UNIX a b 1 2\r\n",
            "PROXY \r\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 1 2\r\r\n",
            "proxy TCP4 192.0.2.1 10.0.0.1 1 2\r\n",
            "GET / HTTP/1.1\r\n",
            &format!("PROXY UNKNOWN {}\r\n", "f".repeat(107 - 15)),
        ] {
            assert!(matches!(parse(bad.as_bytes()), ProxyHeader::Bad(_)), "{bad}");
        }
    }

    #[test]
    fn headers_of_version_2() {
        let with = |command: u8, family: u8, rest: &[u8]| {
            let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
            parse(&[&SIGNATURE[..], &[command, family], &length, rest].concat())
        };
        let v4 = [192, 0, 2, 1, 10, 0, 0, 1, 0, 7, 0, 80];
        let told = ends("192.0.2.1:7", "10.0.0.1:80");
        let tlvs = [&v4[..], &[4, 0, 1, 0], &[0xee; 900]].concat();
        assert_eq!(with(0x21, 0x11, &tlvs), ProxyHeader::Whole { length: 16 + tlvs.len(), told: Some(told) });
        // Of a connection of the proxy's own nothing counts.
        for (command, family) in [(0x20, 0x11), (0x20, 0x00), (0x20, 0x31), (0x21, 0x00)] {
            assert_eq!(with(command, family, &v4), ProxyHeader::Whole { length: 28, told: None });
        }
        let unix = [0; 216];
        for (command, family, rest) in [
            (0x22, 0x11, &v4[..]),
            (0x11, 0x11, &v4),
            (0x21, 0x12, &v4),
            (0x21, 0x31, &unix),
            (0x21, 0x11, &v4[..11]),
            (0x21, 0x21, &v4),
            (0x21, 0x11, &[0; 4081]),
        ] {
            assert!(matches!(with(command, family, rest), ProxyHeader::Bad(_)), "{command:x} {family:x}");
        }
        // The length alone is enough to refuse it.
        let long = [&SIGNATURE[..], &[0x21, 0x11, 0xff, 0xff]].concat();
        assert!(matches!(parse(&long), ProxyHeader::Bad(_)));
    }

    proptest! {
        #[test]
        fn anything_is_a_header_or_not_and_no_longer_than_it_may_be(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
            begin in 0..3usize,
        ) {
            let begin: &[u8] = [&b""[..], b"PROXY TCP4 ", SIGNATURE][begin];
            bytes.splice(..0, begin.iter().copied());
            match parse(&bytes) {
                ProxyHeader::Whole { length, .. } => prop_assert!(length <= bytes.len()),
                ProxyHeader::Open => prop_assert!(bytes.len() < MOST_BYTES),
                ProxyHeader::Bad(_) => {}
            }
        }
    }
}
