//! What proxies tell of clients, and clients of codings.

use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;

use plimsoll_config::{Config, ContentCoding, Forwarded, ForwardedField, IpNet, ProxyProtocol};

use super::written_head::{read_head, values};
use crate::http::accept_encoding::accepted;
use crate::http::request::{RequestContext, rewrite};
use crate::net::proxy_protocol::{MOST_BYTES, ProxyHeader, header, parse};
use crate::rate_limit::client_address;

/// A header of the PROXY protocol is the same one however it comes and whatever follows it, and what it tells can be told on.
pub(super) fn proxy_header(bytes: &[u8]) {
    let whole = parse(bytes);
    match whole {
        ProxyHeader::Whole { length, told } => {
            assert!(length <= bytes.len() && length <= MOST_BYTES);
            assert_eq!(parse(&bytes[..length]), whole);
            for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
                let written = header(version, told.as_ref());
                let ProxyHeader::Whole { length, told: again } = parse(&written) else {
                    panic!("what is written is a header")
                };
                assert_eq!(length, written.len());
                let canonical = |address: SocketAddr| (address.ip().to_canonical(), address.port());
                let ends = |ends: crate::net::proxy_protocol::ConnectionEnds| {
                    (canonical(ends.source), canonical(ends.destination))
                };
                assert_eq!(again.map(ends), told.map(ends));
            }
        }
        ProxyHeader::Open => assert!(bytes.len() < MOST_BYTES),
        ProxyHeader::Bad(_) => {}
    }
    // Once it is clear what has come, more of it changes nothing.
    let mut clear = None;
    for end in 0..=bytes.len().min(300) {
        let part = parse(&bytes[..end]);
        match (clear, part) {
            (None, ProxyHeader::Open) => {}
            (None, part) => clear = Some(part),
            (Some(ProxyHeader::Bad(_)), ProxyHeader::Bad(_)) => {}
            (Some(before), part) => assert_eq!(before, part),
        }
    }
}

/// Fields by which proxies tell of clients, from lines: whatever they are, the front-end's own words stand where they are looked for.
pub(super) fn forwarding(bytes: &[u8]) {
    let Some((&[flags], bytes)) = bytes.split_first_chunk::<1>() else { return };
    let trusted = flags & 1 != 0;
    let field =
        [ForwardedField::Off, ForwardedField::Append, ForwardedField::Replace][usize::from(flags >> 1) % 3];
    let forwarded = Forwarded { field, ..Forwarded::default() };
    let context = RequestContext { trusted, forwarded: &forwarded, fields: 100, ..RequestContext::plain() };
    let mut sent = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
    const NAMES: [&str; 4] = ["X-Forwarded-For", "Forwarded", "X-Forwarded-Proto", "X-Forwarded-Host"];
    for line in bytes.split(|&b| b == b'\n').take(50) {
        let Some((&which, value)) = line.split_first() else { continue };
        sent.extend_from_slice(NAMES[usize::from(which) % NAMES.len()].as_bytes());
        sent.extend_from_slice(b": ");
        sent.extend_from_slice(value);
        sent.extend_from_slice(b"\r\n");
    }
    sent.extend_from_slice(b"\r\n");
    let mut out = Vec::new();
    let Ok(head) = rewrite(&sent, &context, &mut out) else { return };
    let (_, fields) = read_head(&out);
    let all = |name| values(&fields, name).collect::<Vec<_>>();
    let [clients] = all("x-forwarded-for")[..] else { panic!("the client is told once") };
    assert_eq!(head.forwarded_for.of(&out).trim_ascii(), clients);
    assert!(clients.ends_with(b"192.0.2.1") && (trusted || clients == b"192.0.2.1"));
    assert_eq!(all("x-forwarded-proto").len(), 1);
    assert_eq!(all("x-forwarded-host").len(), 1);
    client(clients);
    let told = all("forwarded");
    match field {
        ForwardedField::Off => assert!(trusted || told.is_empty()),
        _ => {
            let elements = elements(told.concat().as_slice());
            assert_eq!(elements.last().map(Vec::as_slice), Some(&b"for=192.0.2.1;host=a;proto=http"[..]));
            assert!(elements.len() == 1 || (trusted && field == ForwardedField::Append));
        }
    }
}

static TRUSTED: LazyLock<Vec<IpNet>> = LazyLock::new(|| {
    let text = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n\
                [forwarded]\ntrusted = [\"192.0.2.0/24\"]\n";
    Config::parse(text, "text").expect("a good configuration").forwarded.trusted
});

/// The client that this value names is the peer, or stands in it behind trusted proxies alone.
fn client(clients: &[u8]) {
    let peer: SocketAddr = ([192, 0, 2, 1], 7).into();
    assert_eq!(client_address(clients, peer, &[]), peer.ip());
    let found = client_address(clients, peer, &TRUSTED);
    let is_trusted = |ip: IpAddr| TRUSTED.iter().any(|net| net.contains(ip));
    if found != peer.ip() {
        let text = String::from_utf8_lossy(clients);
        let named =
            text.split(',').rev().map(|part| part.trim().parse::<IpAddr>().map(|ip| ip.to_canonical()));
        let until: Vec<_> = named.take_while(|ip| *ip != Ok(found)).collect();
        assert!(until.iter().all(|ip| ip.as_ref().is_ok_and(|ip| is_trusted(*ip))), "{text}");
    }
}

/// The elements of `Forwarded` (RFC 7239, section 4), as another reader finds them.
fn elements(value: &[u8]) -> Vec<Vec<u8>> {
    let (mut all, mut quoted, mut escaped) = (vec![Vec::new()], false, false);
    for &byte in value {
        match byte {
            b',' if !quoted => {
                all.push(Vec::new());
                continue;
            }
            b'"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && !escaped && byte == b'\\';
        all.last_mut().expect("there is one").push(byte);
    }
    all.iter().map(|element| element.trim_ascii().to_vec()).collect()
}

/// `Accept-Encoding`: what a client gets it has named, in one field or in several, in whatever case.
pub(super) fn accept_encoding(bytes: &[u8]) {
    let of = |values: &[&[u8]], offered: &[ContentCoding]| {
        let field = |value| httparse::Header { name: "Accept-Encoding", value };
        let fields: Vec<_> = values.iter().map(|&value| field(value)).collect();
        accepted(&fields, offered)
    };
    let best = of(&[bytes], &ContentCoding::ALL);
    let parts: Vec<&[u8]> = bytes.split(|&b| b == b',').collect();
    assert_eq!(of(&parts, &ContentCoding::ALL), best);
    let lower = bytes.to_ascii_lowercase();
    assert_eq!(of(&[&lower], &ContentCoding::ALL), best);
    let names = |text: &[u8]| memchr::memmem::find(&lower, text).is_some();
    assert!(best.is_none_or(|coding| names(coding.name().as_bytes()) || names(b"*")));
    for coding in ContentCoding::ALL {
        match of(&[bytes], &[coding]) {
            None => assert_ne!(best, Some(coding)),
            // With more to choose from there is no less.
            Some(_) => assert!(best.is_some()),
        }
        let refused = [bytes, b",", coding.name().as_bytes(), b";q=0"].concat();
        assert_ne!(of(&[&refused], &ContentCoding::ALL), Some(coding));
    }
}
