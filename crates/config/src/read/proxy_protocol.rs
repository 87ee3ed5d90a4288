//! Checks the PROXY protocol, in both directions, against the mechanism and the rest of a back-end.

use crate::read::peers::{Answering, PlacedListener};
use crate::reader::ConfigReader;
use crate::sections::{HandoffConfig, MechanismKind, ProxyProtocol};

/// Who is told, and who tells, can be told with this mechanism.
pub(super) fn check(
    reader: &mut ConfigReader<'_>,
    (listeners, backends): (&[PlacedListener], &[Answering]),
    (mechanism, handoff): (MechanismKind, Option<&HandoffConfig>),
) {
    for listener in listeners.iter().filter(|l| !l.proxies.is_empty()) {
        let (what, remedy) = match mechanism {
            MechanismKind::Proxy | MechanismKind::Auto => continue,
            MechanismKind::Handoff if handoff.is_none_or(|handoff| handoff.fallback) => continue,
            MechanismKind::Handoff => (
                "a connection on which a proxy tells whose it is cannot be handed off",
                "write `mechanism = \"auto\"`, or `fallback = \"proxy\"` in [handoff]: then it is proxied",
            ),
            MechanismKind::Direct => (
                "a switch at layer 4 passes packets on as they are",
                "remove it, and let the back-ends read the header; or choose another mechanism",
            ),
        };
        let (path, span) = (format!("{}.proxy_protocol", listener.path), listener.proxies_span.clone());
        reader.wrong(&path, span, (what.to_owned(), remedy.to_owned()));
    }
    for backend in backends.iter().filter(|b| b.config.proxy_protocol != ProxyProtocol::None) {
        let (what, remedy) = match mechanism {
            MechanismKind::Direct => (
                "has no effect with `mechanism = \"direct\"`, which passes packets on as they are",
                "remove it: back-ends see the clients' addresses there",
            ),
            _ if backend.config.http2 => (
                "requests of many clients share a connection of HTTP/2",
                "remove it, or `http2`; back-ends get the client's address as `X-Forwarded-For`",
            ),
            _ if mechanism.hands_off() && backend.config.agent.is_some() => (
                "connections that are handed to its agent begin without such a header",
                "remove it, or `agent`",
            ),
            _ => continue,
        };
        reader.wrong(&backend.proxy_path, backend.proxy_span.clone(), (what.to_owned(), remedy.to_owned()));
    }
}
