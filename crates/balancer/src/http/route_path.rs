//! Paths as routes compare them, so that no spelling of a path comes to another route than the one that a back-end would serve.

use std::borrow::Cow;

use super::RequestRefusal;

const DOTS: RequestRefusal =
    RequestRefusal::bad_request("a path with a segment of dots, which a client has to resolve");

/// A path in the forms in which readers understand it.
pub(crate) struct RoutePath<'a> {
    /// Unreserved characters decoded, slashes in a row taken for one.
    pub(crate) plain: Cow<'a, [u8]>,
    /// As a reader has it that decodes everything, takes `\` for `/`, and leaves out parameters behind `;`. None where that is the same.
    pub(crate) lenient: Option<Vec<u8>>,
}

impl<'a> RoutePath<'a> {
    /// Of a path that may have a query; `*` is `/`.
    ///
    /// # Errors
    /// When some reader would see a segment of dots in it.
    pub(crate) fn of(path_query: &'a [u8]) -> Result<Self, RequestRefusal> {
        let path = without_query(path_query);
        if !path.starts_with(b"/") {
            return Ok(Self { plain: Cow::Borrowed(b"/"), lenient: None });
        }
        let plain = plain(path);
        let lenient = path.iter().any(|b| b"%;\\".contains(b)).then(|| lenient(path));
        if has_dots(&plain) || lenient.as_deref().is_some_and(has_dots) {
            return Err(DOTS);
        }
        Ok(Self { plain, lenient })
    }
}

/// A path without its query.
pub(crate) fn without_query(path_query: &[u8]) -> &[u8] {
    &path_query[..memchr::memchr(b'?', path_query).unwrap_or(path_query.len())]
}

/// How many bytes of this path, which may have a query, are the first so many of its plain form.
pub(crate) fn raw_length(path_query: &[u8], plain_length: usize) -> usize {
    let path = without_query(path_query);
    let (mut at, mut length) = (0, 0);
    let mut last = 0;
    while at < path.len() {
        let (byte, next) = decoded(path, at, is_unreserved);
        if !(byte == b'/' && last == b'/') {
            if length == plain_length {
                return at;
            }
            length += 1;
        }
        (at, last) = (next, byte);
    }
    path.len()
}

fn plain(path: &[u8]) -> Cow<'_, [u8]> {
    let is_plain = memchr::memchr(b'%', path).is_none() && memchr::memmem::find(path, b"//").is_none();
    if is_plain {
        return Cow::Borrowed(path);
    }
    let mut out = Vec::with_capacity(path.len());
    let mut at = 0;
    while at < path.len() {
        let (byte, next) = decoded(path, at, is_unreserved);
        if byte != b'/' || out.last() != Some(&b'/') {
            out.push(byte);
        }
        at = next;
    }
    Cow::Owned(out)
}

fn lenient(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let (mut at, mut in_parameters) = (0, false);
    while at < path.len() {
        let (byte, next) = decoded(path, at, |_| true);
        match byte {
            b'/' | b'\\' => {
                in_parameters = false;
                if out.last() != Some(&b'/') {
                    out.push(b'/');
                }
            }
            b';' => in_parameters = true,
            _ if in_parameters => {}
            byte => out.push(byte),
        }
        at = next;
    }
    out
}

/// The byte at this place and the place behind it; percent-encoding of bytes that `may` be is undone.
fn decoded(path: &[u8], at: usize, may: impl Fn(u8) -> bool) -> (u8, usize) {
    let digit = |at: usize| path.get(at).and_then(|&b| char::from(b).to_digit(16)).map(|d| d as u8);
    if path[at] == b'%'
        && let (Some(high), Some(low)) = (digit(at + 1), digit(at + 2))
        && may(high * 16 + low)
    {
        return (high * 16 + low, at + 3);
    }
    (path[at], at + 1)
}

/// RFC 3986, section 2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn has_dots(path: &[u8]) -> bool {
    // Most paths have none.
    memchr::memmem::find(path, b"/.").is_some()
        && path.split(|&b| b == b'/').any(|segment| matches!(segment, b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_readers_may_see() {
        let of = |path: &str| {
            let path = RoutePath::of(path.as_bytes()).unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (text(&path.plain), path.lenient.as_deref().map(text))
        };
        assert_eq!(of("/a/b?c=//d"), ("/a/b".to_owned(), None));
        assert_eq!(of("//a///b/"), ("/a/b/".to_owned(), None));
        assert_eq!(of("/%61/x"), ("/a/x".to_owned(), Some("/a/x".to_owned())));
        assert_eq!(of("/a%2Fb;x=1/c\\d"), ("/a%2Fb;x=1/c\\d".to_owned(), Some("/a/b/c/d".to_owned())));
        assert_eq!(of("*"), ("/".to_owned(), None));
        assert_eq!(of("/...").0, "/...");
    }

    #[test]
    fn segments_of_dots_are_refused_however_they_are_written() {
        for bad in [
            "/..",
            "/a/../b",
            "/./a",
            "/a/.",
            "/%2e%2e/a",
            "/.%2E/a",
            "/a%2f..%2fb",
            "/a%5c..%5cb",
            "/a\\..\\b",
            "/..;/a",
            "/a/..;x=y/b",
            "/%2e;/a",
            "/a//../b",
        ] {
            assert!(RoutePath::of(bad.as_bytes()).is_err(), "{bad}");
        }
        for good in ["/a..b", "/.well-known/x", "/a?../..", "/a/...;x", "/%252e%252e/a"] {
            assert!(RoutePath::of(good.as_bytes()).is_ok(), "{good}");
        }
    }

    #[test]
    fn the_length_of_a_prefix_as_it_came() {
        let rest = |path: &str, prefix: &str| {
            let path = path.as_bytes();
            String::from_utf8_lossy(&path[raw_length(path, prefix.len())..]).into_owned()
        };
        assert_eq!(rest("/api/x?y", "/api"), "/x?y");
        assert_eq!(rest("//%61pi//x", "/api"), "//x");
        assert_eq!(rest("/api", "/api"), "");
        assert_eq!(rest("/api?q", "/api"), "?q");
    }

    /// What a back-end sees that decodes everything once, takes `\` for `/`, and leaves out parameters.
    fn by_another_reader(path: &[u8]) -> Vec<Vec<u8>> {
        let text = path.split(|&b| b == b'?').next().unwrap();
        let mut decoded = Vec::new();
        let mut rest = text;
        while let [first, after @ ..] = rest {
            let hex = std::str::from_utf8(&after[..after.len().min(2)]).ok().filter(|h| h.len() == 2);
            let value = hex.and_then(|h| u8::from_str_radix(h, 16).ok().filter(|_| !h.starts_with('+')));
            match (first, value) {
                (b'%', Some(value)) => {
                    decoded.push(value);
                    rest = &after[2..];
                }
                _ => {
                    decoded.push(*first);
                    rest = after;
                }
            }
        }
        let segments = decoded.split(|b| b"/\\".contains(b));
        segments.map(|segment| segment.split(|&b| b == b';').next().unwrap().to_vec()).collect()
    }

    #[test]
    fn no_path_that_passes_has_dots_for_any_reader() {
        const PIECES: [&str; 16] =
            ["/", "/", "//", "a", ".", "..", "%2e", "%2E", "%2f", "%5C", "\\", ";", "%3b", "%", "?", "%61"];
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let mut passed = 0;
        for _ in 0..50_000 {
            let pieces: Vec<&str> = (0..next() % 8).map(|_| PIECES[next() % PIECES.len()]).collect();
            let path = format!("/{}", pieces.concat());
            let Ok(forms) = RoutePath::of(path.as_bytes()) else { continue };
            passed += 1;
            let dots = |segment: &Vec<u8>| matches!(segment.as_slice(), b"." | b"..");
            assert!(!by_another_reader(path.as_bytes()).iter().any(dots), "{path}");
            let whole = raw_length(path.as_bytes(), forms.plain.len());
            assert_eq!(whole, without_query(path.as_bytes()).len(), "{path}");
        }
        assert!(passed > 5_000, "{passed}");
    }
}
