//! A client's request head: checked, and rewritten for a back-end in one pass.

use std::mem::MaybeUninit;

use plimsoll_config::{ClassesConfig, DynamicPattern, TargetKey};
use plimsoll_policy::{Kind, TargetId};

use super::class::{self, HeadClass};
use super::fields::{ConnectionOptions, Field, classify, content_length, push};
use super::target_form::{self, TargetForm};
use super::target_hash::TargetHash;
use super::{Framing, HttpVersion, RequestRefusal, host, key};
use plimsoll_observe::line::push_number;

/// The most fields that a head can be configured to have.
pub(crate) const MOST_FIELDS: usize = 256;

/// What rewriting needs to know besides the bytes.
pub(crate) struct RequestContext<'a> {
    /// What a policy takes for the target.
    pub(crate) key: &'a TargetKey,
    /// How its identity is computed.
    pub(crate) hash: &'a TargetHash,
    /// Which requests are computed, whatever their method.
    pub(crate) dynamic: &'a [DynamicPattern],
    /// Which classes requests have.
    pub(crate) classes: Option<&'a ClassesConfig>,
    /// Fields allowed.
    pub(crate) fields: usize,
    /// The peer's address as text.
    pub(crate) peer: &'a [u8],
    /// Whether the peer's forwarding fields are believed.
    pub(crate) trusted: bool,
    /// Whether the request has come under TLS.
    pub(crate) secure: bool,
    /// Fields that say who the client is, as its certificate says.
    pub(crate) identity: Option<&'a [u8]>,
}

/// A part of the forwarded head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end as usize]
    }
}

/// What the front-end keeps of a request head once it has been rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestHead {
    /// The target.
    pub(crate) target: TargetId,
    /// Which part of the data it is for; 0 where there are no parts.
    pub(crate) partition: u16,
    /// Whether a stored document is asked for.
    pub(crate) kind: Kind,
    /// Its class.
    pub(crate) class: HeadClass,
    /// How the body is framed.
    pub(crate) framing: Framing,
    /// The client's version.
    pub(crate) version: HttpVersion,
    /// Whether the client wants the connection kept.
    pub(crate) keep_alive: bool,
    /// Whether the client waits for `100 Continue`.
    pub(crate) expects_continue: bool,
    /// Whether the method is HEAD.
    pub(crate) is_head: bool,
    /// Whether the method is GET.
    pub(crate) is_get: bool,
    /// Whether the back-end may as well read what the client sent: nothing in it would have been left out or changed, and no
    /// two readers could disagree about where it ends.
    pub(crate) is_plain: bool,
    /// Whether the method is safe (RFC 9110, section 9.2.1), so that the request may be sent twice.
    pub(crate) is_safe: bool,
    /// The request line in the forwarded head, without its version.
    pub(crate) line: Span,
    /// The value of `Referer` in the forwarded head.
    pub(crate) referer: Span,
    /// The value of `User-Agent` in the forwarded head.
    pub(crate) user_agent: Span,
}

/// Reads a complete head and writes what a back-end gets to `out`, which is cleared before. The body's framing fields
/// are written anew from what was understood.
pub(crate) fn rewrite(
    bytes: &[u8],
    context: &RequestContext<'_>,
    out: &mut Vec<u8>,
) -> Result<RequestHead, RequestRefusal> {
    let mut room = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(bytes, &mut room[..context.fields.min(MOST_FIELDS)]) {
        Ok(httparse::Status::Complete(n)) if n == bytes.len() => {}
        Ok(_) => return Err(RequestRefusal::bad_request("the request head does not end where it should")),
        Err(error) => return Err(refusal(error)),
    }
    let method = request.method.unwrap_or_default().as_bytes();
    let version = if request.version == Some(1) { HttpVersion::Http11 } else { HttpVersion::Http10 };
    let form = target_form::parse(method, request.path.unwrap_or_default().as_bytes())?;
    let facts = RequestFacts::gather(request.headers)?;
    let host = facts.host(&form, version)?;
    let framing = facts.framing(version)?;
    if method == b"TRACE" {
        return Err(RequestRefusal::of(501, "TRACE is not supported"));
    }
    if method == b"OPTIONS" && facts.max_forwards == Some(b"0") {
        return Err(RequestRefusal::of(204, ""));
    }

    out.clear();
    let mut head = RequestHead {
        target: key::target((context.key, context.hash), form.path_query, host, request.headers),
        partition: key::partition((context.key, context.hash), form.path_query, host, request.headers),
        kind: key::kind(context.dynamic, method, form.path_query),
        class: class::of_head(context.classes, method, form.path_query, request.headers),
        framing,
        version,
        keep_alive: !facts.options.close && (version == HttpVersion::Http11 || facts.options.keep_alive),
        // Only HTTP/1.1 clients wait (RFC 9110, section 10.1.1).
        expects_continue: facts.expect && version == HttpVersion::Http11 && framing != Framing::None,
        is_head: method == b"HEAD",
        is_get: method == b"GET",
        is_plain: facts.is_plain(context.trusted) && form.authority.is_none() && !form.rootless,
        is_safe: matches!(method, b"GET" | b"HEAD" | b"OPTIONS"),
        line: Span::default(),
        referer: Span::default(),
        user_agent: Span::default(),
    };
    write_line(method, &form, &mut head, out);
    push(out, b"Host", host);
    write_fields(request.headers, &facts, context, &mut head, out);
    write_forwarding(&facts, host, version, context, out);
    write_framing(&head, method, out);
    out.extend_from_slice(b"\r\n");
    Ok(head)
}

fn refusal(error: httparse::Error) -> RequestRefusal {
    match error {
        httparse::Error::TooManyHeaders => RequestRefusal::of(431, "too many fields"),
        httparse::Error::Version => RequestRefusal::of(505, "only HTTP/1.0 and HTTP/1.1 are spoken here"),
        httparse::Error::HeaderName => {
            RequestRefusal::bad_request("a field name that is not a token right before a colon")
        }
        httparse::Error::HeaderValue => RequestRefusal::bad_request("a control character in a field"),
        httparse::Error::NewLine => RequestRefusal::bad_request("a carriage return without a line feed"),
        httparse::Error::Token => {
            RequestRefusal::bad_request("a request line that is not method, target and version")
        }
        httparse::Error::Status => RequestRefusal::bad_request("a malformed head"),
    }
}

/// What the fields say, as far as it concerns the front-end.
#[derive(Default)]
struct RequestFacts<'a> {
    content_length: Option<u64>,
    chunked: bool,
    host: Option<&'a [u8]>,
    options: ConnectionOptions<'a>,
    expect: bool,
    max_forwards: Option<&'a [u8]>,
    forwarded_for: Vec<&'a [u8]>,
    forwarded_proto: Option<&'a [u8]>,
    forwarded_host: Option<&'a [u8]>,
    /// There is a field that is not passed on, or that says where a body ends.
    peculiar: bool,
    /// There is a field that only a trusted peer may send.
    forwarded: bool,
}

impl<'a> RequestFacts<'a> {
    fn gather(fields: &[httparse::Header<'a>]) -> Result<Self, RequestRefusal> {
        let mut facts = Self::default();
        for field in fields {
            let value = field.value;
            let kind = classify(field.name);
            facts.note(kind, field.name);
            match kind {
                Field::Host => {
                    if facts.host.replace(value).is_some() {
                        return Err(RequestRefusal::bad_request("more than one Host field"));
                    }
                    if !host::is_valid(value) {
                        return Err(RequestRefusal::bad_request("the Host field is not a host"));
                    }
                }
                Field::ContentLength => {
                    let length = content_length(value)
                        .ok_or(RequestRefusal::bad_request("a Content-Length that is not a number"))?;
                    if facts.content_length.replace(length).is_some() {
                        return Err(RequestRefusal::bad_request("more than one Content-Length field"));
                    }
                }
                Field::TransferEncoding => facts.transfer_encoding(value)?,
                Field::Connection if facts.options.add(value) => {}
                Field::Connection => {
                    return Err(RequestRefusal::of(431, "too many options in the Connection field"));
                }
                Field::Expect => {
                    if !value.eq_ignore_ascii_case(b"100-continue") {
                        return Err(RequestRefusal::of(417, "an expectation other than 100-continue"));
                    }
                    facts.expect = true;
                }
                Field::MaxForwards => facts.max_forwards = Some(value),
                Field::ForwardedFor if value.is_empty() => {}
                Field::ForwardedFor => facts.forwarded_for.push(value),
                Field::ForwardedProto => facts.forwarded_proto = Some(value),
                Field::ForwardedHost => facts.forwarded_host = Some(value),
                _ => {}
            }
        }
        Ok(facts)
    }

    fn note(&mut self, kind: Field, name: &str) {
        match kind {
            Field::ContentLength | Field::TransferEncoding | Field::Expect | Field::MaxForwards => {
                self.peculiar = true;
            }
            Field::ForwardedLookalike => self.peculiar = true,
            Field::HopByHop => self.peculiar |= !name.eq_ignore_ascii_case("keep-alive"),
            Field::ForwardedFor
            | Field::ForwardedProto
            | Field::ForwardedHost
            | Field::Forwarded
            | Field::ForwardedOther
            | Field::ClientCertificate => {
                self.forwarded = true;
            }
            _ => {}
        }
    }

    fn is_plain(&self, trusted: bool) -> bool {
        !self.peculiar && (trusted || !self.forwarded) && !self.options.nominates_any()
    }

    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), RequestRefusal> {
        if self.chunked {
            return Err(RequestRefusal::bad_request("more than one transfer coding"));
        }
        if !value.eq_ignore_ascii_case(b"chunked") {
            // RFC 9112, section 6.1: 501 for a coding that is not understood. What is spelled almost like chunked is
            // an attempt to have two readers disagree.
            return Err(match value.windows(5).any(|w| w.eq_ignore_ascii_case(b"chunk")) {
                true => RequestRefusal::bad_request("a Transfer-Encoding other than chunked alone"),
                false => RequestRefusal::of(501, "a transfer coding other than chunked"),
            });
        }
        self.chunked = true;
        Ok(())
    }

    /// The host that the request is for (RFC 9112, section 3.2).
    fn host<'b>(&self, form: &TargetForm<'b>, version: HttpVersion) -> Result<&'b [u8], RequestRefusal>
    where
        'a: 'b,
    {
        match (form.authority, self.host) {
            (_, None) if version == HttpVersion::Http11 => Err(RequestRefusal::bad_request("no Host field")),
            (Some(authority), Some(field)) if !host::same(authority, field) => {
                Err(RequestRefusal::bad_request("Host and the authority of the request target disagree"))
            }
            (Some(authority), _) => Ok(authority),
            (None, Some(field)) => Ok(field),
            // HTTP/1.0 has no Host; HTTP/1.1 towards the back-end needs one (an empty one when there is no name).
            (None, None) => Ok(b""),
        }
    }

    fn framing(&self, version: HttpVersion) -> Result<Framing, RequestRefusal> {
        match (self.chunked, self.content_length) {
            (true, Some(_)) => Err(RequestRefusal::bad_request("both Content-Length and Transfer-Encoding")),
            (true, None) if version == HttpVersion::Http10 => {
                Err(RequestRefusal::bad_request("a transfer coding in HTTP/1.0"))
            }
            (true, None) => Ok(Framing::Chunked),
            (false, None | Some(0)) => Ok(Framing::None),
            (false, Some(length)) => Ok(Framing::Length(length)),
        }
    }
}

fn write_line(method: &[u8], form: &TargetForm<'_>, head: &mut RequestHead, out: &mut Vec<u8>) {
    out.extend_from_slice(method);
    out.push(b' ');
    if form.rootless {
        out.push(b'/');
    }
    out.extend_from_slice(form.path_query);
    head.line = Span { start: 0, end: out.len() as u32 };
    out.extend_from_slice(b" HTTP/1.1\r\n");
}

/// Writes the fields that are passed on as they are.
fn write_fields(
    fields: &[httparse::Header<'_>],
    facts: &RequestFacts<'_>,
    context: &RequestContext<'_>,
    head: &mut RequestHead,
    out: &mut Vec<u8>,
) {
    for field in fields {
        let kind = classify(field.name);
        let passes = match kind {
            Field::Other | Field::Via | Field::Cookie | Field::Referer | Field::UserAgent | Field::Date => {
                true
            }
            Field::Expect => head.expects_continue,
            Field::MaxForwards | Field::Host | Field::ContentLength | Field::TransferEncoding => false,
            Field::Connection | Field::HopByHop => false,
            Field::ForwardedFor | Field::ForwardedProto | Field::ForwardedHost => false,
            Field::Forwarded | Field::ForwardedOther => context.trusted,
            Field::ClientCertificate => context.trusted && context.identity.is_none(),
            Field::ForwardedLookalike => false,
        };
        if !passes || facts.options.nominates(field.name) {
            continue;
        }
        push(out, field.name.as_bytes(), field.value);
        let end = out.len() as u32 - 2;
        let span = Span { start: end - field.value.len() as u32, end };
        match kind {
            Field::Referer => head.referer = span,
            Field::UserAgent => head.user_agent = span,
            _ => {}
        }
    }
    if let Some(hops) = facts.max_forwards {
        // RFC 9110, section 7.6.2: counted down by every intermediary; what is no number is passed on.
        match content_length(hops) {
            Some(n) => {
                out.extend_from_slice(b"Max-Forwards: ");
                push_number(out, n.saturating_sub(1));
                out.extend_from_slice(b"\r\n");
            }
            None => push(out, b"Max-Forwards", hops),
        }
    }
}

fn write_forwarding(
    facts: &RequestFacts<'_>,
    host: &[u8],
    version: HttpVersion,
    context: &RequestContext<'_>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"X-Forwarded-For: ");
    if context.trusted {
        for value in &facts.forwarded_for {
            out.extend_from_slice(value);
            out.extend_from_slice(b", ");
        }
    }
    out.extend_from_slice(context.peer);
    out.extend_from_slice(b"\r\n");
    let proto = facts.forwarded_proto.filter(|_| context.trusted);
    let own: &[u8] = if context.secure { b"https" } else { b"http" };
    push(out, b"X-Forwarded-Proto", proto.unwrap_or(own));
    let forwarded_host = facts.forwarded_host.filter(|_| context.trusted).unwrap_or(host);
    if !forwarded_host.is_empty() {
        push(out, b"X-Forwarded-Host", forwarded_host);
    }
    out.extend_from_slice(context.identity.unwrap_or_default());
    // RFC 9110, section 7.6.3: the version that was received, and a pseudonym.
    out.extend_from_slice(match version {
        HttpVersion::Http11 => b"Via: 1.1 plimsoll\r\n",
        HttpVersion::Http10 => b"Via: 1.0 plimsoll\r\n",
    });
}

fn write_framing(head: &RequestHead, method: &[u8], out: &mut Vec<u8>) {
    match head.framing {
        Framing::Length(length) => {
            out.extend_from_slice(b"Content-Length: ");
            push_number(out, length);
            out.extend_from_slice(b"\r\n");
        }
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        // RFC 9110, section 8.6: methods that expect content say that there is none.
        Framing::None if matches!(method, b"POST" | b"PUT" | b"PATCH") => {
            out.extend_from_slice(b"Content-Length: 0\r\n");
        }
        Framing::None | Framing::UntilClose => {}
    }
}

#[cfg(test)]
mod tests;
