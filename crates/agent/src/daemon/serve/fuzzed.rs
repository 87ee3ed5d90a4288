//! Responses, for the fuzz targets.

use super::framing::{Chunks, Length, response as read};

pub(in super::super) fn response(bytes: &[u8], to_head: bool) {
    let Ok(Some(found)) = read(bytes, to_head) else { return };
    assert!(found.bytes <= bytes.len() && found.status <= 999);
    assert_eq!(read(&bytes[..found.bytes], to_head), Ok(Some(found)));
    for end in 0..found.bytes {
        assert_eq!(read(&bytes[..end], to_head), Ok(None), "no shorter head is one");
    }
    let without = to_head || found.status < 200 || matches!(found.status, 204 | 304);
    assert!(!without || found.length == Length::Known(0));
    assert!(!found.keep_alive || found.length != Length::UntilClose);
}

/// Bytes of the body in these pieces, bytes of content, and whether it is whole; none where it is malformed.
pub(in super::super) fn chunks<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Option<(usize, u64, bool)> {
    let mut chunks = Chunks::default();
    let (mut used, mut content, mut done) = (0, 0, false);
    for piece in pieces {
        let followed = chunks.follow(piece).ok()?;
        used += followed.bytes;
        content += followed.content_bytes;
        done |= followed.done;
        if done {
            break;
        }
    }
    Some((used, content, done))
}
