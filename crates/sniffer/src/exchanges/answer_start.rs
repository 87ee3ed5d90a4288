//! The start of an HTTP/1 answer, as far as a packet carries it.

use memchr::memmem;

use crate::request_start::MOST_HEAD_BYTES;

/// How the end of an answer's body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyLength {
    /// So many bytes.
    Known(u64),
    /// By chunks, or by the end of the connection.
    Told,
}

/// What the first packet of an answer tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnswerStart {
    pub(super) status: u16,
    /// Bytes of the head; `None` where the packet does not carry all of it.
    pub(super) head_bytes: Option<usize>,
    pub(super) body: BodyLength,
}

impl AnswerStart {
    /// The answer that begins with `data`, to a request whose method was HEAD or another one.
    pub(super) fn read(data: &[u8], to_head: bool) -> Option<Self> {
        let data = &data[..data.len().min(MOST_HEAD_BYTES)];
        let rest = data.strip_prefix(b"HTTP/1.").filter(|rest| rest.len() > 4 && rest[1] == b' ')?;
        let digits = &rest[2..5];
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let status = digits.iter().fold(0, |n, digit| n * 10 + u16::from(digit - b'0'));
        let head_end = memmem::find(data, b"\r\n\r\n");
        let fields = &data[..head_end.map_or(data.len(), |end| end + 2)];
        let empty = to_head || matches!(status, 100..=199 | 204 | 304);
        let body = match (empty, content_length(fields)) {
            (true, _) => BodyLength::Known(0),
            (false, Some(bytes)) => BodyLength::Known(bytes),
            (false, None) => BodyLength::Told,
        };
        Some(Self { status, head_bytes: head_end.map(|end| end + 4), body })
    }

    /// Whether another answer to the same request follows.
    pub(super) fn is_interim(&self) -> bool {
        matches!(self.status, 100..=199) && self.status != 101
    }
}

/// RFC 9112, section 6.3: `Transfer-Encoding` overrides `Content-Length`.
pub(super) fn content_length(head: &[u8]) -> Option<u64> {
    let mut length = None;
    for line in head.split(|&byte| byte == b'\n').skip(1) {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return None;
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        let read = |text: &str, to_head| AnswerStart::read(text.as_bytes(), to_head);
        let ok = read("HTTP/1.1 200 OK\r\ncontent-LENGTH: 17\r\n\r\nbody", false).unwrap();
        assert_eq!((ok.status, ok.head_bytes, ok.body), (200, Some(39), BodyLength::Known(17)));
        assert_eq!(
            read("HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n", true).unwrap().body,
            BodyLength::Known(0)
        );
        assert_eq!(
            read("HTTP/1.0 304 x\r\nContent-Length: 17\r\n\r\n", false).unwrap().body,
            BodyLength::Known(0)
        );
        let chunked =
            read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", false);
        assert_eq!(chunked.unwrap().body, BodyLength::Told);
        let cut = read("HTTP/1.1 200 OK\r\nX: y\r\n", false).unwrap();
        assert_eq!((cut.head_bytes, cut.body), (None, BodyLength::Told));
        assert!(read("HTTP/1.1 100 Continue\r\n\r\n", false).unwrap().is_interim());
        // What stands in the body is no field.
        let body = read("HTTP/1.1 200 OK\r\nA: b\r\n\r\nContent-Length: 5\r\n", false).unwrap();
        assert_eq!(body.body, BodyLength::Told);
        for bad in ["", "HTTP/1.1 20", "HTTP/1.1 2x0 OK\r\n", "HTTP/2 200\r\n", "GET / HTTP/1.1\r\n"] {
            assert_eq!(read(bad, false), None, "{bad:?}");
        }
    }
}
