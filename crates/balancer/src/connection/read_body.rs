//! Reading a whole body before its request is offered: a client that sends slowly then keeps no back-end busy.

use std::time::{Duration, Instant};

use crate::http::request::RequestHead;
use crate::http::{Framing, RequestRefusal};
use crate::net::buffer::Buffer;
use crate::net::deadline::{Deadline, Fired};
use crate::net::halves::ClientIo;
use crate::net::held_memory::{HeldMemory, most_for_one};
use crate::net::pace::Pace;
use crate::worker::Scratch;

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoBody {
    /// The client has closed.
    Gone,
    /// It sends too slowly.
    TooSlow,
    /// It is the slowest one, and another client needs its place.
    MadeRoom,
    /// The front-end does not wait any longer.
    Stopped,
    /// What it sends is no body, or too large a one.
    Refused(RequestRefusal),
}

/// What may be held of requests whose clients send slowly.
#[derive(Clone, Copy)]
pub(super) struct MayHold<'a> {
    pub(super) memory: &'a HeldMemory,
    /// For all requests.
    pub(super) most_bytes: usize,
}

/// The room that a larger body gets once the usual one is full; it doubles as the client sends. And what a client that is fast has sent
/// in so short a time: the rest comes soon, while it is passed on.
const FIRST_ROOM_BYTES: usize = 128 << 10;
const FAST: Duration = Duration::from_millis(10);

/// Whether reading of a body of so many bytes may begin, all of which are to be held.
pub(super) fn may_begin(input: &Buffer, length: usize, may_hold: MayHold<'_>) -> bool {
    length <= most_held(input, may_hold)
}

/// How many bytes of one body may be held.
pub(super) fn most_held(input: &Buffer, may_hold: MayHold<'_>) -> usize {
    input.room().max(most_for_one(may_hold.most_bytes))
}

/// Reads until `input` starts with a body of this many bytes; or with a part of it, where no more may be held, or the client is fast:
/// its body need not be held, and memory that is in the CPU's cache costs less.
pub(super) async fn read_body(
    stream: &mut impl ClientIo,
    input: &mut Buffer,
    length: usize,
    may_hold: MayHold<'_>,
    deadline: &Deadline,
    timeout: Duration,
) -> Result<(), NoBody> {
    if input.len() >= length {
        return Ok(());
    }
    let is_large = length > input.room();
    let mut reading = BodyReading::new(stream, deadline, is_large, timeout);
    while input.len() < length && reading.more(input, length, may_hold).await? {}
    Ok(())
}

/// Reading a body piece by piece, while its client is waited for.
pub(super) struct BodyReading<'a, C> {
    stream: &'a mut C,
    deadline: &'a Deadline,
    /// It may be larger than the usual room.
    is_large: bool,
    /// When it began, where it may be large, and need not be held if it comes fast.
    pub(super) since: Option<Instant>,
    began_ms: u64,
    timeout: Duration,
    /// What has come of a body whose client is silent for so long, or sends too slowly, goes on.
    pub(super) silence: Option<Duration>,
}

impl<'a, C: ClientIo> BodyReading<'a, C> {
    pub(super) fn new(stream: &'a mut C, deadline: &'a Deadline, is_large: bool, timeout: Duration) -> Self {
        stream.acknowledge();
        deadline.set_incomplete(true);
        let (since, began_ms) = (is_large.then(Instant::now), deadline.now_ms());
        Self { stream, deadline, is_large, since, began_ms, timeout, silence: None }
    }

    /// How long it has been read.
    pub(super) fn time(&self) -> Duration {
        Duration::from_millis(self.deadline.now_ms().saturating_sub(self.began_ms))
    }

    /// Reads what comes next, of a body of which at most `most` bytes are to be held; false where it need not, or may not.
    pub(super) async fn more(
        &mut self,
        input: &mut Buffer,
        most: usize,
        may_hold: MayHold<'_>,
    ) -> Result<bool, NoBody> {
        let is_fast = |since: Instant| since.elapsed() <= FAST;
        if input.len() >= FIRST_ROOM_BYTES && self.since.take().is_some_and(is_fast) {
            return Ok(false);
        }
        if input.len() == input.room() {
            let room_bytes = most.min(FIRST_ROOM_BYTES.max(2 * input.room()));
            if room_bytes <= input.room() || !input.widen(room_bytes, may_hold.memory, may_hold.most_bytes) {
                return Ok(false);
            }
        }
        let pace = Pace::default().after(self.time().as_millis() as u64);
        let patience = pace.next(self.timeout, input.len() as u64);
        self.deadline.set(self.silence.map_or(patience, |silence| patience.min(silence)));
        let Self { stream, deadline, .. } = self;
        match deadline.guard(|cx| input.poll_fill(cx, *stream)).await {
            // A stream that ends makes no room.
            Ok(Ok(1..)) if self.is_large && self.stream.is_http2() => self.deadline.set_incomplete(false),
            // It takes its time; only while nothing comes may it have to make room for others.
            Ok(Ok(1..)) if self.is_large => self.deadline.set_incomplete_anew(),
            Ok(Ok(1..)) => {}
            Err(Fired::TimedOut) if self.silence.is_some() => {
                // What follows has the whole time again.
                self.deadline.set(self.timeout);
                return Ok(false);
            }
            Err(Fired::TimedOut) => return Err(NoBody::TooSlow),
            Err(Fired::MadeRoom) => return Err(NoBody::MadeRoom),
            Err(Fired::Stopped) => return Err(NoBody::Stopped),
            _ => return Err(NoBody::Gone),
        }
        Ok(true)
    }
}

impl<C> Drop for BodyReading<'_, C> {
    fn drop(&mut self) {
        self.deadline.set_incomplete(false);
    }
}

/// A small body that has arrived with its head goes to the back-end in one piece with it.
const JOINED_BODY_BYTES: u64 = 4096;

/// Appends a small body that has arrived to the head. Returns the framing of the rest.
pub(super) fn join_body(head: &RequestHead, scratch: &mut Scratch) -> Framing {
    match head.framing {
        Framing::Length(length) if length <= JOINED_BODY_BYTES && length as usize <= scratch.input.len() => {
            scratch.head.extend_from_slice(&scratch.input.data()[..length as usize]);
            scratch.input.consume(length as usize);
            Framing::None
        }
        framing => framing,
    }
}
