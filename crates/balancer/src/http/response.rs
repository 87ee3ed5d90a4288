//! A back-end's response head: checked, and rewritten for the client in one pass.

use std::mem::MaybeUninit;

use plimsoll_config::{ContentCoding, FieldEdit};

use super::coding::{CodedHead, ResponseCompression};
use super::fields::{
    ConnectionOptions, Field, FieldKinds, MOST_FIELDS, NO_KINDS, classify_common, content_length,
    is_replaced, push, push_edits,
};
use super::told_hit::ToldHit;
use super::{Framing, HttpVersion};
use plimsoll_observe::line::push_number;

/// Why a response is not passed on; the client gets 502.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadResponse {
    /// It is not what a response has to be.
    Wrong(&'static str),
    /// It is more than is allowed here.
    OverLimit(&'static str),
}

/// What rewriting needs to know besides the bytes.
pub(crate) struct ResponseContext<'a> {
    /// Fields allowed.
    pub(crate) fields: usize,
    /// Whether the request was HEAD.
    pub(crate) to_head: bool,
    /// The protocol to which the client wants to change.
    pub(crate) upgrade: Option<&'a str>,
    /// The client's version.
    pub(crate) client: HttpVersion,
    /// Whether the client's connection is to be kept, as far as the request and the front-end say.
    pub(crate) keep_client: bool,
    /// Changes of fields, not of interim responses.
    pub(crate) edits: &'a [FieldEdit],
    /// Further fields, each with the end of its line, not of interim responses.
    pub(crate) more: &'a [u8],
    /// How it is compressed, where some are.
    pub(crate) compression: Option<ResponseCompression<'a>>,
    /// `Date` to add where the back-end sent none.
    pub(crate) date: &'a [u8],
}

/// What the front-end keeps of a response head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    /// Status code.
    pub(crate) status: u16,
    /// How the back-end frames the body.
    pub(crate) framing: Framing,
    /// Whether the body goes to the client chunked.
    pub(crate) chunked_out: bool,
    /// How the front-end codes the content, which the back-end has not.
    pub(crate) coding: Option<ContentCoding>,
    /// Whether the back-end had the content in its cache, where it tells.
    pub(crate) hit: Option<bool>,
    /// Whether the connection to the back-end may be used again.
    pub(crate) keep_backend: bool,
    /// Whether the client's connection is kept: what was wanted, unless only closing can end the body.
    pub(crate) keep_client: bool,
}

impl ResponseHead {
    /// Whether something else than HTTP is spoken after it.
    pub(crate) fn changes_protocol(&self) -> bool {
        self.status == 101
    }
}

/// Reads a complete head and appends what the client gets to `out`.
pub(crate) fn rewrite(
    bytes: &[u8],
    context: &ResponseContext<'_>,
    out: &mut Vec<u8>,
) -> Result<ResponseHead, BadResponse> {
    let mut room = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; MOST_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let room = &mut room[..context.fields.min(MOST_FIELDS)];
    let config = httparse::ParserConfig::default();
    match config.parse_response_with_uninit_headers(&mut response, bytes, room) {
        Ok(httparse::Status::Complete(n)) if n == bytes.len() => {}
        Ok(_) => return Err(BadResponse::Wrong("the head does not end where it should")),
        Err(httparse::Error::TooManyHeaders) => return Err(BadResponse::OverLimit("too many fields")),
        Err(_) => return Err(BadResponse::Wrong("a malformed head")),
    }
    let status = response.code.unwrap_or_default();
    let mut kinds = NO_KINDS;
    let facts = ResponseFacts::gather(response.headers, &mut kinds)?;
    if !(100..600).contains(&status) {
        return Err(BadResponse::Wrong("a status code that is none: they are from 100 to 599"));
    }
    // To another protocol would be a tunnel of which nobody knows what passes in it (RFC 9110, section 7.8).
    let wanted = |asked: &str| facts.upgrade.is_some_and(|told| told.eq_ignore_ascii_case(asked.as_bytes()));
    let changes = context.upgrade.is_some_and(wanted) && facts.options.nominates("upgrade");
    if status == 101 && !changes {
        return Err(BadResponse::Wrong("a change to a protocol that the client has not asked for"));
    }
    if context.upgrade.is_some() && context.client == HttpVersion::Http2 && (200..300).contains(&status) {
        // Such a client would take it for the change (RFC 8441, section 5).
        return Err(BadResponse::Wrong("an answer that does not change the protocol"));
    }
    let version = if response.version == Some(1) { HttpVersion::Http11 } else { HttpVersion::Http10 };
    let framing = facts.framing(status, context.to_head, version)?;
    let edits = if status < 200 { &[] } else { context.edits };
    let coded = context.compression.map_or_else(CodedHead::default, |compression| {
        let fields = (&*response.headers, edits);
        CodedHead::of(&compression, (status, framing, context.to_head), fields, facts.content_length)
    });
    let (chunked_out, keep_client) = match (framing, context.client) {
        _ if coded.coding.is_some() => (framing != Framing::None, context.keep_client),
        (Framing::Chunked | Framing::UntilClose, HttpVersion::Http10) => (false, false),
        (Framing::Chunked | Framing::UntilClose, _) => (true, context.keep_client),
        _ => (false, context.keep_client),
    };
    let head = ResponseHead {
        status,
        framing,
        coding: coded.coding,
        hit: facts.told_hit.get(),
        chunked_out,
        keep_backend: !facts.options.close
            && framing != Framing::UntilClose
            && (version == HttpVersion::Http11 || facts.options.keep_alive),
        keep_client,
    };
    write_line(status, response.reason.unwrap_or_default(), out);
    write_fields((response.headers, &kinds), &facts, (edits, coded), out);
    push_edits(edits, out);
    if coded != CodedHead::default() {
        coded.push_own(response.headers, edits, out);
    }
    if status >= 200 || status == 101 {
        out.extend_from_slice(context.more);
    }
    let length = facts.content_length.filter(|_| !coded.is_coded);
    write_own((&head, length), &facts, context, out);
    out.extend_from_slice(b"\r\n");
    Ok(head)
}

#[derive(Default)]
struct ResponseFacts<'a> {
    content_length: Option<u64>,
    chunked: bool,
    options: ConnectionOptions<'a>,
    /// The protocol to which the back-end changes.
    upgrade: Option<&'a [u8]>,
    date: bool,
    told_hit: ToldHit,
}

impl<'a> ResponseFacts<'a> {
    fn gather(fields: &[httparse::Header<'a>], kinds: &mut FieldKinds) -> Result<Self, BadResponse> {
        let mut facts = Self::default();
        for (field, kind) in fields.iter().zip(kinds) {
            *kind = classify_common(field.name);
            match kind {
                Field::ContentLength => {
                    let length = content_length(field.value)
                        .ok_or(BadResponse::Wrong("a Content-Length that is no number"))?;
                    // RFC 9110, section 8.6: once and the same is as good.
                    if facts.content_length.replace(length).is_some_and(|before| before != length) {
                        return Err(BadResponse::Wrong("two Content-Length fields that differ"));
                    }
                }
                Field::TransferEncoding => {
                    if facts.chunked || !field.value.eq_ignore_ascii_case(b"chunked") {
                        return Err(BadResponse::Wrong("a Transfer-Encoding other than chunked alone"));
                    }
                    facts.chunked = true;
                }
                Field::Connection if facts.options.add(field.value) => {}
                Field::Connection => {
                    return Err(BadResponse::OverLimit("too many options in the Connection field"));
                }
                Field::HopByHop if field.name.eq_ignore_ascii_case("upgrade") => {
                    facts.upgrade = Some(field.value);
                }
                Field::Date => facts.date = true,
                _ => facts.told_hit.add(field.name, field.value),
            }
        }
        Ok(facts)
    }

    fn framing(&self, status: u16, to_head: bool, version: HttpVersion) -> Result<Framing, BadResponse> {
        if self.chunked && self.content_length.is_some() {
            return Err(BadResponse::Wrong("both Content-Length and Transfer-Encoding"));
        }
        if self.chunked && version == HttpVersion::Http10 {
            return Err(BadResponse::Wrong("a transfer coding in HTTP/1.0"));
        }
        Ok(match self.content_length {
            _ if to_head || status < 200 || status == 204 || status == 304 => Framing::None,
            _ if self.chunked => Framing::Chunked,
            Some(0) => Framing::None,
            Some(length) => Framing::Length(length),
            None => Framing::UntilClose,
        })
    }
}

fn write_line(status: u16, reason: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    push_number(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn write_fields(
    (fields, kinds): (&[httparse::Header<'_>], &FieldKinds),
    facts: &ResponseFacts<'_>,
    (edits, coded): (&[FieldEdit], CodedHead),
    out: &mut Vec<u8>,
) {
    for (field, kind) in fields.iter().zip(kinds) {
        let own = matches!(
            kind,
            Field::ContentLength | Field::TransferEncoding | Field::Connection | Field::HopByHop
        );
        if own || facts.options.nominates(field.name) || is_replaced(edits, field.name) {
            continue;
        }
        if coded.is_coded {
            coded.push(field, out);
        } else {
            push(out, field.name.as_bytes(), field.value);
        }
    }
}

fn write_own(
    (head, length): (&ResponseHead, Option<u64>),
    facts: &ResponseFacts<'_>,
    context: &ResponseContext<'_>,
    out: &mut Vec<u8>,
) {
    let informational = head.status < 200;
    if let Some(length) = length.filter(|_| !informational && head.status != 204) {
        // Also where it only describes a body that is not sent (RFC 9110, section 8.6).
        out.extend_from_slice(b"Content-Length: ");
        push_number(out, length);
        out.extend_from_slice(b"\r\n");
    } else if head.chunked_out {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    if let Some(protocol) = facts.upgrade.filter(|_| head.changes_protocol()) {
        push(out, b"Connection", b"Upgrade");
        push(out, b"Upgrade", protocol);
    }
    if informational {
        return;
    }
    if !facts.date && !is_replaced(context.edits, "Date") {
        // RFC 9110, section 6.6.1.
        push(out, b"Date", context.date);
    }
    match (head.keep_client, context.client) {
        (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        (true, HttpVersion::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (true, HttpVersion::Http11 | HttpVersion::Http2) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> ResponseContext<'static> {
        ResponseContext {
            edits: &[],
            more: &[],
            fields: 100,
            to_head: false,
            upgrade: None,
            client: HttpVersion::Http11,
            keep_client: true,
            compression: None,
            date: b"now",
        }
    }

    fn run(head: &str, context: &ResponseContext<'_>) -> Result<(ResponseHead, String), BadResponse> {
        let mut out = Vec::new();
        let head = rewrite(head.as_bytes(), context, &mut out)?;
        Ok((head, String::from_utf8(out).unwrap()))
    }

    #[test]
    fn framing_by_status_method_and_fields() {
        let framing =
            |head: &str, to_head| run(head, &ResponseContext { to_head, ..context() }).unwrap().0.framing;
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(framing(ok, false), Framing::Length(5));
        assert_eq!(framing(ok, true), Framing::None);
        assert_eq!(framing("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false), Framing::None);
        assert_eq!(framing("HTTP/1.1 204 No Content\r\n\r\n", false), Framing::None);
        assert_eq!(framing("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", false), Framing::Chunked);
        assert_eq!(framing("HTTP/1.1 200 OK\r\n\r\n", false), Framing::UntilClose);
        assert_eq!(framing("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false), Framing::None);
    }

    #[test]
    fn what_the_back_end_tells_of_its_cache_is_kept_and_passed_on() {
        let text = "HTTP/1.1 200 OK\r\nAge: 7\r\nX-Cache: MISS\r\nContent-Length: 0\r\n\r\n";
        let (head, out) = run(text, &context()).unwrap();
        assert!(head.hit == Some(false) && out.contains("X-Cache: MISS\r\n") && out.contains("Age: 7\r\n"));
        assert_eq!(run("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", &context()).unwrap().0.hit, None);
    }

    #[test]
    fn what_the_client_gets() {
        let (head, out) = run(
            "HTTP/1.1 200 OK\r\nServer: s\r\nKeep-Alive: 5\r\nConnection: x-hop\r\nX-Hop: 1\r\nContent-Length: 5\r\n\r\n",
            &context(),
        )
        .unwrap();
        assert_eq!(out, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 5\r\nDate: now\r\n\r\n");
        assert!(head.keep_backend && head.keep_client);
        let (head, out) = run("HTTP/1.0 200 \r\nDate: d\r\n\r\n", &context()).unwrap();
        assert_eq!(out, "HTTP/1.1 200 \r\nDate: d\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert!(!head.keep_backend && head.chunked_out);
        let old = ResponseContext { client: HttpVersion::Http10, ..context() };
        let (head, out) =
            run("HTTP/1.1 200 OK\r\nDate: d\r\nTransfer-Encoding: chunked\r\n\r\n", &old).unwrap();
        assert_eq!(out, "HTTP/1.1 200 OK\r\nDate: d\r\nConnection: close\r\n\r\n");
        assert!(!head.keep_client && !head.chunked_out);
        let (_, out) = run("HTTP/1.1 100 Continue\r\n\r\n", &context()).unwrap();
        assert_eq!(out, "HTTP/1.1 100 Continue\r\n\r\n");
        let (_, out) = run("HTTP/1.1 304 N\r\nDate: d\r\nContent-Length: 9\r\n\r\n", &context()).unwrap();
        assert_eq!(out, "HTTP/1.1 304 N\r\nDate: d\r\nContent-Length: 9\r\n\r\n");
    }

    #[test]
    fn what_is_coded_says_so() {
        let text = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n[compression]\n";
        let config = plimsoll_config::Config::parse(text, "test.toml").unwrap().compression.unwrap();
        let of = |coding, to_head, fields: &str| {
            let compression =
                Some(ResponseCompression { config: &config, coding, has_room: &|| true, request: b"" });
            let context = ResponseContext { compression, to_head, ..context() };
            let begin = "HTTP/1.1 200 OK\r\nDate: d\r\nContent-Type: text/css\r\n";
            let (head, out) = run(&format!("{begin}{fields}\r\n"), &context).unwrap();
            (head.coding, out.strip_prefix(begin).unwrap().to_owned())
        };
        let gzip = Some(ContentCoding::Gzip);
        let fields = "Content-Length: 5000\r\nETag: \"a\"\r\nAccept-Ranges: bytes\r\n";
        let coded = "ETag: W/\"a\"\r\nVary: Accept-Encoding\r\nContent-Encoding: gzip\r\n";
        assert_eq!(of(gzip, false, fields), (gzip, format!("{coded}Transfer-Encoding: chunked\r\n\r\n")));
        assert_eq!(of(gzip, true, fields), (gzip, format!("{coded}\r\n")), "to HEAD the same");
        let plain =
            "ETag: \"a\"\r\nAccept-Ranges: bytes\r\nVary: Accept-Encoding\r\nContent-Length: 5000\r\n\r\n";
        assert_eq!(of(None, false, fields), (None, plain.to_owned()));
        let (_, out) = of(gzip, false, "Vary: cookie, accept-encoding\r\nETag: W/\"a\"\r\n");
        assert!(out.matches("ary:").count() == 1 && out.contains("ETag: W/\"a\"\r\n"), "{out}");
        assert_eq!(of(gzip, false, "Content-Length: 5\r\n"), (None, "Content-Length: 5\r\n\r\n".to_owned()));
    }

    #[test]
    fn only_the_protocol_that_was_asked_for() {
        let context = ResponseContext { upgrade: Some("websocket"), ..context() };
        let of = |told: &str| {
            let head = format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n{told}\r\n");
            run(&head, &context).map(|(_, out)| out)
        };
        assert!(of("Upgrade: WebSocket\r\n").unwrap().contains("Upgrade: WebSocket\r\n"));
        for told in ["Upgrade: h2c\r\n", "Upgrade: websocket, h2c\r\n", ""] {
            assert!(of(told).is_err(), "{told}");
        }
    }

    #[test]
    fn what_is_not_passed_on() {
        for bad in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 101 Switching\r\n\r\n",
            "HTTP/1.1 099 X\r\n\r\n",
            "HTTP/1.1 600 X\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
            "HTTP/2 200 OK\r\n\r\n",
            "hello\r\n\r\n",
        ] {
            assert!(run(bad, &context()).is_err(), "{bad:?}");
        }
    }
}
