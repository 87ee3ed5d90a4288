//! The parts of a request's target, without copying or decoding it as a whole.

use std::cmp::Ordering;

use crate::bounds::{QUERY_BYTES_MOST, SEGMENTS_MOST};

/// The path and the query of a target: `/path?query` or `http://host/path?query`. `None` for one that has no path.
#[inline]
pub(crate) fn path_and_query_of(target: &[u8]) -> Option<(&[u8], &[u8])> {
    let target = if target.first() == Some(&b'/') { target } else { behind_authority(target)? };
    let end = memchr::memchr2(b'?', b'#', target).unwrap_or(target.len());
    let (path, rest) = target.split_at(end);
    let Some((b'?', query)) = rest.split_first() else { return Some((path, b"")) };
    let query = &query[..query.len().min(QUERY_BYTES_MOST)];
    Some((path, memchr::memchr(b'#', query).map_or(query, |end| &query[..end])))
}

#[cold]
fn behind_authority(target: &[u8]) -> Option<&[u8]> {
    // No scheme is longer.
    let colon = memchr::memchr(b':', &target[..target.len().min(16)])?;
    let rest = target[colon..].strip_prefix(b"://")?;
    match memchr::memchr3(b'/', b'?', b'#', rest) {
        Some(at) if rest[at] == b'/' => Some(&rest[at..]),
        _ => None,
    }
}

/// The segments of a path. Empty segments and `.` are left out and `..` takes the segment before it away, as servers do; the
/// last segment may be empty.
pub(crate) struct PathSegments<'a> {
    first: [&'a [u8]; SEGMENTS_MOST],
    /// How many there are, which may be more than are kept.
    pub(crate) count: usize,
    /// The last one: the application. It may be empty.
    pub(crate) last: &'a [u8],
    /// Whether some byte may be percent-encoded.
    pub(crate) encoded: bool,
}

impl<'a> PathSegments<'a> {
    /// Of a path that begins with `/`.
    #[inline]
    pub(crate) fn of(path: &'a [u8]) -> Self {
        let encoded = memchr::memchr(b'%', path).is_some();
        let mut out = Self { first: [b""; SEGMENTS_MOST], count: 0, last: b"", encoded };
        let mut rest = path.get(1..).unwrap_or_default();
        while let Some(end) = memchr::memchr(b'/', rest) {
            match dots(&rest[..end]) {
                Dots::None => out.push(&rest[..end]),
                Dots::Here => {}
                Dots::Up => out.count = out.count.saturating_sub(1),
            }
            rest = &rest[end + 1..];
        }
        match dots(rest) {
            Dots::None => out.push(rest),
            Dots::Here => out.push(b""),
            Dots::Up => {
                out.count = out.count.saturating_sub(1);
                out.push(b"");
            }
        }
        out.last = rest_or_empty(rest);
        out
    }

    #[inline]
    fn push(&mut self, segment: &'a [u8]) {
        if let Some(place) = self.first.get_mut(self.count) {
            *place = segment;
        }
        self.count += 1;
    }

    /// The segment at a depth, if the path has it and it is kept.
    #[inline]
    pub(crate) fn get(&self, depth: usize) -> Option<&'a [u8]> {
        if depth < self.count { self.first.get(depth).copied() } else { None }
    }
}

fn rest_or_empty(last: &[u8]) -> &[u8] {
    if matches!(dots(last), Dots::None) { last } else { b"" }
}

/// What a segment does.
enum Dots {
    /// It names something.
    None,
    /// It changes nothing.
    Here,
    /// It takes the segment before away.
    Up,
}

#[inline]
fn dots(segment: &[u8]) -> Dots {
    match segment.first() {
        None => Dots::Here,
        Some(b'.' | b'%') => encoded_dots(segment),
        Some(_) => Dots::None,
    }
}

fn encoded_dots(segment: &[u8]) -> Dots {
    if segment.len() > 6 {
        return Dots::None;
    }
    let decoded = UriDecoded { rest: segment, plus: false };
    match decoded.fold((0, true), |(count, dots), byte| (count + 1, dots && byte == b'.')) {
        (1, true) => Dots::Here,
        (2, true) => Dots::Up,
        _ => Dots::None,
    }
}

/// The bytes of a part of a URI, percent-decoded one after the other. What is no valid escape stands for itself.
#[derive(Clone, Copy)]
pub(crate) struct UriDecoded<'a> {
    rest: &'a [u8],
    /// Whether `+` stands for a space, as in queries.
    plus: bool,
}

impl<'a> UriDecoded<'a> {
    /// Of a segment of a path.
    pub(crate) fn segment(text: &'a [u8]) -> Self {
        Self { rest: text, plus: false }
    }

    /// Of a name or value in a query.
    pub(crate) fn in_query(text: &'a [u8]) -> Self {
        Self { rest: text, plus: true }
    }

    /// How the decoded bytes compare with others.
    pub(crate) fn compare(self, other: &[u8]) -> Ordering {
        self.cmp(other.iter().copied())
    }
}

impl Iterator for UriDecoded<'_> {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        match first {
            b'+' if self.plus => Some(b' '),
            b'%' if rest.len() >= 2 => {
                let (Some(high), Some(low)) = (hex(rest[0]), hex(rest[1])) else { return Some(b'%') };
                self.rest = &rest[2..];
                Some(high << 4 | low)
            }
            byte => Some(byte),
        }
    }
}

#[inline]
fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Writes bytes so that they read back as they are, in a path or a query.
pub(crate) fn encode(bytes: &[u8], out: &mut String) {
    for &byte in bytes {
        let plain = byte.is_ascii_alphanumeric() || b"-._~!$'(),;:@".contains(&byte);
        if plain {
            out.push(char::from(byte));
        } else {
            let digit = |n: u8| char::from(b"0123456789ABCDEF"[usize::from(n)]);
            out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(path: &str) -> Vec<String> {
        let found = PathSegments::of(path.as_bytes());
        (0..found.count)
            .filter_map(|at| found.get(at))
            .map(|s| String::from_utf8_lossy(s).into_owned())
            .collect()
    }

    #[test]
    fn paths_are_split_and_normalised() {
        assert_eq!(segments("/"), [""]);
        assert_eq!(segments("/a/b"), ["a", "b"]);
        assert_eq!(segments("/a//b/"), ["a", "b", ""]);
        assert_eq!(segments("/a/./b/../c"), ["a", "c"]);
        assert_eq!(segments("/../../a/%2e%2E/b/.."), [""]);
        assert_eq!(segments("/a/..b/.c"), ["a", "..b", ".c"]);
        assert_eq!(segments("/a/."), ["a", ""]);
        assert_eq!(PathSegments::of(b"/a/b/..").last, b"");
        let long = format!("/{}x", "a/".repeat(100));
        let found = PathSegments::of(long.as_bytes());
        assert_eq!(
            (found.count, found.last, found.get(15), found.get(16)),
            (101, &b"x"[..], Some(&b"a"[..]), None)
        );
    }

    #[test]
    fn targets_are_taken_apart() {
        let parts = |text: &'static str| path_and_query_of(text.as_bytes());
        assert_eq!(parts("/a?b=c#d"), Some((&b"/a"[..], &b"b=c"[..])));
        assert_eq!(parts("/a#d?b"), Some((&b"/a"[..], &b""[..])));
        assert_eq!(parts("http://h:80/a?b"), Some((&b"/a"[..], &b"b"[..])));
        for none in ["", "*", "a", "h:443", "http://h", "http://h?/a"] {
            assert_eq!(parts(none), None, "{none}");
        }
    }

    #[test]
    fn decoding_keeps_what_is_no_escape() {
        let decode = |text: &str| UriDecoded::in_query(text.as_bytes()).map(char::from).collect::<String>();
        assert_eq!(decode("a%20b+c"), "a b c");
        assert_eq!(decode("%4"), "%4");
        assert_eq!(decode("100%"), "100%");
        assert_eq!(decode("%zz%41"), "%zzA");
    }

    #[test]
    fn encoded_bytes_read_back() {
        let all: Vec<u8> = (0..=255).collect();
        let mut text = String::new();
        encode(&all, &mut text);
        assert_eq!(UriDecoded::in_query(text.as_bytes()).collect::<Vec<_>>(), all);
        assert_eq!(UriDecoded::segment(text.as_bytes()).collect::<Vec<_>>(), all);
    }
}
