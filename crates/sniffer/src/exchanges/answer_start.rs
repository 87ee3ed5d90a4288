//! The start of an HTTP/1 answer, as far as a packet carries it.

use memchr::memmem;

use crate::request_start::MOST_HEAD_BYTES;

/// How the end of an answer's body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyLength {
    /// So many bytes.
    Known(u64),
    /// By chunks.
    Chunks,
    /// By the end of the connection.
    ToEnd,
    /// In a part of the head that is not there.
    NotSeen,
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
        // A line that is cut may tell a number that is cut.
        let whole =
            head_end.map_or_else(|| memchr::memrchr(b'\n', data).map_or(0, |at| at + 1), |end| end + 2);
        let fields = &data[..whole];
        let body = match (content_length(fields), head_end) {
            _ if to_head || matches!(status, 100..=199 | 204 | 304) => BodyLength::Known(0),
            (Some(bytes), _) => BodyLength::Known(bytes),
            (None, None) => BodyLength::NotSeen,
            (None, Some(_)) if is_chunked(fields) => BodyLength::Chunks,
            (None, Some(_)) => BodyLength::ToEnd,
        };
        Some(Self { status, head_bytes: head_end.map(|end| end + 4), body })
    }

    /// Whether more of it may make `data` the beginning of an answer.
    pub(super) fn may_begin(data: &[u8]) -> bool {
        let begin = b"HTTP/1.";
        let shorter = data.len().min(begin.len());
        data[..shorter] == begin[..shorter] && data.len() < begin.len() + 5
    }

    /// Whether another answer to the same request follows.
    pub(super) fn is_interim(&self) -> bool {
        matches!(self.status, 100..=199) && self.status != 101
    }
}

/// Names and values of the fields, which follow the first line.
fn fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.split(|&byte| byte == b'\n').skip(1).filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// RFC 9112, section 6.3: `Transfer-Encoding` overrides `Content-Length`.
pub(super) fn content_length(head: &[u8]) -> Option<u64> {
    let mut length = None;
    for (name, value) in fields(head) {
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return None;
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        }
    }
    length
}

/// Whether the last coding of the body is that of chunks.
fn is_chunked(head: &[u8]) -> bool {
    let codings = fields(head).filter(|(name, _)| name.eq_ignore_ascii_case(b"transfer-encoding")).last();
    codings.is_some_and(|(_, value)| value.to_ascii_lowercase().ends_with(b"chunked"))
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
        assert_eq!(chunked.unwrap().body, BodyLength::Chunks);
        let cut = read("HTTP/1.1 200 OK\r\nX: y\r\n", false).unwrap();
        assert_eq!((cut.head_bytes, cut.body), (None, BodyLength::NotSeen));
        // A number that is cut is none.
        let cut = read("HTTP/1.1 200 OK\r\nContent-Length: 12", false).unwrap();
        assert_eq!((cut.head_bytes, cut.body), (None, BodyLength::NotSeen));
        let cut = read("HTTP/1.1 200 OK\r\nContent-Length: 12\r\nX", false).unwrap();
        assert_eq!((cut.head_bytes, cut.body), (None, BodyLength::Known(12)));
        assert!(read("HTTP/1.1 100 Continue\r\n\r\n", false).unwrap().is_interim());
        // What stands in the body is no field.
        let body = read("HTTP/1.1 200 OK\r\nA: b\r\n\r\nContent-Length: 5\r\n", false).unwrap();
        assert_eq!(body.body, BodyLength::ToEnd);
        for bad in ["", "HTTP/1.1 20", "HTTP/1.1 2x0 OK\r\n", "HTTP/2 200\r\n", "GET / HTTP/1.1\r\n"] {
            assert_eq!(read(bad, false), None, "{bad:?}");
        }
        for (data, may) in
            [("", true), ("HT", true), ("HTTP/1.1 20", true), ("HTTP/1.1 2x0", false), ("x", false)]
        {
            assert_eq!(AnswerStart::may_begin(data.as_bytes()), may, "{data:?}");
        }
    }
}
