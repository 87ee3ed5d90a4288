//! Reading a whole chunked body before its request is offered, like one that says its length. It then goes on as one that does: many a
//! server cannot read chunks, and none has to wait for the client.
//!
//! The body stays as it came until its end is there, so that one which is not held after all goes on as if nobody had looked at it.

use std::time::Duration;

use plimsoll_config::Limits;

use super::read_body::{BodyReading, MayHold, NoBody, most_held};
use crate::http::RequestRefusal;
use crate::http::chunked::{BadChunk, Decoder};
use crate::net::buffer::Buffer;
use crate::net::deadline::Deadline;
use crate::net::halves::ClientIo;

/// A client that sends nothing for so long may wait for a word of the back-end before it goes on.
const SILENCE: Duration = Duration::from_secs(1);
/// And what takes longer than this may have no end: a stream of events or of sound.
const LONGEST: Duration = Duration::from_secs(30);

/// A chunked body that is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WholeBody {
    /// Bytes that it takes up, with all that is around its content.
    wire: usize,
    /// Bytes of content.
    pub(super) content: usize,
}

/// Follows a chunked body in a buffer, as it comes.
struct ChunkedScan {
    decoder: Decoder,
    wire: usize,
    content: usize,
    most_content: u64,
}

impl ChunkedScan {
    fn new(limits: &Limits) -> Self {
        let decoder = Decoder::new(limits.head_bytes, limits.fields);
        Self { decoder, wire: 0, content: 0, most_content: limits.body_bytes.unwrap_or(u64::MAX) }
    }

    /// Looks at what has come of the body so far, and whether all of it has.
    fn look(&mut self, bytes: &[u8]) -> Result<bool, NoBody> {
        let step = self.decoder.scan(&bytes[self.wire..]).map_err(refused)?;
        self.wire += step.consumed;
        self.content += step.content;
        if self.content as u64 > self.most_content {
            return Err(NoBody::Refused(RequestRefusal::TOO_LARGE));
        }
        Ok(step.done)
    }

    /// The body that has been found; none where it has trailer fields to be passed on, for which only chunked bodies have a place.
    fn whole(&self) -> Result<Option<WholeBody>, NoBody> {
        let trailers = self.decoder.trailers(&[]).map_err(refused)?;
        let whole = WholeBody { wire: self.wire, content: self.content };
        Ok(trailers.is_empty().then_some(whole))
    }
}

fn refused(bad: BadChunk) -> NoBody {
    NoBody::Refused(RequestRefusal::bad_request(bad.0))
}

/// Reads until `input` starts with a whole chunked body. `None` where it is passed on in chunks, as far as it has come: no more may be
/// held, it has trailer fields, the client is silent or too slow, or it takes too long.
pub(super) async fn read_chunked(
    stream: &mut impl ClientIo,
    input: &mut Buffer,
    limits: &Limits,
    may_hold: MayHold<'_>,
    deadline: &Deadline,
    timeout: Duration,
) -> Result<Option<WholeBody>, NoBody> {
    let mut scan = ChunkedScan::new(limits);
    if !scan.look(input.data())? {
        let most = most_held(input, may_hold);
        let mut reading = BodyReading::new(stream, deadline, true, timeout);
        // However fast it comes: whether a back-end gets chunks must not depend on that.
        reading.since = None;
        // A client that is silent is heard by the back-end before it has been waited for too long.
        reading.silence = Some(SILENCE.min(timeout / 2));
        loop {
            if reading.time() > LONGEST || !reading.more(input, most, may_hold).await? {
                return Ok(None);
            }
            if scan.look(input.data())? {
                break;
            }
        }
    }
    scan.whole()
}

/// Has `input` start with the content of a chunked body with which it starts.
pub(super) fn decode_whole(input: &mut Buffer, body: WholeBody, limits: &Limits) {
    let mut decoder = Decoder::new(limits.head_bytes, limits.fields);
    let decoded = decoder.decode(&mut input.data_mut()[..body.wire]);
    debug_assert!(decoded.is_ok_and(|decoded| decoded.done && decoded.content == body.content));
    input.cut_out(body.content, body.wire);
}

#[cfg(test)]
mod tests;
