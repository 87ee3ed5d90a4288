//! Heads of requests: their end, and the parts that decide how the connection continues.

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};
use plimsoll_observe::line::RequestLine;

/// Most bytes of a head.
pub(super) const MOST_HEAD_BYTES: usize = 64 * 1024;

/// Most fields of a head.
const MOST_FIELDS: usize = 128;

/// What the bytes from a client begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundHead {
    /// A part of a head, or nothing.
    Part,
    /// A request without a body.
    Request(Outline),
    /// A request that is not for the agent.
    Foreign(Foreign),
}

/// A request's head, as far as it concerns the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outline {
    /// Bytes of the head, to its empty line.
    pub(super) bytes: usize,
    /// Whether the client allows the connection to stay open.
    pub(super) keep_alive: bool,
    /// Whether the version is 1.0.
    pub(super) old: bool,
    /// Whether the method is HEAD, to which answers have no content.
    pub(super) is_head: bool,
}

impl Outline {
    /// Whether the content of an answer with this status is the whole document.
    pub(super) fn has_whole(self, status: u16) -> bool {
        status == 200 && !self.is_head
    }
}

/// Why a request is not for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Foreign {
    /// It has a body.
    Body,
    /// It is malformed.
    Malformed,
    /// Its head is too long.
    TooLong,
}

/// Parses the start of `bytes`.
pub(super) fn find(bytes: &[u8]) -> FoundHead {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= MOST_HEAD_BYTES => length,
        Ok(httparse::Status::Partial) if bytes.len() < MOST_HEAD_BYTES => return FoundHead::Part,
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return FoundHead::Foreign(Foreign::TooLong),
        Err(_) => return FoundHead::Foreign(Foreign::Malformed),
    };
    let old = request.version == Some(0);
    let (mut close, mut keep, mut body) = (false, false, false);
    for field in request.headers.iter() {
        let name = field.name;
        if name.eq_ignore_ascii_case("connection") {
            close |= has_token(field.value, b"close");
            keep |= has_token(field.value, b"keep-alive");
        } else if name.eq_ignore_ascii_case("content-length") {
            body |= field.value != b"0";
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            body = true;
        }
    }
    if body || request.method == Some("CONNECT") {
        return FoundHead::Foreign(Foreign::Body);
    }
    FoundHead::Request(Outline {
        bytes: length,
        keep_alive: !close && (!old || keep),
        old,
        is_head: request.method == Some("HEAD"),
    })
}

/// Whether a list of tokens has this one.
pub(super) fn has_token(value: &[u8], token: &[u8]) -> bool {
    value.split(|&byte| byte == b',').any(|item| item.trim_ascii().eq_ignore_ascii_case(token))
}

/// Parses a head for the origin; `None` if it is invalid after all.
pub(super) fn parts(bytes: &[u8]) -> Option<Parts> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    request.parse(bytes).ok()?;
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.method = Method::from_bytes(request.method?.as_bytes()).ok()?;
    parts.uri = request.path?.parse::<Uri>().ok()?;
    parts.version = if request.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
    let mut headers = HeaderMap::with_capacity(request.headers.len());
    for field in request.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    parts.headers = headers;
    Some(parts)
}

/// Gives `take` the first line of a head, and its fields Referer and User-Agent where they are not empty; nothing of what is malformed.
pub(super) fn with_fields<T>(
    bytes: &[u8],
    take: impl FnOnce(Option<RequestLine<'_>>, Option<&[u8]>, Option<&[u8]>) -> T,
) -> T {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let (Ok(_), Some(version)) = (request.parse(bytes), request.version) else {
        return take(None, None, None);
    };
    let version = if version == 0 { "HTTP/1.0" } else { "HTTP/1.1" };
    let line = request.method.zip(request.path).map(|(method, target)| RequestLine {
        method: method.as_bytes(),
        target: target.as_bytes(),
        version,
    });
    let field = |name: &str| {
        let found = request.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        found.map(|field| field.value).filter(|value| !value.is_empty())
    };
    take(line, field("referer"), field("user-agent"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn outline(text: &str) -> Outline {
        match find(text.as_bytes()) {
            FoundHead::Request(outline) => outline,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn requests_and_their_ends() {
        let head = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
        assert_eq!(outline(head).bytes, head.len());
        assert_eq!(outline(&format!("{head}GET /b")).bytes, head.len(), "pipelined");
        for end in 0..head.len() {
            assert_eq!(find(&head.as_bytes()[..end]), FoundHead::Part);
        }
        assert_eq!(parts(head.as_bytes()).unwrap().uri, "/a");
        assert!(outline("HEAD / HTTP/1.1\r\n\r\n").is_head);
        assert_eq!(outline("GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n").bytes, 37);
    }

    #[test]
    fn keep_alive() {
        let keeps =
            |version: &str, field: &str| outline(&format!("GET / HTTP/{version}\r\n{field}\r\n")).keep_alive;
        assert!(keeps("1.1", ""));
        assert!(!keeps("1.1", "Connection: x, Close\r\n"));
        assert!(!keeps("1.0", ""));
        assert!(keeps("1.0", "connection: Keep-Alive\r\n"));
        assert!(!keeps("1.0", "Connection: keep-alive, close\r\n"));
    }

    #[test]
    fn what_is_not_for_the_agent() {
        let foreign = |text: &[u8]| match find(text) {
            FoundHead::Foreign(why) => why,
            other => panic!("{other:?}"),
        };
        for field in ["Content-Length: 5", "Content-Length: 00", "Transfer-Encoding: chunked"] {
            assert_eq!(foreign(format!("POST / HTTP/1.1\r\n{field}\r\n\r\n").as_bytes()), Foreign::Body);
        }
        assert_eq!(foreign(b"CONNECT a:1 HTTP/1.1\r\n\r\n"), Foreign::Body);
        assert_eq!(foreign(b"\x16\x03\x01"), Foreign::Malformed);
        assert_eq!(foreign(b"GET / HTTP/2.0\r\n\r\n"), Foreign::Malformed);
        let long = [b"GET /", &vec![b'a'; MOST_HEAD_BYTES][..]].concat();
        assert_eq!(foreign(&long), Foreign::TooLong);
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(MOST_FIELDS + 1));
        assert_eq!(foreign(many.as_bytes()), Foreign::TooLong);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for head in [bytes.clone(), [b"GET /x HTTP/1.1\r\n", &bytes[..], b"\r\n\r\n"].concat()] {
                if let FoundHead::Request(outline) = find(&head) {
                    prop_assert!(outline.bytes <= head.len());
                    parts(&head[..outline.bytes]);
                }
            }
        }
    }
}
