//! Range requests: RFC 9110, section 14.

use std::ops::Range;

use bytes::Bytes;
use http::HeaderMap;
use http::header;

/// Most ranges in one request. RFC 9110, section 14.2, lets a server ignore requests that look like an attack.
const MOST_RANGES: usize = 16;

/// What part of a document is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selection {
    /// All of it.
    Whole,
    /// These bytes: at least one range, none of them empty, all within the document.
    Ranges(Vec<Range<u64>>),
    /// Only bytes that the document does not have: answer 416.
    Unsatisfiable,
}

/// What the `Range` header of a GET selects from a document of `size_bytes`. Ignores a header that is no valid set of
/// byte ranges, and one that is repeated. Ignores it also if it has more than [`MOST_RANGES`], or if its ranges overlap so
/// that they add up to more bytes than the document has.
pub(crate) fn select(headers: &HeaderMap, size_bytes: u64) -> Selection {
    let mut values = headers.get_all(header::RANGE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Selection::Whole };
    let Some(specs) = value.to_str().ok().and_then(parse) else { return Selection::Whole };
    let ranges: Vec<Range<u64>> = specs.iter().filter_map(|spec| spec.within(size_bytes)).collect();
    if ranges.is_empty() {
        // No range of an empty document can be sent, but asking for its last bytes is no mistake.
        let asks_for_end = specs.iter().any(|spec| matches!(spec, Spec::Last(n) if *n > 0));
        return if size_bytes == 0 && asks_for_end { Selection::Whole } else { Selection::Unsatisfiable };
    }
    let total = ranges.iter().fold(0u64, |sum, range| sum.saturating_add(range.end - range.start));
    if total > size_bytes { Selection::Whole } else { Selection::Ranges(ranges) }
}

/// A range as the header states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spec {
    /// From this byte to the end.
    From(u64),
    /// From this byte to that one, which is included.
    Between(u64, u64),
    /// That many bytes at the end.
    Last(u64),
}

impl Spec {
    /// The bytes that it selects from a document of `size_bytes`; `None` if there are none.
    fn within(self, size_bytes: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::From(first) => first..size_bytes,
            Self::Between(first, last) => first..last.saturating_add(1).min(size_bytes),
            Self::Last(count) => size_bytes.saturating_sub(count)..size_bytes,
        };
        (range.start < range.end).then_some(range)
    }
}

/// Reads `bytes=` and a list of ranges; `None` if the text is anything else.
fn parse(text: &str) -> Option<Vec<Spec>> {
    let (unit, list) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let mut specs = Vec::new();
    for item in list.split(',') {
        let item = item.trim_matches([' ', '\t']);
        // A list may have empty elements: RFC 9110, section 5.6.1.2.
        if item.is_empty() {
            continue;
        }
        if specs.len() == MOST_RANGES {
            return None;
        }
        let (first, last) = item.split_once('-')?;
        specs.push(match (first, last) {
            ("", count) => Spec::Last(number(count)?),
            (first, "") => Spec::From(number(first)?),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return None;
                }
                Spec::Between(first, last)
            }
        });
    }
    (!specs.is_empty()).then_some(specs)
}

/// Reads a number of digits only. One too large for a `u64` becomes the largest, which is beyond any document.
fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

/// A piece of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// These bytes, such as a head between two parts.
    Given(Bytes),
    /// These bytes of the document.
    Part(Range<u64>),
}

impl Piece {
    pub(crate) fn length_bytes(&self) -> u64 {
        match self {
            Self::Given(bytes) => bytes.len() as u64,
            Self::Part(range) => range.end - range.start,
        }
    }
}

/// The value of `Content-Range` for one range.
pub(crate) fn content_range(range: &Range<u64>, size_bytes: u64) -> String {
    format!("bytes {}-{}/{size_bytes}", range.start, range.end - 1)
}

/// The body of a `multipart/byteranges` response: RFC 9110, section 14.6.
pub(crate) fn multipart(
    ranges: &[Range<u64>],
    size_bytes: u64,
    content_type: &str,
    boundary: &str,
) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(2 * ranges.len() + 1);
    for (index, range) in ranges.iter().enumerate() {
        let line_end = if index == 0 { "" } else { "\r\n" };
        let content_range = content_range(range, size_bytes);
        let head = format!(
            "{line_end}--{boundary}\r\nContent-Type: {content_type}\r\nContent-Range: {content_range}\r\n\r\n"
        );
        pieces.push(Piece::Given(Bytes::from(head)));
        pieces.push(Piece::Part(range.clone()));
    }
    pieces.push(Piece::Given(Bytes::from(format!("\r\n--{boundary}--\r\n"))));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn selected(value: &str, size_bytes: u64) -> Selection {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, HeaderValue::try_from(value).unwrap());
        select(&headers, size_bytes)
    }

    fn ranges(list: &[(u64, u64)]) -> Selection {
        Selection::Ranges(list.iter().map(|&(start, end)| start..end).collect())
    }

    #[test]
    fn valid_ranges() {
        // RFC 9110, section 14.1.2, has a document of 10,000 bytes.
        let table: &[(&str, u64, Selection)] = &[
            ("bytes=0-499", 10_000, ranges(&[(0, 500)])),
            ("bytes=500-999", 10_000, ranges(&[(500, 1000)])),
            ("bytes=-500", 10_000, ranges(&[(9500, 10_000)])),
            ("bytes=9500-", 10_000, ranges(&[(9500, 10_000)])),
            ("bytes=0-0,-1", 10_000, ranges(&[(0, 1), (9999, 10_000)])),
            ("bytes= 0-0, 9999-9999", 10_000, ranges(&[(0, 1), (9999, 10_000)])),
            ("Bytes=0-1", 10_000, ranges(&[(0, 2)])),
            ("bytes=,0-1,,", 10, ranges(&[(0, 2)])),
            ("bytes=0-99999999999999999999999", 10, ranges(&[(0, 10)])),
            ("bytes=-99", 10, ranges(&[(0, 10)])),
            ("bytes=3-5,20-30", 10, ranges(&[(3, 6)])),
            ("bytes=0-4,3-6", 10, ranges(&[(0, 5), (3, 7)])),
            ("bytes=10-", 10, Selection::Unsatisfiable),
            ("bytes=99999999999999999999999-", 10, Selection::Unsatisfiable),
            ("bytes=-0", 10, Selection::Unsatisfiable),
            ("bytes=0-", 0, Selection::Unsatisfiable),
            ("bytes=-5", 0, Selection::Whole),
        ];
        for (value, size_bytes, expected) in table {
            assert_eq!(&selected(value, *size_bytes), expected, "{value} of {size_bytes}");
        }
    }

    #[test]
    fn what_is_ignored() {
        for value in [
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=a-b",
            "bytes=5-3",
            "bytes=-",
            "bytes=1",
            "bytes=+1-2",
            "bytes=1-2-3",
            "bytes=--1",
            "lines=0-1",
            "bytes=0-1;2-3",
            "bytes=0-9,0-9",
            "=0-1",
        ] {
            assert_eq!(selected(value, 10), Selection::Whole, "{value}");
        }
        let many = |n: usize| format!("bytes={}", vec!["1-1"; n].join(","));
        assert!(matches!(selected(&many(16), 1000), Selection::Ranges(r) if r.len() == 16));
        assert_eq!(selected(&many(17), 1000), Selection::Whole);
        let mut twice = HeaderMap::new();
        twice.append(header::RANGE, HeaderValue::from_static("bytes=0-1"));
        twice.append(header::RANGE, HeaderValue::from_static("bytes=2-3"));
        assert_eq!(select(&twice, 10), Selection::Whole);
    }

    #[test]
    fn multipart_bodies() {
        let pieces = multipart(&[0..2, 5..6], 10, "text/plain", "XYZ");
        let mut text = String::new();
        for piece in &pieces {
            match piece {
                Piece::Given(bytes) => text.push_str(std::str::from_utf8(bytes).unwrap()),
                Piece::Part(range) => text.push_str(&"0123456789"[range.start as usize..range.end as usize]),
            }
        }
        assert_eq!(
            text,
            "--XYZ\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n\
             --XYZ\r\nContent-Type: text/plain\r\nContent-Range: bytes 5-5/10\r\n\r\n5\r\n--XYZ--\r\n"
        );
        assert_eq!(pieces.iter().map(Piece::length_bytes).sum::<u64>(), text.len() as u64);
    }
}
