//! Requests: whatever is understood of one is what the next reader understands.

use http::{HeaderName, HeaderValue, Method, Request, Uri, request};
use plimsoll_config::{TargetKey, UpgradeProtocol};

use super::written_head::{ReadField, check_framing, read_head, values};
use crate::http::fields::{Field, classify};
use crate::http::head_end::{HeadEnd, HeadScan};
use crate::http::request::{RequestContext, RequestHead, rewrite};
use crate::http::{HttpVersion, RequestRefusal};
use crate::http2::fuzzed as text;

const PEER: &[u8] = b"192.0.2.1";
/// The most fields that are taken of a head.
const MOST_TAKEN: usize = 100;

/// What a head is rewritten to, as from a client or from a trusted one, by HTTP/2 or not.
fn rewritten(head: &[u8], trusted: bool, http2: bool) -> Result<(RequestHead, Vec<u8>), RequestRefusal> {
    let upgrades = [UpgradeProtocol("websocket".into())];
    let context = RequestContext {
        key: &TargetKey::HostPath,
        fields: MOST_TAKEN,
        upgrades: &upgrades,
        peer: PEER,
        trusted,
        http2,
        secure: http2,
        ..RequestContext::plain()
    };
    let mut out = Vec::new();
    rewrite(head, &context, &mut out).map(|head| (head, out))
}

/// Fields that the front-end writes itself.
const OWN: [&str; 10] = [
    "host",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "via",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "max-forwards",
];

/// Bytes from a client of HTTP/1.
pub(super) fn http1(bytes: &[u8]) {
    let HeadEnd::At(end) = HeadScan::default().scan(bytes) else { return };
    let sent = &bytes[..end];
    for trusted in [false, true] {
        let Ok((head, out)) = rewritten(sent, trusted, false) else { continue };
        let (line, fields) = read_head(&out);
        check_request(&head, line, &fields);
        let lower = sent.to_ascii_lowercase();
        for (name, value) in &fields {
            let was_sent = memchr::memmem::find(&lower, name.as_bytes()).is_some();
            assert!(was_sent || OWN.contains(&name.as_str()), "{name} was not sent");
            let own = trusted || OWN.contains(&name.as_str());
            assert!(own || memchr::memmem::find(sent, value).is_some(), "{name} was not sent so");
            if !trusted && !OWN.contains(&name.as_str()) {
                let passes = matches!(
                    classify(name),
                    Field::Other
                        | Field::Via
                        | Field::Cookie
                        | Field::Referer
                        | Field::UserAgent
                        | Field::Date
                        | Field::Expect
                );
                assert!(passes, "{name} of a stranger is passed on");
            }
        }
        if !trusted {
            assert_eq!(values(&fields, "x-forwarded-for").collect::<Vec<_>>(), [PEER]);
        }
        passes_on(&head, &out, memchr::memmem::find(&lower, b" http://").is_some());
    }
}

/// What holds of each head that is passed on.
fn check_request(head: &RequestHead, line: &[u8], fields: &[ReadField]) {
    let parts: Vec<&[u8]> = line.split(|&b| b == b' ').collect();
    assert!(parts.len() == 3 && parts[2] == b"HTTP/1.1", "{}", line.escape_ascii());
    assert!(matches!(parts[1].first(), Some(b'/' | b'*' | b'?')), "{}", line.escape_ascii());
    assert_ne!(parts[0], b"CONNECT");
    assert_eq!(values(fields, "host").count(), 1);
    check_framing(fields, head.framing);
    let upgrades = usize::from(head.upgrade.is_some());
    assert_eq!(values(fields, "connection").count(), upgrades);
    assert_eq!(values(fields, "upgrade").count(), upgrades);
    let hop_by_hop = |name: &str| matches!(classify(name), Field::HopByHop) && name != "upgrade";
    assert!(!fields.iter().any(|(name, _)| hop_by_hop(name)));
}

/// A front-end behind this one understands the same. In absolute form a path may be empty, which it is not once it was passed on.
fn passes_on(head: &RequestHead, out: &[u8], is_absolute: bool) {
    let again = match rewritten(out, true, false) {
        // It is the last that may pass it on.
        Err(RequestRefusal { status: 204, .. }) => return,
        // HTTP/1.0 needs no host, and 1.1 says so by an empty one.
        Err(refusal) if head.version == HttpVersion::Http10 && refusal.why.contains("Host") => return,
        // Our own fields may be more than the next one takes.
        Err(RequestRefusal { why: "too many fields", .. }) if read_head(out).1.len() > MOST_TAKEN => return,
        again => again.expect("what is passed on is a good request").0,
    };
    let was_kept = RequestHead {
        version: again.version,
        keep_alive: again.keep_alive,
        is_plain: again.is_plain,
        line: again.line,
        referer: again.referer,
        user_agent: again.user_agent,
        forwarded_for: again.forwarded_for,
        target: if is_absolute { again.target } else { head.target },
        ..*head
    };
    assert_eq!(again, was_kept);
    for span in [head.line, head.referer, head.user_agent] {
        assert!(span.start <= span.end && span.of(out).len() <= out.len());
    }
}

/// A request as HTTP/2 tells it, from lines: method, scheme and authority and path, then fields. What `h2` would not take is none.
fn told(bytes: &[u8]) -> Option<(request::Parts, bool)> {
    let (&[flags], bytes) = bytes.split_first_chunk::<1>()?;
    let mut lines = bytes.split(|&b| b == b'\n');
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(lines.next()?).ok()?;
    *request.uri_mut() = std::str::from_utf8(lines.next()?).ok()?.parse::<Uri>().ok()?;
    for line in lines.take(50) {
        let colon = line.iter().position(|&b| b == b':')?;
        // `h2` refuses names with capitals.
        let name = HeaderName::from_lowercase(&line[..colon]).ok()?;
        request.headers_mut().append(name, HeaderValue::from_bytes(&line[colon + 1..]).ok()?);
    }
    if flags & 2 != 0 && request.method() == Method::CONNECT {
        request.extensions_mut().insert(h2::ext::Protocol::from_static("websocket"));
    }
    Some((request.into_parts().0, flags & 1 != 0))
}

/// A request by HTTP/2, to a back-end by HTTP/1 and by HTTP/2: nothing is added to it, and it stays one request.
pub(super) fn http2(bytes: &[u8]) {
    let Some((sent, ends)) = told(bytes) else { return };
    let mut as_text = Vec::new();
    if text::write_request(&sent, ends, &mut as_text).is_err() {
        return;
    }
    let HeadEnd::At(end) = HeadScan::default().scan(&as_text) else { panic!("a whole head is written") };
    assert_eq!(end, as_text.len(), "nothing follows a head");
    let Ok((head, out)) = rewritten(&as_text, false, true) else { return };
    assert_eq!(head.version, HttpVersion::Http2);
    let (line, fields) = read_head(&out);
    check_request(&head, line, &fields);
    let method = line.split(|&b| b == b' ').next().unwrap_or_default();
    if head.upgrade.is_some() {
        assert_eq!((method, &sent.method), (&b"GET"[..], &Method::CONNECT));
    } else {
        assert_eq!(method, sent.method.as_str().as_bytes());
    }
    if let Some(authority) = sent.uri.authority() {
        assert_eq!(values(&fields, "host").next(), Some(authority.as_str().as_bytes()));
    }
    for (name, value) in fields.iter().filter(|(name, _)| !OWN.contains(&name.as_str())) {
        let mut sent_values = sent.headers.get_all(name.as_str()).iter();
        let is_sent = name == "cookie"
            || name == "sec-websocket-key"
            || sent_values.any(|sent| sent.as_bytes().trim_ascii() == value);
        assert!(is_sent, "{name} was not sent so");
    }
    passes_on(&head, &out, false);
    to_http2(&head, &out, &fields);
}

/// The same request to a back-end by HTTP/2.
fn to_http2(head: &RequestHead, out: &[u8], fields: &[ReadField]) {
    let Some(parts) = text::read_request(out, "http") else { return };
    let told = fields.iter().filter(|(name, _)| match classify(name) {
        Field::Connection | Field::HopByHop | Field::Host | Field::TransferEncoding => false,
        _ => !(head.upgrade.is_some() && name == "sec-websocket-key"),
    });
    // And `te`.
    assert_eq!(parts.headers.len(), told.count() + 1);
    assert_eq!(parts.method == Method::CONNECT, head.upgrade.is_some());
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let target = head.line.of(out).split(|&b| b == b' ').nth(1).unwrap_or_default();
    let target = std::str::from_utf8(target).expect("a target is ASCII");
    assert_eq!(path.trim_start_matches('/'), target.trim_start_matches('/'));
}
