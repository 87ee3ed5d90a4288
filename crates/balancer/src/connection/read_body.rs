//! Reading a whole body before its request is offered: a client that sends slowly then keeps no back-end busy.

use std::time::{Duration, Instant};

use crate::http::Framing;
use crate::http::request::RequestHead;
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
}

/// What may be held for clients that send slowly.
#[derive(Clone, Copy)]
pub(super) struct MayHold<'a> {
    pub(super) memory: &'a HeldMemory,
    /// For all clients.
    pub(super) most_bytes: usize,
}

/// The room that a larger body gets once the usual one is full; it doubles as the client sends. And what a client that is fast has sent
/// in so short a time: the rest comes soon, while it is passed on.
const FIRST_ROOM_BYTES: usize = 128 << 10;
const FAST: Duration = Duration::from_millis(10);

/// Whether reading of a body of so many bytes may begin, all of which are to be held.
pub(super) fn may_begin(input: &Buffer, length: usize, may_hold: MayHold<'_>) -> bool {
    length <= input.room() || length <= most_for_one(may_hold.most_bytes)
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
    stream.acknowledge();
    deadline.set_incomplete(true);
    let read = read(stream, input, length, may_hold, deadline, timeout).await;
    deadline.set_incomplete(false);
    read
}

async fn read(
    stream: &mut impl ClientIo,
    input: &mut Buffer,
    length: usize,
    may_hold: MayHold<'_>,
    deadline: &Deadline,
    timeout: Duration,
) -> Result<(), NoBody> {
    let MayHold { memory, most_bytes } = may_hold;
    let began_ms = deadline.now_ms();
    let is_large = length > input.room();
    let mut since = is_large.then(Instant::now);
    while input.len() < length {
        if input.len() >= FIRST_ROOM_BYTES && since.take().is_some_and(|since| since.elapsed() <= FAST) {
            return Ok(());
        }
        let room_bytes = length.min(FIRST_ROOM_BYTES.max(2 * input.room()));
        if input.len() == input.room() && !input.widen(room_bytes, memory, most_bytes) {
            return Ok(());
        }
        let pace = Pace::default().after(deadline.now_ms().saturating_sub(began_ms));
        deadline.set(pace.next(timeout, input.len() as u64));
        match deadline.guard(|cx| input.poll_fill(cx, stream)).await {
            // A stream that ends makes no room.
            Ok(Ok(1..)) if is_large && stream.is_http2() => deadline.set_incomplete(false),
            // It takes its time; only while nothing comes may it have to make room for others.
            Ok(Ok(1..)) if is_large => deadline.set_incomplete_anew(),
            Ok(Ok(1..)) => {}
            Err(Fired::TimedOut) => return Err(NoBody::TooSlow),
            Err(Fired::MadeRoom) => return Err(NoBody::MadeRoom),
            Err(Fired::Stopped) => return Err(NoBody::Stopped),
            _ => return Err(NoBody::Gone),
        }
    }
    Ok(())
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
