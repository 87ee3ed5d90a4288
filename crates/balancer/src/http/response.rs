//! A back-end's response head: checked, and rewritten for the client in one pass.

use std::mem::MaybeUninit;

use plimsoll_config::{ContentCoding, FieldEdit};

use super::coding::{CodedHead, ResponseCompression};
use super::fields::{
    ConnectionOptions, Field, FieldKinds, MOST_FIELDS, NO_KINDS, classify_common, content_length,
    is_replaced, push, push_edits, trim,
};
use super::mended::mended;
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
    /// Whether the back-end says that it leaves it open, which by HTTP/1.1 it need not say.
    pub(crate) says_kept: bool,
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
        Err(_) => {
            // Once: what has been mended has nothing more to mend.
            let mended = mended(bytes).ok_or(BadResponse::Wrong("a malformed head"))?;
            return rewrite(&mended, context, out);
        }
    }
    let status = response.code.unwrap_or_default();
    let mut kinds = NO_KINDS;
    let facts = ResponseFacts::gather(response.headers, &mut kinds)?;
    // There are none from 600 on, but some servers send them; a client takes them for 500 (RFC 9110, section 15).
    if status < 100 {
        return Err(BadResponse::Wrong("a status code that is none: they are from 100 to 999"));
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
    let framing = facts.framing(status, context.to_head);
    let edits = if status < 200 { &[] } else { context.edits };
    let coded = context.compression.map_or_else(CodedHead::default, |compression| {
        let fields = (&*response.headers, edits);
        CodedHead::of(&compression, (status, framing, context.to_head), fields, facts.length())
    });
    let (chunked_out, keep_client) = match (framing, context.client) {
        _ if coded.coding.is_some() => (framing != Framing::None, context.keep_client),
        (Framing::Chunked | Framing::UntilClose, HttpVersion::Http10) => (false, false),
        (Framing::Chunked | Framing::UntilClose, _) => (true, context.keep_client),
        _ => (false, context.keep_client),
    };
    let keep_backend = framing != Framing::UntilClose && facts.leaves_open(status, version);
    let head = ResponseHead {
        status,
        framing,
        coding: coded.coding,
        hit: facts.told_hit.get(),
        chunked_out,
        keep_backend,
        says_kept: keep_backend && facts.options.keep_alive,
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
    let length = facts.length().filter(|_| !coded.is_coded);
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
                Field::ContentLength => facts.add_length(field.value)?,
                Field::TransferEncoding => facts.add_coding(field.value)?,
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

    /// Adds a `Content-Length`: one number, as often as it likes (RFC 9110, section 8.6).
    fn add_length(&mut self, value: &[u8]) -> Result<(), BadResponse> {
        for member in value.split(|&b| b == b',') {
            let length = content_length(trim(member))
                .ok_or(BadResponse::Wrong("a Content-Length that is no number"))?;
            if self.content_length.replace(length).is_some_and(|before| before != length) {
                return Err(BadResponse::Wrong("two Content-Length that differ"));
            }
        }
        Ok(())
    }

    /// Adds a `Transfer-Encoding`. `identity` was none in RFC 2616, and is still sent.
    fn add_coding(&mut self, value: &[u8]) -> Result<(), BadResponse> {
        if value.eq_ignore_ascii_case(b"identity") {
            return Ok(());
        }
        if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(BadResponse::Wrong("a Transfer-Encoding other than chunked alone"));
        }
        self.chunked = true;
        Ok(())
    }

    /// The length of the content, which a transfer coding overrides (RFC 9112, section 6.3).
    fn length(&self) -> Option<u64> {
        self.content_length.filter(|_| !self.chunked)
    }

    /// Whether the connection goes on, and all would agree where this response ends (RFC 9112, section 6.1).
    fn leaves_open(&self, status: u16, version: HttpVersion) -> bool {
        let old = version == HttpVersion::Http10;
        let disputed = self.chunked && (self.content_length.is_some() || old || status == 204)
            || status == 204 && self.content_length.is_some_and(|length| length > 0);
        !disputed && !self.options.close && (!old || self.options.keep_alive)
    }

    fn framing(&self, status: u16, to_head: bool) -> Framing {
        match self.length() {
            _ if to_head || status < 200 || status == 204 || status == 304 => Framing::None,
            _ if self.chunked => Framing::Chunked,
            Some(0) => Framing::None,
            Some(length) => Framing::Length(length),
            None => Framing::UntilClose,
        }
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
mod tests;
