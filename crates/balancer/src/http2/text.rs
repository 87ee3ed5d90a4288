//! Heads of messages, as HTTP/1.1 writes them and as the `h2` crate takes them.

use std::mem::MaybeUninit;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use h2::ext::Protocol;
use http::header::{
    CONTENT_LENGTH, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT,
    SEC_WEBSOCKET_KEY, TE, UPGRADE,
};
use http::{Method, Request, Response, StatusCode, Uri, request, response};

use crate::http::fields::{Field, MOST_FIELDS, classify_common, content_length, is_token_byte, push};
use crate::http::host;

/// Fields beyond those of a client that the front-end itself may have added.
const OWN_FIELDS: usize = 32;
const ALL_FIELDS: usize = MOST_FIELDS + OWN_FIELDS;
/// Bytes of a head whose fields share its memory.
const MOST_SHARED_BYTES: usize = 2048;
/// What a server of gRPC says of the end of a call, in trailers, or in a head that ends the answer, too.
const GRPC_STATUS: &str = "grpc-status";

/// How the body of a message is written as HTTP/1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFraming {
    /// There is none.
    None,
    /// As it is, as its length is told.
    Plain,
    /// In chunks.
    Chunked,
    /// As it is, until one side ends: the protocol has changed.
    Tunnel,
}

/// Appends the head of a request of HTTP/2 as HTTP/1.1 writes it. With `ends` no body follows.
///
/// # Errors
/// With what no conversion may hold (RFC 9113, section 8.2.2).
pub(super) fn write_request(
    head: &request::Parts,
    ends: bool,
    out: &mut Vec<u8>,
) -> Result<TextFraming, &'static str> {
    let protocol = head.extensions.get::<Protocol>().map(Protocol::as_str);
    let (method, target) = match (head.uri.path_and_query(), protocol) {
        (Some(target), Some(_)) => (Method::GET.as_str(), target.as_str()),
        _ if head.method == Method::CONNECT => (head.method.as_str(), ""),
        (Some(target), None) => (head.method.as_str(), target.as_str()),
        (None, _) => return Err("a request without a path"),
    };
    let authority = head.uri.authority().map(|authority| authority.as_str());
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    match (target, authority) {
        ("", Some(authority)) => out.extend_from_slice(authority.as_bytes()),
        (target, _) => out.extend_from_slice(target.as_bytes()),
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
    if let Some(authority) = authority {
        push(out, b"Host", authority.as_bytes());
    }
    let mut cookies = head.headers.get_all(COOKIE).iter();
    if let Some(first) = cookies.next() {
        // RFC 9113, section 8.2.3: crumbs of one field.
        out.extend_from_slice(b"Cookie: ");
        out.extend_from_slice(first.as_bytes());
        for crumb in cookies {
            out.extend_from_slice(b"; ");
            out.extend_from_slice(crumb.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }
    for (name, value) in &head.headers {
        // A host that is not the authority is written as well, which makes two: it is refused.
        let told = name == HOST && authority.is_some_and(|a| host::same(a.as_bytes(), value.as_bytes()));
        if !told && name != COOKIE && name != TE && !(protocol.is_some() && name == SEC_WEBSOCKET_KEY) {
            write_field(name, value, out)?;
        }
    }
    if let Some(protocol) = protocol {
        write_upgrade(protocol, out)?;
        out.extend_from_slice(b"\r\n");
        return Ok(TextFraming::Tunnel);
    }
    let framing = framing(&head.headers, ends);
    if framing == TextFraming::Chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Ok(framing)
}

/// Asks for a change of protocol as HTTP/1.1 does (RFC 8441, section 5).
fn write_upgrade(protocol: &str, out: &mut Vec<u8>) -> Result<(), &'static str> {
    // A name, and perhaps a version (RFC 9110, section 7.8).
    if protocol.is_empty() || !protocol.bytes().all(|b| b == b'/' || is_token_byte(b)) {
        return Err("a protocol without a name");
    }
    push(out, b"Connection", b"Upgrade");
    push(out, b"Upgrade", protocol.as_bytes());
    if protocol.eq_ignore_ascii_case("websocket") {
        // It only keeps caches from answering, of which there are none between here and the back-end.
        push(out, SEC_WEBSOCKET_KEY.as_str().as_bytes(), b"cGxpbXNvbGwgc3RyZWFtIQ==");
    }
    Ok(())
}

/// Appends the head of a response of HTTP/2 as HTTP/1.1 writes it. With `ends` no body follows; with `bodiless` there cannot be one.
///
/// # Errors
/// As [`write_request`].
pub(super) fn write_response(
    head: &response::Parts,
    (ends, bodiless): (bool, bool),
    out: &mut Vec<u8>,
) -> Result<TextFraming, &'static str> {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(head.status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(head.status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
    for (name, value) in &head.headers {
        write_field(name, value, out)?;
    }
    let bodiless = bodiless || never_has_body(head.status);
    let framing = if bodiless { TextFraming::None } else { framing(&head.headers, ends) };
    match framing {
        TextFraming::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        TextFraming::None if !bodiless && !head.headers.contains_key(CONTENT_LENGTH) => {
            out.extend_from_slice(b"Content-Length: 0\r\n");
        }
        TextFraming::None | TextFraming::Plain | TextFraming::Tunnel => {}
    }
    out.extend_from_slice(b"\r\n");
    Ok(framing)
}

/// Appends trailer fields.
///
/// # Errors
/// As [`write_request`].
pub(super) fn write_trailers(trailers: &HeaderMap, out: &mut Vec<u8>) -> Result<(), &'static str> {
    trailers.iter().try_for_each(|(name, value)| write_field(name, value, out))
}

fn write_field(name: &HeaderName, value: &HeaderValue, out: &mut Vec<u8>) -> Result<(), &'static str> {
    match classify_common(name.as_str()) {
        Field::Connection | Field::TransferEncoding | Field::HopByHop => {
            Err("a field that belongs to a connection")
        }
        _ => {
            push(out, name.as_str().as_bytes(), value.as_bytes());
            Ok(())
        }
    }
}

/// Whether no response of this status has a body (RFC 9110, section 6.4.1).
fn never_has_body(status: StatusCode) -> bool {
    status.is_informational() || matches!(status.as_u16(), 204 | 304)
}

fn framing(fields: &HeaderMap, ends: bool) -> TextFraming {
    match fields.contains_key(CONTENT_LENGTH) {
        _ if ends => TextFraming::None,
        true => TextFraming::Plain,
        false => TextFraming::Chunked,
    }
}

/// The key that a client of HTTP/1.1 has sent with its wish for a WebSocket.
#[derive(Debug, Clone)]
pub(super) struct WebSocketKey(HeaderValue);

impl WebSocketKey {
    /// What the answer must say (RFC 6455, section 4.2.2).
    fn accept(&self) -> String {
        let mut text = self.0.as_bytes().to_vec();
        text.extend_from_slice(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
        STANDARD.encode(ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &text).as_ref())
    }
}

/// Appends the answer that the protocol changes, as HTTP/1.1 says it.
///
/// # Errors
/// As [`write_request`].
pub(super) fn write_upgraded(
    head: &response::Parts,
    protocol: &Protocol,
    key: Option<&WebSocketKey>,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    out.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\n");
    for (name, value) in &head.headers {
        if name != CONTENT_LENGTH {
            write_field(name, value, out)?;
        }
    }
    push(out, b"Connection", b"Upgrade");
    push(out, b"Upgrade", protocol.as_str().as_bytes());
    if let Some(key) = key {
        push(out, SEC_WEBSOCKET_ACCEPT.as_str().as_bytes(), key.accept().as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// A head that was read, and how the text of its body is framed.
#[derive(Debug)]
pub(super) struct ReadHead<T> {
    pub(super) head: T,
    pub(super) framing: TextFraming,
    /// Bytes of a body that is written as it is.
    pub(super) length: u64,
}

/// Reads the head of a request to a back-end, for this scheme. `None` for what HTTP/2 cannot say.
pub(super) fn read_request(text: &Bytes, scheme: &str) -> Option<ReadHead<Request<()>>> {
    let mut room = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; ALL_FIELDS];
    let mut parsed = httparse::Request::new(&mut []);
    parsed.parse_with_uninit_headers(text, &mut room).ok().filter(|status| status.is_complete())?;
    let (mut fields, framing) = read_fields(text, parsed.headers)?;
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(parsed.method?.as_bytes()).ok()?;
    let upgrade = parsed.headers.iter().find(|field| field.name.eq_ignore_ascii_case(UPGRADE.as_str()));
    if let Some(upgrade) = upgrade {
        *request.method_mut() = Method::CONNECT;
        request.extensions_mut().insert(Protocol::from(std::str::from_utf8(upgrade.value).ok()?));
        if let Some(key) = fields.remove(SEC_WEBSOCKET_KEY) {
            request.extensions_mut().insert(WebSocketKey(key));
        }
    }
    let host = parsed.headers.iter().find(|field| classify_common(field.name) == Field::Host)?.value;
    let mut uri = Uri::builder().scheme(scheme).path_and_query(parsed.path?);
    if !host.is_empty() {
        uri = uri.authority(host);
    }
    *request.uri_mut() = uri.build().ok()?;
    *request.headers_mut() = fields;
    // Trailers are passed on, whoever is told.
    request.headers_mut().insert(TE, HeaderValue::from_static("trailers"));
    let (framing, length) = framing;
    let framing = if upgrade.is_some() { TextFraming::Tunnel } else { framing };
    Some(ReadHead { head: request, framing, length })
}

/// Reads the head of a response to a client, which has no body where it answers HEAD. Where the protocol changes, that is said as with
/// HTTP/2 (RFC 8441, section 5). `None` for what HTTP/2 cannot say.
pub(super) fn read_response(text: &Bytes, to_head: bool) -> Option<ReadHead<Response<()>>> {
    let mut room = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; ALL_FIELDS];
    let mut parsed = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let status = parser.parse_response_with_uninit_headers(&mut parsed, text, &mut room).ok()?;
    if !status.is_complete() {
        return None;
    }
    let (fields, (framing, length)) = read_fields(text, parsed.headers)?;
    let status = StatusCode::from_u16(parsed.code?).ok()?;
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        *response.status_mut() = StatusCode::OK;
        response.headers_mut().remove(SEC_WEBSOCKET_ACCEPT);
        return Some(ReadHead { head: response, framing: TextFraming::Tunnel, length: 0 });
    }
    let framing = if to_head || never_has_body(status) { TextFraming::None } else { framing };
    if framing == TextFraming::None && response.headers().contains_key(GRPC_STATUS) {
        // The length is our own, for clients of HTTP/1.1: here it would be metadata of the call.
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    Some(ReadHead { head: response, framing, length })
}

/// Reads trailer fields that end with an empty line.
pub(super) fn read_trailers(text: &Bytes) -> Option<HeaderMap> {
    let mut room = [httparse::EMPTY_HEADER; ALL_FIELDS];
    match httparse::parse_headers(text, &mut room).ok()? {
        httparse::Status::Complete((_, fields)) => read_fields(text, fields).map(|(fields, _)| fields),
        httparse::Status::Partial => None,
    }
}

/// Fields of `text` without those that belong to a connection, and what the latter say of the body: how it is framed, and its length. Values
/// share the memory of a `text` that is not long: allocating each costs a tenth of what a small response takes, but what shares it keeps all
/// of it, for as long as the connection, where HPACK's table has it.
fn read_fields(text: &Bytes, fields: &[httparse::Header<'_>]) -> Option<(HeaderMap, (TextFraming, u64))> {
    let mut map = HeaderMap::with_capacity(fields.len());
    let mut framing = (TextFraming::None, 0);
    let shares = text.len() <= MOST_SHARED_BYTES;
    for field in fields {
        match classify_common(field.name) {
            Field::TransferEncoding => {
                framing = (TextFraming::Chunked, 0);
                continue;
            }
            Field::Connection | Field::HopByHop | Field::Host => continue,
            Field::ContentLength => {
                let length = content_length(field.value)?;
                framing = if length > 0 { (TextFraming::Plain, length) } else { (TextFraming::None, 0) };
            }
            _ => {}
        }
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        let value = if shares {
            HeaderValue::from_maybe_shared(text.slice_ref(field.value))
        } else {
            HeaderValue::from_bytes(field.value)
        };
        map.append(name, value.ok()?);
    }
    Some((map, framing))
}

#[cfg(test)]
mod tests;
