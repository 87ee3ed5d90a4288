//! A client's request head: checked, and rewritten for a back-end in one pass.

use std::mem::MaybeUninit;
use std::net::SocketAddr;

use plimsoll_config::{ContentCoding, FieldEdit, ForwardedField, UpgradeProtocol};
use plimsoll_policy::{Kind, TargetId};

use super::class::{self, HeadClass};
use super::coding;
use super::fields::{
    ConnectionOptions, Field, FieldKinds, MOST_FIELDS, NO_KINDS, classify, content_length, list, push,
    push_edits, replaces_alike, trim,
};
use super::forwarding::{ForwardedFacts, write_forwarding};
pub(crate) use super::request_context::RequestContext;
use super::request_line::{in_highest_version, refusal, write_line};
pub(crate) use super::span::Span;
use super::target_form::{self, TargetForm};
use super::{Framing, HttpVersion, RequestRefusal, host, key};
use crate::backend_pool::FIRST_POOL;
use crate::routing::Routed;
use plimsoll_observe::line::push_number;

/// What the front-end keeps of a request head once it has been rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestHead {
    /// The number of the pool that takes it.
    pub(crate) pool: u32,
    /// The index of the route that takes it.
    pub(crate) route: u32,
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
    /// The protocol to which the client wants to change on its connection, and may: its place in `limits.upgrades`.
    pub(crate) upgrade: Option<u8>,
    /// How the content of its response is coded for the client, if the front-end codes it.
    pub(crate) coding: Option<ContentCoding>,
    /// Whether the method is HEAD.
    pub(crate) is_head: bool,
    /// Whether the method is GET.
    pub(crate) is_get: bool,
    /// Whether the back-end may as well read what the client sent: nothing in it would have been left out or changed, and no
    /// two readers could disagree about where it ends.
    pub(crate) is_plain: bool,
    /// Whether the method is safe (RFC 9110, section 9.2.1), so that the request may be sent twice.
    pub(crate) is_safe: bool,
    /// What the client says of its session, where the forwarded head may not.
    pub(crate) session: Option<u64>,
    /// The request line in the forwarded head, without its version.
    pub(crate) line: Span,
    /// The value of `Referer` in the forwarded head.
    pub(crate) referer: Span,
    /// The value of `User-Agent` in the forwarded head.
    pub(crate) user_agent: Span,
    /// The value of `X-Forwarded-For` in the forwarded head.
    pub(crate) forwarded_for: Span,
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
        Err(error) => {
            let Some(spoken) = in_highest_version(error, bytes) else { return Err(refusal(error, bytes)) };
            return Ok(RequestHead { is_plain: false, ..rewrite(&spoken, context, out)? });
        }
    }
    let method = request.method.unwrap_or_default().as_bytes();
    let version = match request.version {
        Some(1) if context.http2 => HttpVersion::Http2,
        Some(1) => HttpVersion::Http11,
        _ => HttpVersion::Http10,
    };
    let mut encoded = Vec::new();
    let form = target_form::parse(method, request.path.unwrap_or_default().as_bytes(), &mut encoded)?;
    let mut kinds = NO_KINDS;
    let facts = RequestFacts::gather(request.headers, &mut kinds)?;
    let host = facts.host(&form, version)?;
    let framing = facts.framing(version)?;
    let upgrade = facts.upgrade(context, framing, version).filter(|_| method == b"GET");
    if version == HttpVersion::Http2 && facts.upgrade.is_some() && upgrade.is_none() {
        // It was a CONNECT, which means nothing without the protocol.
        return Err(RequestRefusal::of(501, "a change to a protocol that is not configured"));
    }
    if method == b"OPTIONS" && facts.max_forwards == Some(b"0") {
        return Err(RequestRefusal::of(204, ""));
    }

    let routed = context.routing.map(|routing| routing.find(host, form.path_query, request.headers));
    let (route, routed) = routed.transpose()?.unzip();
    let targets = routed.map_or((context.key, context.hash), |r: &Routed| (&r.config.target.key, &r.hash));
    let compression = routed.map_or(context.compression, |routed| routed.config.compression.as_ref());
    let dynamic = routed.map_or(context.dynamic, |routed| &routed.config.target.dynamic);

    out.clear();
    let mut head = RequestHead {
        pool: routed.map_or(FIRST_POOL, |routed| routed.pool),
        route: route.unwrap_or_default(),
        target: key::target(targets, form.path_query, host, request.headers),
        partition: key::partition(targets, form.path_query, host, request.headers),
        kind: key::kind(dynamic, method, form.path_query),
        class: class::of_head(context.classes, method, form.path_query, request.headers),
        framing,
        version,
        keep_alive: !facts.options.close && (version != HttpVersion::Http10 || facts.options.keep_alive),
        // Clients of HTTP/1.0 do not wait (RFC 9110, section 10.1.1).
        expects_continue: facts.expect && version != HttpVersion::Http10 && framing != Framing::None,
        upgrade: upgrade.map(|(place, _)| place),
        coding: coding::of_client(compression, version, request.headers),
        is_head: method == b"HEAD",
        is_get: method == b"GET",
        is_plain: facts.is_plain(context.trusted) && form.authority.is_none() && !form.was_raw,
        is_safe: matches!(method, b"GET" | b"HEAD" | b"OPTIONS"),
        session: None,
        line: Span::default(),
        referer: Span::default(),
        user_agent: Span::default(),
        forwarded_for: Span::default(),
    };
    let taken = routed.and_then(|routed| routed.config.taken.as_ref());
    write_line(method, &form, taken, out);
    head.line = Span { start: 0, end: out.len() as u32 };
    out.extend_from_slice(b" HTTP/1.1\r\n");
    write_host(host, context, out);
    let edits = taken.map_or(&[][..], |route| &route.request_fields);
    write_fields((request.headers, &kinds, edits), &facts, context, &mut head, out);
    head.forwarded_for = write_forwarding(&facts.forwarded, host, version, context, out);
    write_framing(&head, method, out);
    write_upgrade(upgrade.map(|(_, protocol)| protocol), out);
    out.extend_from_slice(b"\r\n");
    Ok(head)
}

fn write_upgrade(protocol: Option<&[u8]>, out: &mut Vec<u8>) {
    if let Some(protocol) = protocol {
        push(out, b"Connection", b"Upgrade");
        push(out, b"Upgrade", protocol);
    }
}

/// A back-end needs a host by HTTP/1.1: where the client has named none, it is the address to which that has connected.
fn write_host(host: &[u8], context: &RequestContext<'_>, out: &mut Vec<u8>) {
    match host.is_empty().then(|| (context.own)()).flatten() {
        // Without the zone of an IPv6 address, which no host has (RFC 9110, section 7.2).
        Some(own) => push(out, b"Host", SocketAddr::new(own.ip(), own.port()).to_string().as_bytes()),
        None => push(out, b"Host", host),
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
    /// The protocol to which the client wants to change.
    upgrade: Option<&'a [u8]>,
    forwarded: ForwardedFacts<'a>,
    /// There is a field that is not passed on, or that says where a body ends.
    peculiar: bool,
    /// There is a field that only a trusted peer may send.
    is_forwarded: bool,
}

impl<'a> RequestFacts<'a> {
    fn gather(fields: &[httparse::Header<'a>], kinds: &mut FieldKinds) -> Result<Self, RequestRefusal> {
        let mut facts = Self::default();
        for (field, place) in fields.iter().zip(kinds) {
            let value = field.value;
            let kind = classify(field.name);
            *place = kind;
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
                Field::HopByHop if field.name.eq_ignore_ascii_case("upgrade") => facts.upgrade = Some(value),
                _ => facts.forwarded.gather(kind, value),
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
                self.is_forwarded = true;
            }
            _ => {}
        }
    }

    /// The protocol to which the client may change with this request (RFC 9110, section 7.8): its place in the configuration, and as
    /// the client writes it.
    fn upgrade(
        &self,
        context: &RequestContext<'_>,
        framing: Framing,
        version: HttpVersion,
    ) -> Option<(u8, &'a [u8])> {
        let asked = self.upgrade.filter(|_| self.options.nominates("upgrade") && framing == Framing::None)?;
        let known = |known: &UpgradeProtocol| asked.eq_ignore_ascii_case(known.0.as_bytes());
        let place = context.upgrades.iter().position(known).filter(|_| version != HttpVersion::Http10)?;
        Some((u8::try_from(place).ok()?, asked))
    }

    fn is_plain(&self, trusted: bool) -> bool {
        !self.peculiar && (trusted || !self.is_forwarded) && !self.options.nominates_any()
    }

    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), RequestRefusal> {
        if self.chunked {
            return Err(RequestRefusal::bad_request("more than one transfer coding"));
        }
        if !value.eq_ignore_ascii_case(b"chunked") {
            // RFC 9112, section 6.1: 501 for a coding that is not understood. What is spelled almost like chunked is
            // an attempt to have two readers disagree.
            return Err(match is_almost_chunked(value) {
                true => RequestRefusal::bad_request("a Transfer-Encoding that is almost chunked"),
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
            (_, None) if version != HttpVersion::Http10 => Err(RequestRefusal::bad_request("no Host field")),
            (Some(authority), Some(field)) if !host::same(authority, field) => {
                Err(RequestRefusal::bad_request("Host and the authority of the request target disagree"))
            }
            (Some(authority), _) => Ok(authority),
            (None, Some(field)) => Ok(field),
            // HTTP/1.0 need not have one.
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

/// Whether a transfer coding other than `chunked` looks like it, but is not it behind others, as in `gzip, chunked`.
fn is_almost_chunked(value: &[u8]) -> bool {
    let before = match value.iter().rposition(|&b| b == b',') {
        Some(at) if trim(&value[at + 1..]).eq_ignore_ascii_case(b"chunked") => &value[..at],
        _ => return has_chunk(value),
    };
    has_chunk(before) || list(before).next().is_none()
}

fn has_chunk(value: &[u8]) -> bool {
    value.windows(5).any(|w| w.eq_ignore_ascii_case(b"chunk"))
}

/// Writes the fields that are passed on as they are.
fn write_fields(
    (fields, kinds, edits): (&[httparse::Header<'_>], &FieldKinds, &[FieldEdit]),
    facts: &RequestFacts<'_>,
    context: &RequestContext<'_>,
    head: &mut RequestHead,
    out: &mut Vec<u8>,
) {
    for (field, &kind) in fields.iter().zip(kinds) {
        let passes = match kind {
            Field::Other | Field::Via | Field::Cookie | Field::Referer | Field::UserAgent | Field::Date => {
                true
            }
            Field::Expect => head.expects_continue,
            Field::MaxForwards | Field::Host | Field::ContentLength | Field::TransferEncoding => false,
            Field::Connection | Field::HopByHop => false,
            Field::ForwardedFor | Field::ForwardedProto | Field::ForwardedHost => false,
            Field::Forwarded => context.trusted && context.forwarded.field == ForwardedField::Off,
            Field::ForwardedOther => context.trusted,
            Field::ClientCertificate => context.trusted && context.identity.is_none(),
            Field::ForwardedLookalike => false,
        };
        if !passes || facts.options.nominates(field.name) || replaces_alike(edits, field.name) {
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
    push_edits(edits, out);
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

/// How a back-end is told that a body comes in chunks.
pub(super) const CHUNKED_LINE: &[u8] = b"Transfer-Encoding: chunked\r\n";

pub(super) fn write_framing(head: &RequestHead, method: &[u8], out: &mut Vec<u8>) {
    match head.framing {
        Framing::Length(length) => {
            out.extend_from_slice(b"Content-Length: ");
            push_number(out, length);
            out.extend_from_slice(b"\r\n");
        }
        Framing::Chunked => out.extend_from_slice(CHUNKED_LINE),
        // RFC 9110, section 8.6: methods that expect content say that there is none.
        Framing::None if matches!(method, b"POST" | b"PUT" | b"PATCH") => {
            out.extend_from_slice(b"Content-Length: 0\r\n");
        }
        Framing::None | Framing::UntilClose => {}
    }
}

#[cfg(test)]
mod tests;
