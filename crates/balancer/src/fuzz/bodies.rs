//! Bodies, frames, and small texts.

use crate::admin::fuzzed as admin;
use crate::http::chunked::{Decoder, chunk_line};
use crate::http::operation::operation_name;
use crate::http2::fuzzed as text;
use crate::load_information::fuzzed as load;

const MOST_TRAILER_BYTES: usize = 4096;

/// What a decoder makes of a body in pieces of this size: content, bytes used, whether it is whole; and the trailers.
fn decoded(
    wire: &[u8],
    piece: usize,
    of: fn(usize, usize) -> Decoder,
) -> Option<(Vec<u8>, usize, bool, Vec<u8>)> {
    let mut decoder = of(MOST_TRAILER_BYTES, 32);
    let (mut content, mut used, mut done) = (Vec::new(), 0, false);
    for piece in wire.chunks(piece) {
        let mut piece = piece.to_vec();
        let step = decoder.decode(&mut piece).ok()?;
        assert!(step.content <= step.consumed && step.consumed <= piece.len());
        assert!(step.done || step.consumed == piece.len(), "only the end leaves something over");
        content.extend_from_slice(&piece[..step.content]);
        used += step.consumed;
        done = step.done;
        if done {
            break;
        }
    }
    let trailers = if done { decoder.trailers(&[]).ok()? } else { Vec::new() };
    Some((content, used, done, trailers))
}

/// How much content such a body has for one who only follows it, bytes used, and whether it is whole.
fn scanned(wire: &[u8], piece: usize) -> Option<(usize, usize, bool)> {
    let mut decoder = Decoder::new(MOST_TRAILER_BYTES, 32);
    let (mut content, mut used, mut done) = (0, 0, false);
    for piece in wire.chunks(piece) {
        let step = decoder.scan(piece).ok()?;
        (content, used, done) = (content + step.content, used + step.consumed, step.done);
        if done {
            decoder.trailers(&[]).ok()?;
            break;
        }
    }
    Some((content, used, done))
}

/// A body is the same in whichever pieces it comes, and the same once it is written anew.
pub(super) fn chunked(bytes: &[u8]) {
    let Some((&[piece], wire)) = bytes.split_first_chunk::<1>() else { return };
    let strict = decoded(wire, wire.len().max(1), Decoder::new);
    assert_eq!(decoded(wire, usize::from(piece) + 1, Decoder::new), strict);
    let whole = decoded(wire, wire.len().max(1), Decoder::of_response);
    assert_eq!(decoded(wire, usize::from(piece) + 1, Decoder::of_response), whole);
    assert!(strict.is_none() || strict == whole, "what is strict is the same for all");
    assert_eq!(
        scanned(wire, usize::from(piece) + 1),
        strict.map(|(content, used, done, _)| (content.len(), used, done))
    );
    let Some((content, used, true, trailers)) = whole else { return };
    assert!(content.len() < used);
    let mut again = Vec::new();
    if !content.is_empty() {
        chunk_line(content.len(), &mut again);
        again.extend_from_slice(&content);
        again.extend_from_slice(b"\r\n");
    }
    again.extend_from_slice(b"0\r\n");
    again.extend_from_slice(&trailers);
    again.extend_from_slice(b"\r\n");
    let length = again.len();
    again.extend_from_slice(b"GET / HTTP/1.1\r\n");
    assert_eq!(decoded(&again, again.len(), Decoder::new), Some((content, length, true, trailers)));
}

/// Trailers there and back are the same fields, and none that belongs to a connection.
pub(super) fn trailers(bytes: &[u8]) {
    let Some(fields) = text::read_trailers(bytes) else { return };
    let mut out = b"HTTP/1.1 200 OK\r\n".to_vec();
    text::write_trailers(&fields, &mut out).expect("what was read can be written");
    out.extend_from_slice(b"\r\n");
    let (_, written) = super::written_head::read_head(&out);
    assert_eq!(written.len(), fields.len());
    assert!(!fields.contains_key("transfer-encoding") && !fields.contains_key("connection"));
    let again = text::read_trailers(&out[17..]).expect("what was written can be read");
    assert_eq!(again, fields);
}

/// Frames are counted alike in whichever pieces they come.
pub(super) fn frames(bytes: &[u8]) {
    let Some((&[piece], frames)) = bytes.split_first_chunk::<1>() else { return };
    let whole = text::frames_taken(std::iter::once(frames));
    assert_eq!(text::frames_taken(frames.chunks(usize::from(piece) + 1)), whole);
}

/// The operation of a JSON body that names one in plain text, once, is the one that a JSON reader finds.
pub(super) fn operation(body: &[u8]) {
    const NAME: &[u8] = b"operationName";
    let found = operation_name(body);
    assert!(found.as_ref().is_none_or(|name| !name.is_empty() && name.len() < body.len()));
    let Ok(root) = serde_json::from_slice::<serde_json::Value>(body) else { return };
    let nested = body.iter().filter(|b| b"[{".contains(b)).count();
    if body.contains(&b'\\') || nested > 60 || memchr::memmem::find_iter(body, NAME).count() != 1 {
        return;
    }
    let name = root.as_object().and_then(|object| object.get("operationName")?.as_str());
    let name = name.filter(|name| !name.is_empty()).map(|name| name.as_bytes().to_vec());
    assert_eq!(found, name, "{}", body.escape_ascii());
}

/// A load that is believed is within its bound.
pub(super) fn load_field(head: &[u8]) {
    if let Some(load) = load::load_of_head(head, 1000) {
        assert!(load <= 1000);
    }
}

/// Paths and queries of the admin API.
pub(super) fn admin_query(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
    admin::read(path, query);
}
