//! The four forms of a request target (RFC 9112, section 3.2).

use super::{RequestRefusal, host};

/// A request target, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TargetForm<'a> {
    /// Path and query as they are passed on: starts with `/`, or is `*`.
    pub(crate) path_query: &'a [u8],
    /// The authority of an absolute form.
    pub(crate) authority: Option<&'a [u8]>,
    /// An absolute form without a path: `/` goes before `path_query`.
    pub(crate) rootless: bool,
    /// The client has written it with characters that ought to be percent-encoded.
    pub(crate) was_raw: bool,
}

/// Takes the target of a request with this method apart; CONNECT and TRACE are refused. Where a path is written with characters that
/// ought to be percent-encoded, it is encoded in `room`, as browsers do.
pub(crate) fn parse<'a>(
    method: &[u8],
    target: &'a [u8],
    room: &'a mut Vec<u8>,
) -> Result<TargetForm<'a>, RequestRefusal> {
    match method {
        b"CONNECT" => return Err(RequestRefusal::of(501, "CONNECT is not supported")),
        b"TRACE" => return Err(RequestRefusal::of(501, "TRACE is not supported")),
        _ => {}
    }
    if !target.iter().all(|&b| is_plain(b)) {
        if target.contains(&b'#') {
            return Err(RequestRefusal::bad_request("a fragment in the request target"));
        }
        if !target.starts_with(b"/") || target.iter().any(|&b| matches!(b, 0..=b' ' | 0x7f)) {
            return Err(RequestRefusal::bad_request(
                "a character in the request target that has to be percent-encoded",
            ));
        }
        encode(target, room);
        return Ok(TargetForm { path_query: room, authority: None, rootless: false, was_raw: true });
    }
    match target {
        [b'/', ..] => Ok(origin(target)),
        b"*" if method == b"OPTIONS" => Ok(origin(target)),
        _ => absolute(method, target),
    }
}

fn origin(path_query: &[u8]) -> TargetForm<'_> {
    TargetForm { path_query, authority: None, rootless: false, was_raw: false }
}

/// Whether all take this for itself in a target. Some of those that RFC 3986 does not allow are left as browsers leave them.
fn is_plain(byte: u8) -> bool {
    (0x21..0x7f).contains(&byte) && !b"\"<>#".contains(&byte)
}

fn encode(target: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in target {
        if is_plain(byte) {
            out.push(byte);
        } else {
            out.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

fn absolute<'a>(method: &[u8], target: &'a [u8]) -> Result<TargetForm<'a>, RequestRefusal> {
    const NOT_HTTP: RequestRefusal =
        RequestRefusal::bad_request("the request target is neither a path nor an http or https URL");
    // Which of them says nothing here: what is before this front-end may have ended TLS.
    let after = |scheme: &[u8]| {
        target.split_at_checked(scheme.len()).filter(|(start, _)| start.eq_ignore_ascii_case(scheme))
    };
    let Some((_, rest)) = after(b"http://").or_else(|| after(b"https://")) else {
        return Err(NOT_HTTP);
    };
    let end = rest.iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, path_query) = rest.split_at(end);
    if !host::is_valid(authority) {
        return Err(RequestRefusal::bad_request("the authority in the request target is not a host"));
    }
    // RFC 9112, section 3.2.4: OPTIONS of a whole server.
    let path_query = if path_query.is_empty() && method == b"OPTIONS" { b"*" } else { path_query };
    let rootless = !matches!(path_query.first(), Some(b'/' | b'*'));
    Ok(TargetForm { path_query, authority: Some(authority), rootless, was_raw: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms() {
        let status = |m: &str, t: &str| {
            parse(m.as_bytes(), t.as_bytes(), &mut Vec::new()).map_err(|refusal| refusal.status).err()
        };
        let of = |m: &str, t: &str| {
            let mut room = Vec::new();
            let form = parse(m.as_bytes(), t.as_bytes(), &mut room).unwrap();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            (form.authority.map(text), text(form.path_query), form.rootless, form.was_raw)
        };
        let plain = |authority: Option<&str>, path: &str, rootless| {
            (authority.map(str::to_owned), path.to_owned(), rootless, false)
        };
        assert_eq!(of("GET", "/a?b"), plain(None, "/a?b", false));
        assert_eq!(of("GET", "/a?{b}|c^`\\[]'%zz"), plain(None, "/a?{b}|c^`\\[]'%zz", false));
        assert_eq!(of("GET", "HTTP://Host:81/a?b"), plain(Some("Host:81"), "/a?b", false));
        assert_eq!(of("GET", "http://host?q"), plain(Some("host"), "?q", true));
        assert_eq!(of("GET", "https://host/a"), plain(Some("host"), "/a", false));
        assert_eq!(of("OPTIONS", "*"), plain(None, "*", false));
        assert_eq!(of("OPTIONS", "http://a"), plain(Some("a"), "*", false));
        for bad in ["*", "", "a/b", "ftp://h/", "http://u@h/", "http:///x", "https:/h/"] {
            assert_eq!(status("GET", bad), Some(400), "{bad}");
        }
        for bad in ["/a#b", "/\"#", "http://h/\"", "\u{e9}", "/\"\u{7f}", "/a b", "/\u{1}"] {
            assert_eq!(status("GET", bad), Some(400), "{bad}");
        }
        assert_eq!(status("CONNECT", "h:443"), Some(501));
        assert_eq!(status("TRACE", "/"), Some(501));
    }

    #[test]
    fn what_browsers_would_have_encoded_is_encoded() {
        for (raw, encoded) in [
            ("/sch\u{f6}n?a=\u{20ac}%20", "/sch%C3%B6n?a=%E2%82%AC%20"),
            ("/?q={\"a\":<1>}", "/?q={%22a%22:%3C1%3E}"),
        ] {
            let mut room = Vec::new();
            let form = parse(b"GET", raw.as_bytes(), &mut room).unwrap();
            assert_eq!((form.path_query, form.was_raw), (encoded.as_bytes(), true));
        }
    }
}
