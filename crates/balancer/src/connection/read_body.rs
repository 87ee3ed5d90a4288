//! Reading a whole body before its request is offered: a client that sends slowly then keeps no back-end busy.

use std::time::Duration;

use crate::http::Framing;
use crate::http::request::RequestHead;
use crate::net::buffer::Buffer;
use crate::net::deadline::{Deadline, Fired};
use crate::net::halves::ClientIo;
use crate::net::held_memory::HeldMemory;
use crate::net::pace::Pace;
use crate::worker::Scratch;

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoBody {
    /// The client has closed.
    Gone,
    /// It sends too slowly.
    TooSlow,
    /// It is the slowest one, and another client needs its place.
    MadeRoom,
    /// The front-end does not wait any longer.
    Stopped,
}

/// Whether `input` has room for a body of so many bytes, perhaps because more memory is held for it now: `most_bytes` for all clients.
pub(super) fn make_room(input: &mut Buffer, length: usize, held: &HeldMemory, most_bytes: usize) -> bool {
    if length <= input.room() {
        return true;
    }
    let mut room = held.share();
    let grows = room.grow(length, most_bytes);
    if grows {
        input.widen(room);
    }
    grows
}

/// Reads until `input` starts with a body of this many bytes, which fit into it.
pub(crate) async fn read_body(
    stream: &mut impl ClientIo,
    input: &mut Buffer,
    length: usize,
    deadline: &Deadline,
    timeout: Duration,
) -> Result<(), NoBody> {
    if input.len() >= length {
        return Ok(());
    }
    stream.acknowledge();
    deadline.set_incomplete(true);
    let read = read(stream, input, length, deadline, timeout).await;
    deadline.set_incomplete(false);
    read
}

async fn read(
    stream: &mut impl ClientIo,
    input: &mut Buffer,
    length: usize,
    deadline: &Deadline,
    timeout: Duration,
) -> Result<(), NoBody> {
    let began_ms = deadline.now_ms();
    while input.len() < length {
        let pace = Pace::default().after(deadline.now_ms().saturating_sub(began_ms));
        deadline.set(pace.next(timeout, input.len() as u64));
        match deadline.guard(|cx| input.poll_fill(cx, stream)).await {
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
