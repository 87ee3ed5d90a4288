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
}

/// Takes the target of a request with this method apart.
pub(crate) fn parse<'a>(method: &[u8], target: &'a [u8]) -> Result<TargetForm<'a>, RequestRefusal> {
    if method == b"CONNECT" {
        return Err(RequestRefusal::of(501, "CONNECT is not supported"));
    }
    if let Some(&bad) = target.iter().find(|&&b| !(0x21..0x7f).contains(&b) || b"\"<>#".contains(&b)) {
        return Err(match bad {
            b'#' => RequestRefusal::bad_request("a fragment in the request target"),
            _ => RequestRefusal::bad_request(
                "a character in the request target that has to be percent-encoded",
            ),
        });
    }
    match target {
        [b'/', ..] => Ok(TargetForm { path_query: target, authority: None, rootless: false }),
        b"*" if method == b"OPTIONS" => {
            Ok(TargetForm { path_query: target, authority: None, rootless: false })
        }
        _ => absolute(method, target),
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
    Ok(TargetForm { path_query, authority: Some(authority), rootless })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms() {
        let form = |m: &str, t: &'static str| parse(m.as_bytes(), t.as_bytes());
        assert_eq!(form("GET", "/a?b").unwrap().path_query, b"/a?b");
        let absolute = form("GET", "HTTP://Host:81/a?b").unwrap();
        assert_eq!((absolute.authority, absolute.path_query), (Some(&b"Host:81"[..]), &b"/a?b"[..]));
        assert!(form("GET", "http://host?q").unwrap().rootless);
        let absolute = form("GET", "https://host/a").unwrap();
        assert_eq!((absolute.authority, absolute.path_query), (Some(&b"host"[..]), &b"/a"[..]));
        assert_eq!(form("OPTIONS", "*").unwrap().path_query, b"*");
        assert_eq!(form("OPTIONS", "http://a").unwrap().path_query, b"*");
        for bad in
            ["*", "", "a/b", "ftp://h/", "http://u@h/", "http:///x", "/a#b", "/\"", "/\u{e9}", "https:/h/"]
        {
            assert_eq!(form("GET", bad).unwrap_err().status, 400, "{bad}");
        }
        assert_eq!(form("CONNECT", "h:443").unwrap_err().status, 501);
    }
}
