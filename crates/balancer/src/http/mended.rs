//! Heads of responses that a parser refuses, though they can be read in one way only.
//!
//! Back-ends are what an operator has, and not all of them can be mended. What is read of a head is written anew for the client, so
//! that nobody behind the front-end sees what was wrong with it.

/// The head with each of these put right, where there is any:
/// - a field that is continued in the next line: blanks in place of the line end (RFC 9112, section 5.2);
/// - control characters in the value of a field: blanks (RFC 9110, section 5.5, demands that of NUL). A carriage return stays, as it may
///   have been meant for a line end;
/// - a version HTTP/1.2 to HTTP/1.9: HTTP/1.1, the highest that is spoken here (RFC 9110, section 2.5).
pub(super) fn mended(head: &[u8]) -> Option<Vec<u8>> {
    let mut out = in_highest_version(head).unwrap_or_else(|| head.to_vec());
    let first_line = memchr::memchr(b'\n', &out)? + 1;
    let second_line = first_line + memchr::memchr(b'\n', &out[first_line..])? + 1;
    // What follows the first line cannot be continued from it.
    for at in second_line..out.len() {
        if out[at - 1] == b'\n' && matches!(out[at], b' ' | b'\t') {
            out[at - 1] = b' ';
            if out[at - 2] == b'\r' {
                out[at - 2] = b' ';
            }
        }
    }
    for line in out[first_line..].split_mut(|&b| b == b'\n') {
        let value = line.iter().position(|&b| b == b':').map_or(line.len(), |colon| colon + 1);
        for byte in line[value..].iter_mut().filter(|b| b.is_ascii_control() && !matches!(b, b'\t' | b'\r')) {
            *byte = b' ';
        }
    }
    (out != head).then_some(out)
}

/// A response in HTTP/1.2 to HTTP/1.9 as one in HTTP/1.1, the highest version that is spoken here (RFC 9110, section 2.5).
pub(crate) fn in_highest_version(response: &[u8]) -> Option<Vec<u8>> {
    let minor = response.strip_prefix(b"HTTP/1.")?;
    matches!(minor, [b'2'..=b'9', b' ' | b'\r' | b'\n', ..]).then(|| [b"HTTP/1.1", &minor[1..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(head: &str) -> Option<String> {
        mended(head.as_bytes()).map(|mended| String::from_utf8(mended).unwrap())
    }

    #[test]
    fn what_has_one_reading_is_put_right() {
        for (head, right) in [
            (
                "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\td\r\nE: f\r\n\r\n",
                "HTTP/1.1 200 OK\r\nA: b   c  \td\r\nE: f\r\n\r\n",
            ),
            ("HTTP/1.1 200 OK\nA: b\n c\n\n", "HTTP/1.1 200 OK\nA: b  c\n\n"),
            ("HTTP/1.1 200 OK\r\nA: \x01b\0c\x7f\td\r\n\r\n", "HTTP/1.1 200 OK\r\nA:  b c \td\r\n\r\n"),
            ("HTTP/1.2 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"),
            ("HTTP/1.9 200\r\n\r\n", "HTTP/1.1 200\r\n\r\n"),
        ] {
            assert_eq!(of(head).as_deref(), Some(right), "{head:?}");
            assert_eq!(of(right), None, "{head:?}");
        }
    }

    #[test]
    fn what_has_none_stays() {
        for head in [
            "",
            "HTTP/1.1 200 OK",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\n A: b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA\x01: b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n",
            "HTTP/1.1 200 \x01\r\n\r\n",
            "HTTP/2.1 200 OK\r\n\r\n",
            "HTTP/1.20 200 OK\r\n\r\n",
        ] {
            assert_eq!(of(head), None, "{head:?}");
        }
    }
}
