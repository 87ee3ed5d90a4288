//! Heads and bodies, for the fuzz targets.

use super::head::{FoundHead, find, parts, with_fields};
use super::serve::fuzzed as serve;

/// A request's head ends in one place, in whichever pieces it comes.
pub(crate) fn request(bytes: &[u8]) {
    let found = find(bytes);
    let FoundHead::Request(outline) = found else { return };
    assert!(outline.bytes <= bytes.len());
    assert_eq!(find(&bytes[..outline.bytes]), found, "what follows a head does not change it");
    for end in 0..outline.bytes {
        assert_eq!(find(&bytes[..end]), FoundHead::Part, "no shorter head is one");
    }
    if let Some(parts) = parts(bytes) {
        assert_eq!(parts.method == http::Method::HEAD, outline.is_head);
        assert!(!parts.headers.contains_key("transfer-encoding"));
    }
    with_fields(bytes, |line, _, _| assert!(line.is_some_and(|line| !line.target.is_empty())));
}

/// A response's head ends in one place, in whichever pieces it comes.
pub(crate) fn response(bytes: &[u8]) {
    let Some((&flags, head)) = bytes.split_first() else { return };
    serve::response(head, flags & 1 != 0);
}

/// A chunked body ends in one place, in whichever pieces it comes.
pub(crate) fn chunks(bytes: &[u8]) {
    let Some((&piece, wire)) = bytes.split_first() else { return };
    let whole = serve::chunks(std::iter::once(wire));
    assert_eq!(serve::chunks(wire.chunks(usize::from(piece) + 1)), whole);
    assert!(whole.is_none_or(|(used, content, _)| used <= wire.len() && content <= used as u64));
}
