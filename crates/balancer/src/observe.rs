//! Records each request: counters, and a line of the access log.

use plimsoll_config::ContentCoding;
use plimsoll_observe::line::{RequestLine, Times};

use crate::backend::Backend;
use crate::http::request::RequestHead;
use crate::refusal_reason::RefusalReason;
use plimsoll_observe::Reason;

/// The status that logs show where nobody was left to be answered, as nginx has it.
pub(crate) const CLIENT_GONE: u16 = 499;

/// The line with which a head begins, if it is a request line; `http2` if that was made of a request by HTTP/2.
pub(crate) fn raw_line(head: &[u8], http2: bool) -> Option<RequestLine<'_>> {
    let end = memchr::memchr(b'\n', head)?;
    let line = head[..end].strip_suffix(b"\r").unwrap_or(&head[..end]);
    let mut parts = line.split(|&b| b == b' ');
    let (method, target, version) = (parts.next()?, parts.next()?, parts.next()?);
    let is_version = matches!(version, [b'H', b'T', b'T', b'P', b'/', a, b'.', b]
        if a.is_ascii_digit() && b.is_ascii_digit());
    let version = std::str::from_utf8(version).ok().filter(|_| is_version)?;
    let is_whole = parts.next().is_none() && !method.is_empty() && !target.is_empty();
    let version = if http2 { "HTTP/2.0" } else { version };
    is_whole.then_some(RequestLine { method, target, version })
}

/// One request, at its end.
#[derive(Debug)]
pub(crate) struct RequestRecord<'a> {
    /// The client's address.
    pub(crate) peer: &'a str,
    /// The request; `None` when its head could not be understood.
    pub(crate) head: Option<&'a RequestHead>,
    /// The line with which it began, where no more of it was understood.
    pub(crate) raw_line: Option<RequestLine<'a>>,
    /// The name of the route that has taken it.
    pub(crate) route: Option<&'a str>,
    /// The rewritten head, into which `head` points.
    pub(crate) head_bytes: &'a [u8],
    /// Status of the answer; 499 when the client did not wait for it.
    pub(crate) status: u16,
    /// Bytes of content that the client got.
    pub(crate) content_bytes: u64,
    /// How the front-end has coded it, and how many bytes it had before; `None` where it has not.
    pub(crate) coded: Option<(ContentCoding, u64)>,
    /// Whether the back-end had the content in its cache, where it told.
    pub(crate) hit: Option<bool>,
    /// The back-end that was tried last.
    pub(crate) backend: Option<&'a Backend>,
    /// Why it was chosen.
    pub(crate) reason: Option<Reason>,
    /// Why the front-end refused it, if it did.
    pub(crate) refused: Option<RefusalReason>,
    /// Whether the back-end got the client's connection and answered itself.
    pub(crate) handed_off: bool,
    /// Back-ends that were tried.
    pub(crate) attempts: u32,
    /// Whether it waited for room under the admission limit.
    pub(crate) waited: bool,
    /// When it happened.
    pub(crate) times: Times,
}

impl<'a> RequestRecord<'a> {
    /// A request whose head could not be used.
    pub(crate) fn refused(peer: &'a str, status: u16, times: Times) -> Self {
        Self {
            peer,
            head: None,
            raw_line: None,
            route: None,
            head_bytes: &[],
            status,
            content_bytes: 0,
            coded: None,
            hit: None,
            backend: None,
            reason: None,
            refused: None,
            handed_off: false,
            attempts: 0,
            waited: false,
            times,
        }
    }

    /// Whether the content is the front-end's own, and not of a back-end.
    pub(crate) fn is_own_answer(&self) -> bool {
        self.refused.is_some() && self.times.first_byte.is_none()
    }
}
