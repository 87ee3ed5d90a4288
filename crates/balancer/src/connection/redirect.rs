//! Sending clients where a route says.

use plimsoll_config::{RedirectPiece, RouteConfig};

use super::respond::{asked_for, begin, end_without_content};
use crate::http::request::Span;
use crate::http::route_path::{raw_length, without_query};

/// Writes an answer to `out` that sends a client where the route says. `head` is the request as it was rewritten, `line` its method and
/// target. False, and nothing useful written, where the host is needed and it names none.
pub(super) fn write(
    route: &RouteConfig,
    (head, line): (&[u8], Span),
    scheme: &str,
    keep: bool,
    date: &[u8],
    out: &mut Vec<u8>,
) -> bool {
    let Some(target) = &route.redirect else { return false };
    let (asked, host) = asked_for(head, line);
    // `*` and a target without a path are for the whole server.
    let path = Some(without_query(asked)).filter(|path| path.starts_with(b"/")).unwrap_or(b"/");
    let length = if route.path == "/" { 0 } else { route.path.len() };
    begin(route.redirect_status, date, out);
    out.extend_from_slice(b"Location: ");
    let start = out.len();
    for piece in &target.0 {
        let bytes: &[u8] = match (piece, host) {
            (RedirectPiece::Text(text), _) => text.as_bytes(),
            (RedirectPiece::Scheme, _) => scheme.as_bytes(),
            (RedirectPiece::Host, Some(host)) => host,
            (RedirectPiece::Host, None) => return false,
            (RedirectPiece::Path, _) => path,
            (RedirectPiece::Rest, _) => &path[raw_length(path, length)..],
            (RedirectPiece::Query, _) => &asked[without_query(asked).len()..],
        };
        // Between two pieces there is one slash; and two at the beginning would be another host.
        let written = &out[start..];
        let is_double = written.ends_with(b"/") && !written.ends_with(b"://");
        let slashes = bytes.iter().take_while(|b| matches!(b, b'/' | b'\\')).count();
        out.extend_from_slice(&bytes[if is_double { slashes } else { 0 }..]);
    }
    out.extend_from_slice(b"\r\n");
    end_without_content(keep, out);
    true
}

#[cfg(test)]
mod tests {
    use plimsoll_config::Config;

    use super::*;

    fn location(path: &str, redirect: &str, target: &str, host: &str) -> Option<String> {
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n\
             [[route]]\nhost = \"old.example\"\npath = \"{path}\"\nredirect = \"{redirect}\"\nredirect_status = 301\n"
        );
        let route = Config::parse(&text, "test.toml").unwrap().routes.remove(0);
        let line = format!("GET {target}");
        let head = format!("{line} HTTP/1.1\r\nHost: {host}\r\nVia: x\r\n\r\n");
        let (span, mut out) = (Span { start: 0, end: line.len() as u32 }, Vec::new());
        let is_written = write(&route, (head.as_bytes(), span), "https", true, b"now", &mut out);
        let text = String::from_utf8(out).unwrap();
        is_written.then(|| {
            let begin = "HTTP/1.1 301 Moved Permanently\r\nDate: now\r\nLocation: ";
            let rest = text.strip_prefix(begin).unwrap_or_else(|| panic!("{text}"));
            rest.strip_suffix("\r\nContent-Length: 0\r\n\r\n").unwrap().to_owned()
        })
    }

    #[test]
    fn urls_from_what_was_asked_for() {
        let of = |path, redirect, target| location(path, redirect, target, "old.example:80").unwrap();
        assert_eq!(of("/", "https://new.example{path}{query}", "/a/b?c=d"), "https://new.example/a/b?c=d");
        assert_eq!(of("/", "https://www.{host}{path}{query}", "/a?c=d"), "https://www.old.example/a?c=d");
        assert_eq!(of("/old", "https://new.example/x{rest}", "/old/a?b"), "https://new.example/x/a");
        assert_eq!(of("/old", "https://new.example{rest}{query}", "/old?b"), "https://new.example?b");
        assert_eq!(of("/old", "/new{rest}", "//%6fld//a"), "/new//a");
        assert_eq!(of("/", "{scheme}://{host}:8443{path}", "/a"), "https://old.example:8443/a");
        assert_eq!(of("/", "https://{host}{path}", "*"), "https://old.example/");
        assert_eq!(of("/", "https://new.example/", "/a"), "https://new.example/");
        assert_eq!(location("/", "https://{host}/", "/", ""), None);
        assert_eq!(location("/", "https://new.example/", "/", "").unwrap(), "https://new.example/");
    }

    #[test]
    fn no_client_says_which_site_it_is() {
        for target in ["//evil.example", "/\\evil.example", "/old//evil.example", "/old/\\evil.example"] {
            let to = location("/old", "/{rest}", target, "a").unwrap();
            assert!(!to.starts_with("//") && !to.starts_with("/\\"), "{to}");
            let to = location("/", "/{path}", target, "a").unwrap();
            assert!(!to.starts_with("//") && !to.starts_with("/\\"), "{to}");
            assert!(location("/", "https://a{path}", target, "a").unwrap().starts_with("https://a/"));
        }
    }
}
