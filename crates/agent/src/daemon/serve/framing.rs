//! Finds the end of responses (RFC 9112, section 6.3) without changing them.

use super::super::head::has_token;

/// Most bytes of a response's head.
pub(super) const MOST_HEAD_BYTES: usize = 256 * 1024;
const MOST_FIELDS: usize = 256;

/// How a response is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// By its length in bytes.
    Known(u64),
    /// By its chunks.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

/// A response's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Response {
    /// Bytes of the head, to its empty line.
    pub(super) bytes: usize,
    pub(super) status: u16,
    pub(super) length: Length,
    /// Whether the server allows the connection to stay open.
    pub(super) keep_alive: bool,
}

/// The response is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MalformedResponse;

/// The head at the start of `bytes`, if it is complete; `to_head` for the answer to a HEAD request.
pub(super) fn response(bytes: &[u8], to_head: bool) -> Result<Option<Response>, MalformedResponse> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < MOST_HEAD_BYTES => return Ok(None),
        _ => return Err(MalformedResponse),
    };
    let status = response.code.ok_or(MalformedResponse)?;
    let old = response.version == Some(0);
    let (mut close, mut keep, mut chunked, mut coded, mut known) = (false, false, false, false, None);
    for field in response.headers.iter() {
        if field.name.eq_ignore_ascii_case("connection") {
            close |= has_token(field.value, b"close");
            keep |= has_token(field.value, b"keep-alive");
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            coded = true;
            chunked = field.value.trim_ascii().to_ascii_lowercase().ends_with(b"chunked");
        } else if field.name.eq_ignore_ascii_case("content-length") {
            let text = std::str::from_utf8(field.value).map_err(|_| MalformedResponse)?;
            let bytes = Some(text.trim()).filter(|t| t.bytes().all(|b| b.is_ascii_digit()));
            let bytes: u64 = bytes.and_then(|text| text.parse().ok()).ok_or(MalformedResponse)?;
            if known.replace(bytes).is_some_and(|before| before != bytes) {
                return Err(MalformedResponse);
            }
        }
    }
    let framed = match (coded, known) {
        (true, _) if chunked => Length::Chunked,
        (true, _) | (false, None) => Length::UntilClose,
        (false, Some(bytes)) => Length::Known(bytes),
    };
    let without = to_head || status < 200 || status == 204 || status == 304;
    let length_of = if without { Length::Known(0) } else { framed };
    let keep_alive = !close && (!old || keep) && length_of != Length::UntilClose;
    Ok(Some(Response { bytes: length, status, length: length_of, keep_alive }))
}

/// Follows chunks (RFC 9112, section 7.1) to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Chunks {
    at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// In a chunk's size, of which some digits have come.
    Size {
        bytes: u64,
        digits: u8,
    },
    /// In what follows the size in its line.
    Extension {
        bytes: u64,
    },
    /// In a chunk, with this many bytes left.
    Data {
        bytes: u64,
    },
    /// In the line end after a chunk.
    DataEnd,
    /// In a line after the last chunk, of which this many bytes have come.
    Trailer {
        bytes: u32,
    },
    Done,
}

impl Default for At {
    fn default() -> Self {
        Self::Size { bytes: 0, digits: 0 }
    }
}

/// The result of following some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Followed {
    /// How many of them belong to the response.
    pub(super) bytes: usize,
    /// How many of those are content.
    pub(super) content_bytes: u64,
    /// Whether the response ends with them.
    pub(super) done: bool,
}

impl Chunks {
    pub(super) fn follow(&mut self, input: &[u8]) -> Result<Followed, MalformedResponse> {
        let (mut at, mut content_bytes) = (0, 0);
        while at < input.len() && self.at != At::Done {
            if let At::Data { bytes } = self.at {
                let here = u64::try_from(input.len() - at).unwrap_or(u64::MAX).min(bytes);
                content_bytes += here;
                // Not more than the input has.
                at += usize::try_from(here).unwrap_or(usize::MAX);
                self.at = if here == bytes { At::DataEnd } else { At::Data { bytes: bytes - here } };
                continue;
            }
            self.step(input[at])?;
            at += 1;
        }
        Ok(Followed { bytes: at, content_bytes, done: self.at == At::Done })
    }

    /// A byte that is not content.
    fn step(&mut self, byte: u8) -> Result<(), MalformedResponse> {
        /// Most bytes of a line after the last chunk.
        const MOST_LINE_BYTES: u32 = 64 * 1024;
        let after_size = |bytes| if bytes == 0 { At::Trailer { bytes: 0 } } else { At::Data { bytes } };
        self.at = match (self.at, byte) {
            (At::Size { bytes, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if digits >= 15 {
                    return Err(MalformedResponse);
                }
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                At::Size { bytes: bytes << 4 | digit, digits: digits + 1 }
            }
            (At::Size { digits: 0, .. }, _) => return Err(MalformedResponse),
            (At::Size { bytes, .. } | At::Extension { bytes }, b'\n') => after_size(bytes),
            (At::Size { bytes, .. } | At::Extension { bytes }, _) => At::Extension { bytes },
            (At::DataEnd, b'\r') => At::DataEnd,
            (At::DataEnd, b'\n') => At::default(),
            (At::Trailer { bytes: 0 }, b'\n') => At::Done,
            (At::Trailer { .. }, b'\n') => At::Trailer { bytes: 0 },
            (At::Trailer { bytes: 0 }, b'\r') => At::Trailer { bytes: 0 },
            (At::Trailer { bytes }, _) if bytes < MOST_LINE_BYTES => At::Trailer { bytes: bytes + 1 },
            (At::DataEnd | At::Trailer { .. } | At::Data { .. } | At::Done, _) => {
                return Err(MalformedResponse);
            }
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(text: &str, to_head: bool) -> Response {
        let bytes = text.as_bytes();
        for end in 0..bytes.len() {
            assert_eq!(response(&bytes[..end], to_head), Ok(None), "{end}");
        }
        let found = response(bytes, to_head).unwrap().unwrap();
        assert_eq!(found.bytes, bytes.len());
        found
    }

    #[test]
    fn where_responses_end() {
        let length = |text: &str| head(&format!("HTTP/1.1 {text}\r\n\r\n"), false).length;
        assert_eq!(length("200 OK\r\nContent-Length: 12"), Length::Known(12));
        assert_eq!(length("200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 12"), Length::Chunked);
        assert_eq!(length("200 OK"), Length::UntilClose);
        assert_eq!(length("304 Not Modified\r\nContent-Length: 12"), Length::Known(0));
        assert_eq!(length("100 Continue"), Length::Known(0));
        assert_eq!(head("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n", true).length, Length::Known(0));
        assert!(
            response(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", false).is_err()
        );
        assert!(response(b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", false).is_err());
        assert!(response(b"nonsense\r\n\r\n", false).is_err());
    }

    #[test]
    fn whether_the_connection_stays() {
        let keeps = |text: &str| head(text, false).keep_alive;
        assert!(keeps("HTTP/1.1 204 No Content\r\n\r\n"));
        assert!(!keeps("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"));
        assert!(!keeps("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n"));
        assert!(keeps("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: Keep-Alive\r\n\r\n"));
        assert!(!keeps("HTTP/1.1 200 OK\r\n\r\n"));
    }

    const CHUNKS: &[u8] = b"5\r\nhello\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nT: v\r\n\r\n";

    #[test]
    fn chunks_end_where_they_end() {
        let with_more = [CHUNKS, b"HTTP/1.1"].concat();
        let followed = Chunks::default().follow(&with_more).unwrap();
        assert_eq!(followed, Followed { bytes: CHUNKS.len(), content_bytes: 15, done: true });
        for bad in [&b"\r\n"[..], b"x", b"5\r\nhelloX", b"1234567890abcdef0\r\n"] {
            assert_eq!(Chunks::default().follow(bad), Err(MalformedResponse), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn however_chunks_are_cut(cuts in prop::collection::vec(1..12_usize, 1..30)) {
            let (mut chunks, mut rest, mut content) = (Chunks::default(), CHUNKS, 0);
            for cut in cuts.iter().cycle().take(CHUNKS.len()) {
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                let followed = chunks.follow(now).unwrap();
                prop_assert_eq!(followed.bytes, now.len());
                content += followed.content_bytes;
                rest = later;
                prop_assert_eq!(followed.done, rest.is_empty());
                if followed.done {
                    break;
                }
            }
            prop_assert_eq!(content, 15);
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = response(&bytes, false);
            let _ = Chunks::default().follow(&bytes);
        }
    }
}
