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
    fn a_line_feed_alone_is_refused() {
        for bad in [&b"GET / HTTP/1.1\nHost: a\r\n\r\n"[..], b"\n", b"GET / HTTP/1.1\r\nHost: a\n\n"] {
            assert_eq!(HeadScan::default().scan(bad), HeadEnd::BareLineFeed);
        }
    }
}
