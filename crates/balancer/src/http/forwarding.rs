//! The fields that tell back-ends of the client: `X-Forwarded-*`, `Forwarded` (RFC 7239) and `Via`.

use std::net::IpAddr;

use plimsoll_config::ForwardedField;

use super::HttpVersion;
use super::fields::{Field, is_token_byte, push};
use super::request_context::RequestContext;
use super::span::Span;

/// What a request says of proxies before this one.
#[derive(Default)]
pub(super) struct ForwardedFacts<'a> {
    clients: Vec<&'a [u8]>,
    proto: Option<&'a [u8]>,
    host: Option<&'a [u8]>,
    elements: Vec<&'a [u8]>,
}

impl<'a> ForwardedFacts<'a> {
    /// Takes the value of a field of this kind.
    pub(super) fn gather(&mut self, kind: Field, value: &'a [u8]) {
        match kind {
            _ if value.is_empty() => {}
            Field::ForwardedFor => self.clients.push(value),
            Field::ForwardedProto => self.proto = Some(value),
            Field::ForwardedHost => self.host = Some(value),
            Field::Forwarded => self.elements.push(value),
            _ => {}
        }
    }
}

/// Writes these fields; where the value of `X-Forwarded-For` stands.
pub(super) fn write_forwarding(
    facts: &ForwardedFacts<'_>,
    host: &[u8],
    version: HttpVersion,
    context: &RequestContext<'_>,
    out: &mut Vec<u8>,
) -> Span {
    out.extend_from_slice(b"X-Forwarded-For: ");
    let start = out.len() as u32;
    if context.trusted {
        for value in &facts.clients {
            out.extend_from_slice(value);
            out.extend_from_slice(b", ");
        }
    }
    out.extend_from_slice(context.peer);
    let span = Span { start, end: out.len() as u32 };
    out.extend_from_slice(b"\r\n");
    let proto = facts.proto.filter(|_| context.trusted);
    let own: &[u8] = if context.secure { b"https" } else { b"http" };
    push(out, b"X-Forwarded-Proto", proto.unwrap_or(own));
    let forwarded_host = facts.host.filter(|_| context.trusted).unwrap_or(host);
    if !forwarded_host.is_empty() {
        push(out, b"X-Forwarded-Host", forwarded_host);
    }
    if context.forwarded.field != ForwardedField::Off {
        write_elements(facts, host, own, context, out);
    }
    out.extend_from_slice(context.identity.unwrap_or_default());
    if context.forwarded.via {
        // RFC 9110, section 7.6.3: the version that was received, and a pseudonym.
        out.extend_from_slice(match version {
            HttpVersion::Http2 => b"Via: 2.0 plimsoll\r\n",
            HttpVersion::Http11 => b"Via: 1.1 plimsoll\r\n",
            HttpVersion::Http10 => b"Via: 1.0 plimsoll\r\n",
        });
    }
    span
}

/// The scheme by which the client has asked, as a rewritten head tells the back-end; `None` where a proxy has told of something else.
pub(crate) fn told_scheme(head: &[u8]) -> Option<&'static str> {
    const NAME: &[u8] = b"\r\nX-Forwarded-Proto: ";
    let value = &head[memchr::memmem::find(head, NAME)? + NAME.len()..];
    let value = value.split(|&b| b == b'\r').next()?;
    ["https", "http"].into_iter().find(|scheme| value.eq_ignore_ascii_case(scheme.as_bytes()))
}

/// Writes the field `Forwarded`.
fn write_elements(
    facts: &ForwardedFacts<'_>,
    host: &[u8],
    proto: &[u8],
    context: &RequestContext<'_>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"Forwarded: ");
    if context.trusted && context.forwarded.field == ForwardedField::Append {
        for element in facts.elements.iter().filter(|element| ends_outside_quotes(element)) {
            out.extend_from_slice(element);
            out.extend_from_slice(b", ");
        }
    }
    out.extend_from_slice(b"for=");
    push_node(context.peer, out);
    if let Some(by) = &context.forwarded.by {
        out.extend_from_slice(b";by=");
        push_node(by.as_bytes(), out);
    }
    if !host.is_empty() {
        out.extend_from_slice(b";host=");
        push_value(host, out);
    }
    out.extend_from_slice(b";proto=");
    out.extend_from_slice(proto);
    out.extend_from_slice(b"\r\n");
}

/// Appends an address or a name; an address of IPv6 in brackets (RFC 7239, section 6).
fn push_node(node: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(node).ok().and_then(|text| text.parse().ok()) {
        Some(IpAddr::V6(ip)) => out.extend_from_slice(format!("\"[{ip}]\"").as_bytes()),
        _ => push_value(node, out),
    }
}

/// Appends a token, or else a quoted string.
fn push_value(value: &[u8], out: &mut Vec<u8>) {
    if value.iter().all(|&b| is_token_byte(b)) {
        return out.extend_from_slice(value);
    }
    out.push(b'"');
    for &byte in value {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Whether what follows this is not in a quoted string that it has begun.
fn ends_outside_quotes(value: &[u8]) -> bool {
    let (mut is_within, mut is_escaped) = (false, false);
    for &byte in value {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_within => is_escaped = true,
            b'"' => is_within = !is_within,
            _ => {}
        }
    }
    !is_within
}

#[cfg(test)]
mod tests {
    use plimsoll_config::Forwarded;

    use super::*;

    fn run(forwarded: &Forwarded, (peer, trusted): (&str, bool), host: &str, told: &[&str]) -> Vec<String> {
        let context = RequestContext {
            peer: peer.as_bytes(),
            trusted,
            forwarded,
            secure: true,
            ..RequestContext::plain()
        };
        let mut facts = ForwardedFacts::default();
        told.iter().for_each(|value| facts.gather(Field::Forwarded, value.as_bytes()));
        let mut out = b"GET / HTTP/1.1\r\n".to_vec();
        let span = write_forwarding(&facts, host.as_bytes(), HttpVersion::Http11, &context, &mut out);
        assert_eq!(span.of(&out), peer.as_bytes());
        let text = String::from_utf8(out).unwrap();
        text.lines().filter_map(|line| line.strip_prefix("Forwarded: ").map(str::to_owned)).collect()
    }

    fn with(field: ForwardedField, by: Option<&str>) -> Forwarded {
        Forwarded { field, by: by.map(str::to_owned), ..Forwarded::default() }
    }

    #[test]
    fn the_element_of_the_front_end() {
        let append = with(ForwardedField::Append, None);
        let (v4, v6) = (("192.0.2.1", false), ("2001:db8::1", false));
        assert_eq!(run(&append, v4, "a.example", &[]), ["for=192.0.2.1;host=a.example;proto=https"]);
        let by = with(ForwardedField::Append, Some("_front"));
        assert_eq!(
            run(&by, v6, "[2001:db8::7]:8080", &[]),
            ["for=\"[2001:db8::1]\";by=_front;host=\"[2001:db8::7]:8080\";proto=https"]
        );
        let by = with(ForwardedField::Replace, Some("::1"));
        assert_eq!(run(&by, v4, "", &[]), ["for=192.0.2.1;by=\"[::1]\";proto=https"]);
        assert!(run(&with(ForwardedField::Off, None), v4, "a", &[]).is_empty());
    }

    #[test]
    fn the_scheme_is_that_of_the_connection_or_what_a_trusted_proxy_says() {
        let scheme = |trusted, told: Option<&[u8]>| {
            let forwarded = Forwarded::default();
            let context = RequestContext { trusted, forwarded: &forwarded, ..RequestContext::plain() };
            let facts = ForwardedFacts { proto: told, ..ForwardedFacts::default() };
            let mut out = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
            write_forwarding(&facts, b"a", HttpVersion::Http11, &context, &mut out);
            told_scheme(&out)
        };
        assert_eq!(scheme(true, Some(b"HTTPS")), Some("https"));
        assert_eq!(scheme(false, Some(b"https")), Some("http"));
        assert_eq!(scheme(true, None), Some("http"));
        assert_eq!(scheme(true, Some(b"https, http")), None);
        assert_eq!(told_scheme(b"GET / HTTP/1.1\r\n\r\n"), None);
    }

    #[test]
    fn elements_of_others() {
        let told = ["for=1.1.1.1;host=\"x\\\"y\"", "", "for=_b"];
        let of = |field, trusted| run(&with(field, None), ("192.0.2.1", trusted), "a", &told);
        let own = "for=192.0.2.1;host=a;proto=https";
        assert_eq!(of(ForwardedField::Append, true), [format!("for=1.1.1.1;host=\"x\\\"y\", for=_b, {own}")]);
        assert_eq!(of(ForwardedField::Append, false), [own], "a stranger is not believed");
        assert_eq!(of(ForwardedField::Replace, true), [own]);
        let append = with(ForwardedField::Append, None);
        assert_eq!(
            run(&append, ("192.0.2.1", true), "a", &["for=\"1.1.1.1"]),
            [own],
            "it would take ours for a part of its string"
        );
    }
}
