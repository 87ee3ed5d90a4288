//! The start of an HTTP/1 request, as far as a packet carries it.

use std::time::{SystemTime, UNIX_EPOCH};

use memchr::{memchr, memchr_iter};

/// Bytes of a head that are looked at. A packet carries fewer, and what comes after them is not missed.
pub const MOST_HEAD_BYTES: usize = 16 << 10;

/// What the first packet of a request tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestStart<'a> {
    /// The method.
    pub method: &'a [u8],
    /// Path and query, as sent.
    pub path_and_query: &'a [u8],
    /// Whether it is HTTP/1.1, whose connections stay.
    pub http11: bool,
    /// The fields, as far as the packet carries them.
    fields: &'a [u8],
}

impl<'a> RequestStart<'a> {
    /// The request that begins with `bytes`; `None` where they are no beginning of an HTTP/1 request, or end within its first line.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let bytes = &bytes[..bytes.len().min(MOST_HEAD_BYTES)];
        let line_end = memchr(b'\n', bytes)?;
        let line = bytes[..line_end].strip_suffix(b"\r").unwrap_or(&bytes[..line_end]);
        let method_end = memchr(b' ', line)?;
        let (method, rest) = (&line[..method_end], &line[method_end + 1..]);
        // RFC 9110, section 9.1: methods are tokens; those in use are letters, and no longer than this.
        if method.is_empty()
            || method.len() > 24
            || !method.iter().all(|b| b.is_ascii_uppercase() || *b == b'-')
        {
            return None;
        }
        let target_end = memchr(b' ', rest)?;
        let version = rest[target_end + 1..].strip_prefix(b"HTTP/1.")?;
        let http11 = match version {
            b"1" => true,
            b"0" => false,
            _ => return None,
        };
        let path_and_query = path_and_query(&rest[..target_end])?;
        Some(Self { method, path_and_query, http11, fields: &bytes[line_end + 1..] })
    }

    /// The path, without the query.
    #[must_use]
    pub fn path(&self) -> &'a [u8] {
        let end = memchr(b'?', self.path_and_query).unwrap_or(self.path_and_query.len());
        &self.path_and_query[..end]
    }

    /// The value of a field, without the spaces around it. A field that the packet does not carry whole is none. `name` is in lower case.
    #[must_use]
    pub fn field(&self, name: &[u8]) -> Option<&'a [u8]> {
        let mut from = 0;
        for end in memchr_iter(b'\n', self.fields) {
            let line = self.fields[from..end].strip_suffix(b"\r").unwrap_or(&self.fields[from..end]);
            from = end + 1;
            if line.is_empty() {
                return None;
            }
            if line.len() > name.len()
                && line[name.len()] == b':'
                && line[..name.len()].eq_ignore_ascii_case(name)
            {
                return Some(line[name.len() + 1..].trim_ascii());
            }
        }
        None
    }

    /// The time of `If-Modified-Since`, in seconds since 1970; `None` without such a field, or where it is no date.
    #[must_use]
    pub fn if_modified_since(&self) -> Option<u64> {
        let text = std::str::from_utf8(self.field(b"if-modified-since")?).ok()?;
        let time: SystemTime = httpdate::parse_http_date(text).ok()?;
        Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
    }
}

/// RFC 9112, section 3.2: origin form, or absolute form without its authority. The other forms name no document.
fn path_and_query(target: &[u8]) -> Option<&[u8]> {
    if target.first() == Some(&b'/') {
        return Some(target);
    }
    let scheme = memchr(b':', target)?;
    let after = target[scheme..].strip_prefix(b"://")?;
    match memchr(b'/', after) {
        Some(at) => Some(&after[at..]),
        None => Some(b"/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<RequestStart<'_>> {
        RequestStart::read(text.as_bytes())
    }

    #[test]
    fn first_lines() {
        let start = read("GET /a/b?c=d HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!((start.method, start.path_and_query, start.http11), (&b"GET"[..], &b"/a/b?c=d"[..], true));
        assert_eq!(start.path(), b"/a/b");
        let start = read("HEAD http://example.org/x HTTP/1.0\n").unwrap();
        assert_eq!((start.path_and_query, start.http11), (&b"/x"[..], false));
        assert_eq!(read("GET http://example.org HTTP/1.1\r\n").unwrap().path(), b"/");
        for bad in [
            "",
            "GET /a HTTP/1.1",
            "GET /a\r\n",
            "GET  HTTP/1.1\r\n",
            "get /a HTTP/1.1\r\n",
            "GET /a HTTP/2.0\r\n",
            "GET /a HTTP/1.10\r\n",
            "OPTIONS * HTTP/1.1\r\n",
            "CONNECT example.org:443 HTTP/1.1\r\n",
            "\u{16}\u{3}\u{1}\u{2}\u{0}\n",
            "abc def ghi\n",
            " /a HTTP/1.1\r\n",
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn fields_as_far_as_they_are_whole() {
        let start =
            read("GET / HTTP/1.1\r\nIf-modified-SINCE:  Sun, 06 Nov 1994 08:49:37 GMT \r\nX: y\r\n\r\n")
                .unwrap();
        assert_eq!(start.if_modified_since(), Some(784_111_777));
        assert_eq!((start.field(b"x"), start.field(b"y")), (Some(&b"y"[..]), None));
        let cut = read("GET / HTTP/1.1\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(cut.if_modified_since(), None);
        // A body is no field.
        let body =
            read("POST / HTTP/1.1\r\nA: b\r\n\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n")
                .unwrap();
        assert_eq!(body.if_modified_since(), None);
        let odd = read("GET / HTTP/1.1\r\nIf-Modified-Since: yesterday\r\n\r\n").unwrap();
        assert_eq!(odd.if_modified_since(), None);
    }
}
