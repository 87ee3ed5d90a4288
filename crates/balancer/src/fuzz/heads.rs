//! Ends of heads, paths, and heads of responses.

use super::written_head::{check_framing, read_head, values};
use crate::http::head_end::{HeadEnd, HeadScan, RequestLineScan};
use crate::http::response::{ResponseContext, ResponseHead, rewrite};
use crate::http::route_path::{RoutePath, raw_length, without_query};
use crate::http::{Framing, HttpVersion};
use crate::http2::fuzzed as text;

/// The end of a head is found in the same place in whichever pieces it comes, and is what it is said to be.
pub(super) fn head_end(bytes: &[u8]) {
    let whole = HeadScan::default().scan(bytes);
    let (mut pieces, mut line) = (HeadScan::default(), RequestLineScan::default());
    let (mut found, mut may_be) = (HeadEnd::Open, true);
    for end in 0..=bytes.len() {
        may_be &= line.may_become_request(&bytes[..end]);
        if found == HeadEnd::Open {
            found = pieces.scan(&bytes[..end]);
        }
    }
    assert_eq!(found, whole);
    let of_response = HeadScan::of_response().scan(bytes);
    assert!(whole == HeadEnd::BareLineFeed || whole == of_response, "what is strict ends there for all");
    let mut pieces = HeadScan::of_response();
    let first = (0..=bytes.len()).map(|end| pieces.scan(&bytes[..end])).find(|end| *end != HeadEnd::Open);
    assert_eq!(first.unwrap_or(HeadEnd::Open), of_response);
    match whole {
        HeadEnd::At(end) => {
            let head = &bytes[..end];
            assert!(head == b"\r\n" || head.ends_with(b"\r\n\r\n"));
            let line_feeds = head.windows(2).filter(|pair| pair[1] == b'\n');
            assert!(line_feeds.clone().all(|pair| pair[0] == b'\r') && head[0] != b'\n');
            // What can be parsed was not given up for something else than a request.
            let mut fields = [httparse::EMPTY_HEADER; 64];
            let parsed = httparse::Request::new(&mut fields).parse(head);
            assert!(may_be || head.starts_with(b"\r\n") || parsed.is_err(), "{}", head.escape_ascii());
        }
        HeadEnd::Open => assert!(!bytes.windows(4).any(|four| four == b"\r\n\r\n")),
        HeadEnd::BareLineFeed => {}
    }
}

/// No spelling of a path hides a segment of dots, and the length of a prefix is within it.
pub(super) fn path(bytes: &[u8]) {
    let Ok(path) = RoutePath::of(bytes) else { return };
    if !bytes.starts_with(b"/") {
        assert_eq!(&*path.plain, b"/");
        return;
    }
    let forms = [Some(&*path.plain), path.lenient.as_deref()];
    for form in forms.into_iter().flatten() {
        assert!(form.first() == Some(&b'/') && !form.windows(2).any(|two| two == b"//"));
        assert!(!form.split(|&b| b == b'/').any(|segment| matches!(segment, b"." | b"..")));
    }
    let raw = without_query(bytes);
    let mut last = 0;
    for plain_length in 0..=path.plain.len() {
        let length = raw_length(bytes, plain_length);
        assert!((last..=raw.len()).contains(&length));
        last = length;
        // The prefix alone is the same prefix.
        if let Ok(prefix) = RoutePath::of(&raw[..length])
            && plain_length > 0
        {
            assert_eq!(*prefix.plain, path.plain[..plain_length]);
        }
    }
    assert_eq!(last, raw.len());
}

fn context(client: HttpVersion, to_head: bool, upgrade: Option<&'static str>) -> ResponseContext<'static> {
    let date = b"Thu, 26 Nov 2026 00:00:00 GMT";
    ResponseContext {
        fields: 100,
        to_head,
        upgrade,
        client,
        keep_client: true,
        edits: &[],
        more: &[],
        compression: None,
        date,
    }
}

fn rewritten(head: &[u8], context: &ResponseContext<'_>) -> Option<(ResponseHead, Vec<u8>)> {
    let mut out = Vec::new();
    let head = rewrite(head, context, &mut out).ok()?;
    Some((head, out))
}

/// A back-end's head stays one head, framed as it was understood; the next intermediary understands the same.
pub(super) fn response(bytes: &[u8]) {
    let HeadEnd::At(end) = HeadScan::of_response().scan(bytes) else { return };
    for (client, to_head, upgrade) in [
        (HttpVersion::Http11, false, None),
        (HttpVersion::Http11, true, None),
        (HttpVersion::Http10, false, None),
        (HttpVersion::Http11, false, Some("websocket")),
    ] {
        let context = context(client, to_head, upgrade);
        let Some((head, out)) = rewritten(&bytes[..end], &context) else { continue };
        let (line, fields) = read_head(&out);
        assert!(line.starts_with(format!("HTTP/1.1 {} ", head.status).as_bytes()));
        let out_framing = match head.framing {
            Framing::Chunked | Framing::UntilClose if head.chunked_out => Framing::Chunked,
            Framing::Chunked => Framing::UntilClose,
            framing => framing,
        };
        check_framing(&fields, out_framing);
        assert!(head.keep_client || out_framing != Framing::UntilClose || client == HttpVersion::Http10);
        assert!(head.changes_protocol() <= upgrade.is_some());
        if head.changes_protocol() {
            continue;
        }
        assert_eq!(values(&fields, "upgrade").count(), 0);
        // With room for our own fields.
        let behind = ResponseContext { fields: context.fields + 10, ..context };
        let (again, _) = rewritten(&out, &behind).expect("what is passed on is a good response");
        assert_eq!((again.status, again.framing), (head.status, out_framing));
    }
}

/// What a back-end answers by HTTP/1 to a client by HTTP/2, and back: the same response.
pub(super) fn response_to_http2(bytes: &[u8]) {
    let Some((&[flags], bytes)) = bytes.split_first_chunk::<1>() else { return };
    let HeadEnd::At(end) = HeadScan::of_response().scan(bytes) else { return };
    let context = context(HttpVersion::Http2, flags & 1 != 0, (flags & 2 != 0).then_some("websocket"));
    let Some((head, out)) = rewritten(&bytes[..end], &context) else { return };
    let Some(parts) = text::read_response(&out, context.to_head) else { return };
    if head.changes_protocol() {
        assert_eq!(parts.status, 200);
        return;
    }
    assert_eq!(parts.status.as_u16(), head.status);
    for name in ["connection", "transfer-encoding", "upgrade", "keep-alive", "proxy-connection"] {
        assert!(!parts.headers.contains_key(name), "{name}");
    }
    let bodiless = context.to_head || head.framing == Framing::None;
    let mut again = Vec::new();
    text::write_response(&parts, (head.framing == Framing::None, bodiless), &mut again)
        .expect("what was converted can be converted back");
    let (line, fields) = read_head(&again);
    assert!(line.starts_with(format!("HTTP/1.1 {} ", head.status).as_bytes()));
    assert!(
        values(&fields, "transfer-encoding").count() <= 1 && values(&fields, "content-length").count() <= 1
    );
    let rest = fields.iter().filter(|(name, _)| name != "transfer-encoding" && name != "content-length");
    assert_eq!(rest.count(), parts.headers.iter().filter(|(name, _)| *name != "content-length").count());
}
