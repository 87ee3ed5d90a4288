//! Derives method and target from a logged request line.

use std::borrow::Cow;

use crate::line_error::LineError;

/// Target of a logged request: path and query, without scheme, host and fragment, percent-encoding
/// normalised (RFC 3986, section 6.2.2: upper-case digits, unreserved characters decoded).
///
/// `None` for a target that names no document (`*`, `example.org:443`, an empty one).
pub fn target(logged: &[u8], strip_query: bool) -> Option<Cow<'_, [u8]>> {
    let mut target = logged;
    if target.first() != Some(&b'/') {
        target = strip_authority(target)?;
    }
    if let Some(at) = memchr::memchr3(b'#', b'%', b'?', target) {
        if strip_query && target[at] == b'?' {
            target = &target[..at];
        } else {
            return Some(trimmed(target, strip_query));
        }
    }
    if target.is_empty() {
        return Some(Cow::Borrowed(b"/"));
    }
    Some(Cow::Borrowed(target))
}

/// Whether a request line ends with HTTP/1.1.
#[inline]
pub(crate) fn is_http11(request: &[u8]) -> bool {
    request.ends_with(b" HTTP/1.1")
}

/// Method and target of a request line, with or without protocol (HTTP/0.9 has none).
#[inline]
pub(crate) fn split_request_line(request: &[u8]) -> Result<(&[u8], &[u8]), LineError> {
    let space = memchr::memchr(b' ', request).ok_or(LineError::Text("request has no target"))?;
    let (method, rest) = (&request[..space], &request[space..]);
    if method.is_empty() || !method.iter().all(|b| b.is_ascii_uppercase() || matches!(b, b'-' | b'_')) {
        return Err(LineError::Text("request does not start with a method"));
    }
    let target = match memchr::memrchr(b' ', rest) {
        Some(at) if rest[at + 1..].starts_with(b"HTTP/") => &rest[..at],
        _ => rest,
    };
    let target = target.trim_ascii();
    if target.is_empty() {
        return Err(LineError::Text("request has no target"));
    }
    Ok((method, target))
}

/// Host and port of an absolute URL.
pub(crate) fn authority(url: &[u8]) -> Option<&[u8]> {
    let path = strip_authority(url)?;
    let before = &url[..url.len() - path.len()];
    Some(&before[memchr::memrchr(b'/', before)? + 1..])
}

/// The part of an absolute URL after scheme and host.
fn strip_authority(url: &[u8]) -> Option<&[u8]> {
    let scheme_end = memchr::memchr(b':', url)?;
    let scheme_ok = scheme_end > 0
        && url[..scheme_end].iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    let rest = url[scheme_end + 1..].strip_prefix(b"//")?;
    let host_end = rest.iter().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    scheme_ok.then(|| &rest[host_end..])
}

fn trimmed(target: &[u8], strip_query: bool) -> Cow<'_, [u8]> {
    let end = target.iter().position(|&b| b == b'#' || (strip_query && b == b'?')).unwrap_or(target.len());
    let target = &target[..end];
    // A URL such as http://host?query has an empty path, which is the same as "/".
    let rootless = target.first() != Some(&b'/');
    if !rootless && memchr::memchr(b'%', target).is_none() {
        return Cow::Borrowed(target);
    }
    let mut normal = Vec::with_capacity(target.len() + 1);
    if rootless {
        normal.push(b'/');
    }
    let mut rest = target;
    while let Some(at) = memchr::memchr(b'%', rest) {
        normal.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        match (hex(rest.get(1)), hex(rest.get(2))) {
            (Some(high), Some(low)) => {
                let byte = high * 16 + low;
                if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
                    normal.push(byte);
                } else {
                    normal.push(b'%');
                    normal.extend(rest[1..3].iter().map(u8::to_ascii_uppercase));
                }
                rest = &rest[3..];
            }
            // Not an encoding: a stray percent sign stays as it is.
            _ => {
                normal.push(b'%');
                rest = &rest[1..];
            }
        }
    }
    normal.extend_from_slice(rest);
    Cow::Owned(normal)
}

fn hex(digit: Option<&u8>) -> Option<u8> {
    char::from(*digit?).to_digit(16).map(|d| d as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(logged: &str, strip_query: bool) -> Option<String> {
        target(logged.as_bytes(), strip_query).map(|t| String::from_utf8(t.into_owned()).unwrap())
    }

    #[test]
    fn scheme_host_and_fragment_go() {
        for (logged, kept) in [
            ("/a/b.html", "/a/b.html"),
            ("http://www.example.org/a?b", "/a?b"),
            ("HTTPS://example.org:8080", "/"),
            ("http://example.org?x=1", "/?x=1"),
            ("http://example.org#top", "/"),
            ("/a#top", "/a"),
            ("/a?b#c?d", "/a?b"),
            ("/#%", "/"),
        ] {
            assert_eq!(text(logged, false).as_deref(), Some(kept), "{logged}");
        }
        for logged in ["*", "", "example.org:443", "index.html", "://x/y", "a/b:c//d"] {
            assert_eq!(text(logged, false), None, "{logged}");
        }
    }

    #[test]
    fn the_authority_is_host_and_port() {
        assert_eq!(authority(b"http://h:80/a/b"), Some(&b"h:80"[..]));
        assert_eq!(authority(b"http://h"), Some(&b"h"[..]));
        assert_eq!(authority(b"/a//b"), None);
        assert_eq!(authority(b"h:443"), None);
    }

    #[test]
    fn percent_encoding_is_normalised() {
        for (logged, kept) in [
            ("/%7Euser/%7e", "/~user/~"),
            ("/a%2fb%c3%a9", "/a%2Fb%C3%A9"),
            ("/%41%2D%2e%5F%30", "/A-._0"),
            ("/100%", "/100%"),
            ("/%zz%4", "/%zz%4"),
            ("/%2541", "/%2541"),
            ("/a?q=%3d", "/a?q=%3D"),
        ] {
            assert_eq!(text(logged, false).as_deref(), Some(kept), "{logged}");
        }
    }

    #[test]
    fn the_query_goes_only_on_demand() {
        assert_eq!(text("/a?b=1", false).as_deref(), Some("/a?b=1"));
        assert_eq!(text("/a?b=1", true).as_deref(), Some("/a"));
        assert_eq!(text("/%7e?b=1", true).as_deref(), Some("/~"));
        assert_eq!(text("/a#b?c", true).as_deref(), Some("/a"));
        assert_eq!(text("http://h?c", true).as_deref(), Some("/"));
    }
}
