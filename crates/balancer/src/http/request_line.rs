//! The first line of a request's head: what is wrong with one, and how a back-end gets it.

use plimsoll_config::RouteConfig;

use super::RequestRefusal;
use super::route_path::raw_length;
use super::target_form::TargetForm;

/// Why a head that is not understood is refused.
pub(super) fn refusal(error: httparse::Error, head: &[u8]) -> RequestRefusal {
    match error {
        httparse::Error::TooManyHeaders => RequestRefusal::of(431, "too many fields"),
        httparse::Error::Version if has_three_parts(head) => {
            RequestRefusal::of(505, "only HTTP/1.0 and HTTP/1.1 are spoken here")
        }
        httparse::Error::HeaderName => {
            RequestRefusal::bad_request("a field name that is not a token right before a colon")
        }
        httparse::Error::HeaderValue => RequestRefusal::bad_request("a control character in a field"),
        httparse::Error::NewLine => RequestRefusal::bad_request("a carriage return without a line feed"),
        // With a blank in the target, or a header of the PROXY protocol, the version is not where it was looked for.
        httparse::Error::Token | httparse::Error::Version => {
            RequestRefusal::bad_request("a request line that is not method, target and version")
        }
        httparse::Error::Status => RequestRefusal::bad_request("a malformed head"),
    }
}

/// The head of a request in HTTP/1.2 to HTTP/1.9 as one in HTTP/1.1, the highest version that is spoken here (RFC 9110, section 2.5).
pub(super) fn in_highest_version(error: httparse::Error, head: &[u8]) -> Option<Vec<u8>> {
    let end = memchr::memchr(b'\r', head).filter(|_| error == httparse::Error::Version)?;
    let minor = head[..end].last().filter(|minor| (b'2'..=b'9').contains(minor))?;
    head[..end].strip_suffix(&[*minor])?.ends_with(b" HTTP/1.").then(|| {
        let mut head = head.to_vec();
        head[end - 1] = b'1';
        head
    })
}

fn has_three_parts(head: &[u8]) -> bool {
    let line = head.split(|&b| b == b'\n').next().unwrap_or_default();
    line.split(|&b| b == b' ').filter(|part| !part.is_empty()).count() == 3
}

/// Writes method and target, with the prefix that a route has for its path.
pub(super) fn write_line(
    method: &[u8],
    form: &TargetForm<'_>,
    route: Option<&RouteConfig>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(method);
    out.push(b' ');
    let path_query = form.path_query;
    match route.and_then(|route| Some((route, route.replace_prefix.as_deref()?))) {
        // The path is `/`, which is only below a route of all paths.
        Some((_, prefix)) if form.rootless => {
            out.extend_from_slice(prefix.trim_end_matches('/').as_bytes());
            out.push(b'/');
            out.extend_from_slice(path_query);
        }
        Some((route, prefix)) if path_query.starts_with(b"/") => {
            let length = if route.path == "/" { 0 } else { route.path.len() };
            let rest = &path_query[raw_length(path_query, length)..];
            // Between prefix and rest there is one slash, whoever has it.
            let prefix = if rest.starts_with(b"/") { prefix.trim_end_matches('/') } else { prefix };
            out.extend_from_slice(prefix.as_bytes());
            out.extend_from_slice(rest);
        }
        _ => {
            if form.rootless {
                out.push(b'/');
            }
            out.extend_from_slice(path_query);
        }
    }
}
