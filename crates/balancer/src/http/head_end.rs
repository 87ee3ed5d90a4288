//! Where a head ends.

use super::fields::is_token_byte;

/// What [`HeadScan::scan`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadEnd {
    /// The head is this many bytes long, the empty line included.
    At(usize),
    /// More bytes are needed.
    Open,
    /// A line ends in a line feed alone. RFC 9112, section 2.2, lets a recipient accept that. In a request it is refused, as whoever
    /// comes before or behind may see other lines.
    BareLineFeed,
}

/// Whether the first bytes of a head can become a request line, so that it is worth while to wait for the rest. A TLS
/// handshake or the banner of SSH cannot. Looks at each byte once, as they arrive.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestLineScan {
    /// Bytes that have been looked at.
    seen: usize,
    /// The method has ended.
    in_target: bool,
    /// The line has ended.
    done: bool,
}

impl RequestLineScan {
    /// Goes on in `bytes`, which start with the request line and only ever grow. False when it is none.
    pub(crate) fn may_become_request(&mut self, bytes: &[u8]) -> bool {
        while !self.in_target {
            match bytes.get(self.seen) {
                None => return true,
                Some(b' ') if self.seen > 0 => self.in_target = true,
                Some(&b) if is_token_byte(b) => {}
                Some(_) => return false,
            }
            self.seen += 1;
        }
        if !self.done {
            match memchr::memchr(b'\n', &bytes[self.seen..]) {
                None => self.seen = bytes.len(),
                Some(found) => {
                    self.done = true;
                    // A whole line has two blanks and a version.
                    return memchr::memmem::find(&bytes[..self.seen + found], b" HTTP/").is_some();
                }
            }
        }
        true
    }
}

/// Looks for the end of a head in bytes that arrive piece by piece, each byte looked at once.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HeadScan {
    /// Bytes that have been looked at.
    seen: usize,
    /// Start of the line under way.
    line: usize,
    /// A line may end in a line feed alone.
    takes_line_feeds: bool,
}

impl HeadScan {
    /// For the head of a response: its lines may end in a line feed alone.
    pub(crate) fn of_response() -> Self {
        Self { takes_line_feeds: true, ..Self::default() }
    }

    /// Goes on in `bytes`, which start with the head's first line and only ever grow.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> HeadEnd {
        while let Some(found) = memchr::memchr(b'\n', &bytes[self.seen..]) {
            let at = self.seen + found;
            let is_bare = at == self.line || bytes[at - 1] != b'\r';
            if is_bare && !self.takes_line_feeds {
                return HeadEnd::BareLineFeed;
            }
            let empty_line = at - self.line == usize::from(!is_bare);
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
        let at_once = |bytes: &[u8]| RequestLineScan::default().may_become_request(bytes);
        assert!((0..=request.len()).all(|n| at_once(&request[..n])));
        let mut scan = RequestLineScan::default();
        assert!((0..=request.len()).all(|n| scan.may_become_request(&request[..n])));
        assert!(at_once(b"PRI * HTTP/2.0\r\n") && at_once(b"m-search /b  HTTP/1.0\r\n"));
        let tls = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc";
        let bad: [&[u8]; 7] =
            [tls, b"\x16", b"SSH-2.0-OpenSSH_9.2\r\n", b"GET\r\n", b"GET /a\r\n", b" GET", b"\xc3\xa9"];
        for bad in bad {
            assert!(!at_once(bad), "{}", bad.escape_ascii());
            let mut scan = RequestLineScan::default();
            let seen = (0..=bad.len()).position(|n| !scan.may_become_request(&bad[..n]));
            assert!(seen.is_some(), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn a_line_feed_alone_is_refused() {
        for bad in [&b"GET / HTTP/1.1\nHost: a\r\n\r\n"[..], b"\n", b"GET / HTTP/1.1\r\nHost: a\n\n"] {
            assert_eq!(HeadScan::default().scan(bad), HeadEnd::BareLineFeed);
        }
    }

    #[test]
    fn in_a_response_it_ends_a_line() {
        for head in ["HTTP/1.1 200 OK\nA: b\n\n", "HTTP/1.1 200 OK\r\nA: b\n\r\n", "A\n\r\n", "A\r\n\n", "\n"]
        {
            let bytes = format!("{head}\r\n\n");
            for cut in 0..bytes.len() {
                let mut scan = HeadScan::of_response();
                let first = scan.scan(&bytes.as_bytes()[..cut]);
                let end = if first == HeadEnd::Open { scan.scan(bytes.as_bytes()) } else { first };
                assert_eq!(end, HeadEnd::At(head.len()), "{head:?} cut at {cut}");
            }
        }
    }
}
