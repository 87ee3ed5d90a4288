//! HTTP/1.1 messages as bytes: parsing, framing, and the heads that the front-end passes on. No input or
//! output here.
//!
//! Requests: what RFC 9110 and RFC 9112 call invalid or ambiguous is refused, never repaired, because a back-end may repair it in
//! another way. Responses come from the operator's own servers, and clients get them written anew: what can be read in one way only is
//! read (decision 77).

pub(crate) mod accept_encoding;
pub(crate) mod chunked;
pub(crate) mod class;
pub(crate) mod coding;
pub(crate) mod fields;
pub(crate) mod forwarding;
pub(crate) mod head_end;
pub(crate) mod host;
pub(crate) mod key;
pub(crate) mod mended;
pub(crate) mod operation;
pub(crate) mod placed;
pub(crate) mod reframed;
pub(crate) mod request;
mod request_context;
mod request_line;
pub(crate) mod response;
pub(crate) mod route_path;
mod span;
pub(crate) mod target_form;
pub(crate) mod target_hash;
mod told_hit;

use crate::refusal_reason::RefusalReason;

/// How the end of a message's body is found (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// No body.
    None,
    /// This many bytes; more than 0.
    Length(u64),
    /// Chunked transfer coding.
    Chunked,
    /// Until the connection closes; responses only.
    UntilClose,
}

/// The version of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2, which is written out as HTTP/1.1.
    Http2,
}

/// A request that the front-end answers itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestRefusal {
    /// Status code of the answer.
    pub(crate) status: u16,
    /// What is wrong, for the body of the answer and the log.
    pub(crate) why: &'static str,
    /// Under which reason it counts.
    pub(crate) reason: Option<RefusalReason>,
}

impl RequestRefusal {
    pub(crate) const BODY_TOO_SLOW: Self = Self::of(408, "the request body took too long");

    pub(crate) const TOO_LARGE: Self = Self::of(413, "the request's body is larger than allowed");

    pub(crate) const fn bad_request(why: &'static str) -> Self {
        Self::of(400, why)
    }

    pub(crate) const fn of(status: u16, why: &'static str) -> Self {
        Self { status, why, reason: RefusalReason::of_status(status) }
    }

    /// Bytes of the text that says why.
    pub(crate) const fn content_bytes(&self, to_head: bool) -> u64 {
        // It ends with a line feed.
        if to_head || self.status == 204 { 0 } else { self.why.len() as u64 + 1 }
    }

    /// The same, for this reason.
    pub(crate) const fn because(self, reason: RefusalReason) -> Self {
        Self { reason: Some(reason), ..self }
    }
}
