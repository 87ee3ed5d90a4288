//! Where a head ends.

/// What [`HeadScan::scan`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadEnd {
    /// The head is this many bytes long, the empty line included.
    At(usize),
    /// More bytes are needed.
    Open,
    /// A line ends in a line feed alone (RFC 9112, section 2.2, lets a recipient accept it; ours may see the lines in
    /// another way than the next one, so it is refused).
    BareLineFeed,
}

/// Whether the first bytes of a head can become a request line, so that it is worth while to wait for the rest. A TLS
/// handshake or the banner of SSH cannot.
pub(crate) fn may_become_request(bytes: &[u8]) -> bool {
    let line = memchr::memchr(b'\n', bytes);
    let shown = line.map_or(bytes, |end| bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]));
    let method_end = memchr::memchr(b' ', shown);
    let method = &shown[..method_end.unwrap_or(shown.len())];
    // A lone carriage return may be half of an empty line's or the line's own end.
    let method = if method_end.is_none() { method.strip_suffix(b"\r").unwrap_or(method) } else { method };
    let is_token = method.iter().all(|&b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
    let begins = is_token && (method_end != Some(0));
    // A whole line has two blanks and a version.
    begins && (line.is_none() || shown.windows(6).any(|w| w == b" HTTP/"))
}

/// Looks for the end of a head in bytes that arrive piece by piece, each byte looked at once.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HeadScan {
    /// Bytes that have been looked at.
    seen: usize,
    /// Start of the line under way.
    line: usize,
}

impl HeadScan {
    /// Goes on in `bytes`, which start with the head's first line and only ever grow.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> HeadEnd {
        while let Some(found) = memchr::memchr(b'\n', &bytes[self.seen..]) {
            let at = self.seen + found;
            if at == 0 || bytes[at - 1] != b'\r' {
                return HeadEnd::BareLineFeed;
            }
            let empty_line = at - self.line == 1;
            self.seen = at + 1;
            self.line = at + 1;
            if empty_line {
                return HeadEnd::At(at + 1);
            }
        }
        self.seen = bytes.len();
        HeadEnd::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_empty_line_however_the_bytes_arrive() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
        for cut in 0..head.len() {
            let mut scan = HeadScan::default();
            let first = scan.scan(&head[..cut]);
            let end = if first == HeadEnd::Open { scan.scan(head) } else { first };
            assert_eq!(end, HeadEnd::At(head.len() - 4), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_no_http_is_seen_at_once() {
        let request = b"GET /a HTTP/1.1\r\nHost: a\r\n";
        assert!((0..=request.len()).all(|n| may_become_request(&request[..n])));
        assert!(may_become_request(b"PRI * HTTP/2.0\r\n") && may_become_request(b"\r"));
        let tls = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc";
        let bad: [&[u8]; 7] =
            [tls, b"\x16", b"SSH-2.0-OpenSSH_9.2\r\n", b"GET\r\n", b"GET /a\r\n", b" GET", b"\xc3\xa9"];
        for bad in bad {
            assert!(!may_become_request(bad), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn a_line_feed_alone_is_refused() {
        for bad in [&b"GET / HTTP/1.1\nHost: a\r\n\r\n"[..], b"\n", b"GET / HTTP/1.1\r\nHost: a\n\n"] {
            assert_eq!(HeadScan::default().scan(bad), HeadEnd::BareLineFeed);
        }
    }
}
