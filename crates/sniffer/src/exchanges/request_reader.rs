//! What the client sends: where its requests begin.

use super::answer_start::content_length;
use super::segment::Segment;
use super::stream::{Stream, joined};
use crate::request_start::RequestStart;

/// Longest beginning of a request that is kept until the rest of it comes.
pub(super) const MOST_BEGUN_BYTES: usize = 8 << 10;

/// What may have passed between a request and the one before.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestGap {
    /// Other requests.
    pub(super) missed: bool,
    /// Bytes that were not seen at all.
    pub(super) lost: bool,
}

/// Reads what a client sends.
#[derive(Debug, Default)]
pub(super) struct RequestReader {
    stream: Stream,
    /// Up to where it is the body of a request.
    body_until: u64,
    /// The beginning of a request whose head has not come as a whole.
    begun: Box<[u8]>,
    /// Whether that request has been told.
    is_told: bool,
    /// Whether requests may have passed since the last one that were not seen.
    missed: bool,
    /// Whether bytes have passed since the last request that were not seen at all.
    lost: bool,
    /// Whether something surely followed a whole request in one segment.
    has_followed: bool,
}

/// Whether a request's first line may begin so.
fn may_begin(data: &[u8]) -> bool {
    data.first().is_some_and(u8::is_ascii_uppercase) && memchr::memchr(b'\n', data).is_none()
}

impl RequestReader {
    /// Whether requests may have passed since the last one that were not seen.
    pub(super) fn has_missed(&self) -> bool {
        self.missed
    }

    /// Whether a request surely stood behind another one in what was not copied of a segment.
    pub(super) fn has_followed(&self) -> bool {
        self.has_followed
    }

    /// Tells the requests of a segment, and what may have passed before each.
    pub(super) fn read(
        &mut self,
        segment: &Segment<'_>,
        found: &mut dyn FnMut(&RequestStart<'_>, RequestGap),
    ) {
        let before = self.stream.reached();
        let mut at = self.stream.place(segment.seq, segment.data_bytes);
        let end = at + u64::from(segment.data_bytes);
        let mut data = segment.data;
        let begun = match before {
            Some(before) if end <= before => return,
            // What came before is not read again.
            Some(before) if at <= before => {
                data = data.get((before - at) as usize..).unwrap_or_default();
                at = before;
                std::mem::take(&mut self.begun)
            }
            Some(_) => {
                let is_unknown = self.body_until < at;
                (self.missed, self.lost) = (self.missed || is_unknown, self.lost || is_unknown);
                self.begun = Box::default();
                self.is_told = false;
                Box::default()
            }
            None => Box::default(),
        };
        // Some clients write a head in pieces.
        let first = at - begun.len() as u64;
        let is_whole = at + data.len() as u64 == end;
        self.read_from(first, &joined(&begun, data), is_whole, found);
        // A request may stand in what was not copied.
        let is_hidden = !is_whole && self.body_until < end;
        self.missed |= is_hidden;
        self.has_followed |= is_hidden && self.body_until >= at + data.len() as u64;
    }

    fn read_from(
        &mut self,
        first: u64,
        joined: &[u8],
        is_whole: bool,
        found: &mut dyn FnMut(&RequestStart<'_>, RequestGap),
    ) {
        let offset = |until: u64| usize::try_from(until.saturating_sub(first)).unwrap_or(usize::MAX);
        let mut from = offset(self.body_until);
        while let Some(data) = joined.get(from..).filter(|data| !data.is_empty()) {
            let keeps = is_whole && data.len() < MOST_BEGUN_BYTES;
            let was_told = std::mem::take(&mut self.is_told);
            let Some(start) = RequestStart::read(data) else {
                match keeps && may_begin(data) {
                    true => self.begun = data.into(),
                    false => self.missed = true,
                }
                return;
            };
            if !was_told {
                let missed = std::mem::take(&mut self.missed);
                found(&start, RequestGap { missed, lost: std::mem::take(&mut self.lost) });
            }
            let Some(head) = memchr::memmem::find(data, b"\r\n\r\n") else {
                match keeps {
                    true => (self.begun, self.is_told) = (data.into(), true),
                    false => self.missed = true,
                }
                return;
            };
            let body = content_length(&data[..head + 2]).unwrap_or(0);
            self.body_until = (first + from as u64 + head as u64 + 4).saturating_add(body);
            from = offset(self.body_until);
        }
    }
}
