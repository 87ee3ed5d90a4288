//! The conversions and the watch of frames, for the fuzz targets.

use bytes::Bytes;
use http::{HeaderMap, request, response};

use super::meter;
use super::text;

pub(crate) fn write_request(
    head: &request::Parts,
    ends: bool,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    text::write_request(head, ends, out).map(drop)
}

pub(crate) fn read_request(head: &[u8], scheme: &str) -> Option<request::Parts> {
    Some(text::read_request(&Bytes::copy_from_slice(head), scheme)?.head.into_parts().0)
}

pub(crate) fn write_response(
    head: &response::Parts,
    ends: (bool, bool),
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    text::write_response(head, ends, out).map(drop)
}

pub(crate) fn read_response(head: &[u8], to_head: bool) -> Option<response::Parts> {
    Some(text::read_response(&Bytes::copy_from_slice(head), to_head)?.head.into_parts().0)
}

pub(crate) fn write_trailers(trailers: &HeaderMap, out: &mut Vec<u8>) -> Result<(), &'static str> {
    text::write_trailers(trailers, out)
}

pub(crate) fn read_trailers(fields: &[u8]) -> Option<HeaderMap> {
    text::read_trailers(&Bytes::copy_from_slice(fields))
}

/// Whether the frames in these pieces, one after the other, are all taken, and how many more pings would be.
pub(crate) fn frames_taken<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Option<u64> {
    meter::watch_pieces(pieces)
}
