//! The frames of a body that comes in chunks.

use memchr::{memchr, memmem};

/// Longest line of a frame, with its extensions.
const MOST_LINE_BYTES: usize = 256;

/// What the beginning of a frame tells (RFC 9112, section 7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkFrame {
    /// The next frame begins after so many bytes.
    Next(u64),
    /// The body ends after so many bytes.
    Last(u64),
    /// More of it has to come.
    More,
    /// It is none.
    Bad,
}

impl ChunkFrame {
    pub(super) fn read(data: &[u8]) -> Self {
        let Some(line_end) = memchr(b'\n', &data[..data.len().min(MOST_LINE_BYTES)]) else {
            return if data.len() < MOST_LINE_BYTES { Self::More } else { Self::Bad };
        };
        let line = &data[..line_end];
        let digits = &line[..memchr(b';', line).unwrap_or(line.len())];
        let size = std::str::from_utf8(digits.trim_ascii()).ok().filter(|text| !text.starts_with('+'));
        let Some(size) = size.and_then(|text| u64::from_str_radix(text, 16).ok()) else { return Self::Bad };
        let line_bytes = line_end as u64 + 1;
        if size > 0 {
            return Self::Next(size.saturating_add(line_bytes + 2));
        }
        // Trailers end with an empty line, and so does a frame without trailers.
        match memmem::find(&data[line_end.saturating_sub(1)..], b"\r\n\r\n") {
            Some(at) => Self::Last((line_end.saturating_sub(1) + at) as u64 + 4),
            None => Self::More,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames() {
        for (data, wanted) in [
            ("", ChunkFrame::More),
            ("1f", ChunkFrame::More),
            ("1f\r\nabc", ChunkFrame::Next(4 + 31 + 2)),
            ("A;x=y\r\n", ChunkFrame::Next(7 + 10 + 2)),
            ("0\r\n", ChunkFrame::More),
            ("0\r\n\r\nHTTP/1.1", ChunkFrame::Last(5)),
            ("0\r\nX: y\r\n", ChunkFrame::More),
            ("0\r\nX: y\r\n\r\n", ChunkFrame::Last(11)),
            ("ffffffffffffffff\r\n", ChunkFrame::Next(u64::MAX)),
            ("HTTP/1.1 200 OK\r\n", ChunkFrame::Bad),
            ("+1\r\n", ChunkFrame::Bad),
            ("\r\n", ChunkFrame::Bad),
        ] {
            assert_eq!(ChunkFrame::read(data.as_bytes()), wanted, "{data:?}");
        }
        assert_eq!(ChunkFrame::read(&[b'1'; 300]), ChunkFrame::Bad);
    }
}
