//! Heads that were written, as somebody else reads them.

use crate::http::Framing;
use crate::http::fields::is_token_byte;
use crate::http::head_end::{HeadEnd, HeadScan};

/// A field of a head: its name in lower case, and its value.
pub(super) type ReadField = (String, Vec<u8>);

/// A head that was written, read by somebody else: its first line and its fields. It is one head, and nothing follows it.
pub(super) fn read_head(text: &[u8]) -> (&[u8], Vec<ReadField>) {
    assert_eq!(HeadScan::default().scan(text), HeadEnd::At(text.len()), "{}", text.escape_ascii());
    let mut lines = text[..text.len() - 4].split(|&b| b == b'\n').map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        assert!(!line.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)), "{}", text.escape_ascii());
        line
    });
    let first = lines.next().unwrap_or_default();
    let field = |line: &[u8]| {
        let colon = line.iter().position(|&b| b == b':').expect("a line is a field");
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let is_token = !name.is_empty() && name.iter().all(|&b| is_token_byte(b));
        assert!(is_token, "{}", text.escape_ascii());
        (String::from_utf8_lossy(name).to_ascii_lowercase(), value.to_vec())
    };
    (first, lines.map(field).collect())
}

/// The values of the fields of this name.
pub(super) fn values<'f>(fields: &'f [ReadField], name: &'f str) -> impl Iterator<Item = &'f [u8]> {
    fields.iter().filter(move |(found, _)| found == name).map(|(_, value)| &**value)
}

/// Checks that a written head says how its body is framed as it was understood, and only once.
pub(super) fn check_framing(fields: &[ReadField], framing: Framing) {
    let lengths: Vec<_> = values(fields, "content-length").collect();
    let codings: Vec<_> = values(fields, "transfer-encoding").collect();
    match framing {
        Framing::Chunked => assert!(lengths.is_empty() && codings == [b"chunked"]),
        Framing::Length(length) => {
            assert!(codings.is_empty() && lengths == [length.to_string().as_bytes()]);
        }
        Framing::None => assert!(codings.is_empty() && lengths.len() <= 1),
        Framing::UntilClose => assert!(codings.is_empty() && lengths.is_empty()),
    }
}
