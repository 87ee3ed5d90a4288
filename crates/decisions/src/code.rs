//! Shared by recorder and decoder: tags, chunk layout, and the memory of recent assignments.
//!
//! A chunk is `sequence, time, next number` as varints, the state of the run (0 for none, 1 and a header, 2, a header and the costs
//! of classes, or 3 and also the limits of back-ends), then events. Every chunk can be read without the ones before it.

use plimsoll_policy::{BackendId, BackendList, Decision, Health, Nanos, TargetId, Time, Weight};

use crate::bytes::{ByteCursor, Malformed, put_varint};

/// An offer; flags below.
pub(crate) const OFFER: u8 = 0b1000_0000;
/// In an offer: the number is not the next one, and follows.
pub(crate) const OFFER_NUMBER: u8 = 0b0000_0001;
/// In an offer: the client is not that of the offer before, and follows.
pub(crate) const OFFER_CLIENT: u8 = 0b0000_0010;
/// In an offer: flags for further fields follow.
pub(crate) const OFFER_MORE: u8 = 0b0000_0100;
/// In an offer: position of the two bits of the decision, see [`decision_code`].
pub(crate) const OFFER_DECISION_SHIFT: u8 = 4;

/// In the flags of an offer: a size follows.
pub(crate) const MORE_SIZE: u8 = 1;
/// In the flags of an offer: computed on demand.
pub(crate) const MORE_DYNAMIC: u8 = 2;
/// In the flags of an offer: a class follows.
pub(crate) const MORE_CLASS: u8 = 4;
/// In the flags of an offer: features follow.
pub(crate) const MORE_FEATURES: u8 = 8;
/// In the flags of an offer: tried back-ends follow.
pub(crate) const MORE_TRIED: u8 = 16;
/// In the flags of an offer: a deadline follows.
pub(crate) const MORE_DEADLINE: u8 = 32;
/// In the flags of an offer: the phase in which an assignment begins follows; otherwise it is active.
pub(crate) const MORE_BEGINS: u8 = 64;
/// In the flags of an offer: a connection.
pub(crate) const MORE_CONNECTION: u8 = 128;

/// The end of a request; flags below.
pub(crate) const DONE: u8 = 0b0100_0000;
/// In an end: target and back-end follow, because the decoder does not remember them.
pub(crate) const DONE_WHAT: u8 = 0b0000_0001;
/// In an end: the response time follows, because it differs from the time since the assignment.
pub(crate) const DONE_TIME: u8 = 0b0000_0010;
/// In an end: a size follows.
pub(crate) const DONE_SIZE: u8 = 0b0000_0100;
/// In an end: the request was lost.
pub(crate) const DONE_FAILED: u8 = 0b0000_1000;
/// In an end: the phase in which it ended follows; otherwise it was active.
pub(crate) const DONE_PHASE: u8 = 0b0001_0000;
/// In an end: the back-end told whether it had the content in its cache, and a byte follows: 1 if so, 0 if not.
pub(crate) const DONE_HIT: u8 = 0b0010_0000;

pub(crate) const RUN: u8 = 1;
pub(crate) const FOREIGN: u8 = 2;
pub(crate) const HEALTH: u8 = 3;
pub(crate) const WEIGHT: u8 = 4;
pub(crate) const JOINED: u8 = 5;
pub(crate) const TICKED: u8 = 6;
pub(crate) const STAYED: u8 = 7;
pub(crate) const ANSWERED: u8 = 8;
pub(crate) const STARTED: u8 = 9;
pub(crate) const GAVE_UP: u8 = 10;
pub(crate) const MOVED: u8 = 11;
pub(crate) const TAKEN: u8 = 12;
pub(crate) const REPORTED: u8 = 13;
pub(crate) const SHARED: u8 = 14;
pub(crate) const LEFT: u8 = 15;
pub(crate) const ADMISSION: u8 = 16;
pub(crate) const SNIFFED: u8 = 17;
pub(crate) const HOST_METRICS: u8 = 18;
/// As [`RUN`], with the costs of classes.
pub(crate) const RUN_WITH_CLASSES: u8 = 19;
/// As [`RUN_WITH_CLASSES`], with the limits of back-ends.
pub(crate) const RUN_WITH_LIMITS: u8 = 20;
pub(crate) const MOST_REQUESTS: u8 = 21;

/// The latest assignments of the chunk by request number, which the end of a request need not repeat. Fixed
/// in size; of two requests that share a place the later one is kept.
pub(crate) struct Recent {
    places: Box<[PlacedRequest]>,
    chunk: u32,
}

#[derive(Clone, Copy)]
pub(crate) struct PlacedRequest {
    pub(crate) number: u64,
    pub(crate) target: TargetId,
    pub(crate) at: Time,
    pub(crate) backend: BackendId,
    /// The chunk of the assignment, from 1; entries of earlier chunks are void.
    chunk: u32,
}

impl Recent {
    const PLACES: usize = 4096;

    pub(crate) fn new() -> Self {
        let empty =
            PlacedRequest { number: 0, target: TargetId(0), at: Time::ZERO, backend: BackendId(0), chunk: 0 };
        Self { places: vec![empty; Self::PLACES].into_boxed_slice(), chunk: 0 }
    }

    /// Forgets everything at the start of a chunk.
    pub(crate) fn begin_chunk(&mut self, sequence: u64) {
        self.chunk = (sequence as u32).wrapping_add(1);
    }

    #[inline]
    pub(crate) fn assigned(&mut self, number: u64, target: TargetId, backend: BackendId, at: Time) {
        let chunk = self.chunk;
        self.places[number as usize % Self::PLACES] = PlacedRequest { number, target, at, backend, chunk };
    }

    #[inline]
    pub(crate) fn find(&self, number: u64) -> Option<&PlacedRequest> {
        let place = &self.places[number as usize % Self::PLACES];
        (place.number == number && place.chunk == self.chunk).then_some(place)
    }
}

pub(crate) fn health_code(health: Health) -> u8 {
    match health {
        Health::Up => 0,
        Health::Draining => 1,
        Health::Down => 2,
    }
}

pub(crate) fn read_health(cursor: &mut ByteCursor<'_>) -> Result<Health, Malformed> {
    match cursor.byte()? {
        0 => Ok(Health::Up),
        1 => Ok(Health::Draining),
        2 => Ok(Health::Down),
        _ => Err(Malformed("a health is none that there is")),
    }
}

pub(crate) fn read_weight(cursor: &mut ByteCursor<'_>) -> Result<Weight, Malformed> {
    let steps: u32 = cursor.small()?;
    Weight::new(f64::from(steps) / 256.0).ok_or(Malformed("a weight is above 65,536"))
}

/// What a back-end told of its load.
pub(crate) fn put_load(out: &mut Vec<u8>, backend: BackendId, load: u32, latency: Option<Nanos>) {
    put_varint(out, u64::from(backend.0));
    put_varint(out, u64::from(load));
    put_varint(out, latency.map_or(0, |latency| latency.as_nanos().saturating_add(1)));
}

pub(crate) fn read_load(cursor: &mut ByteCursor<'_>) -> Result<(BackendId, u32, Option<Nanos>), Malformed> {
    let (backend, load) = (BackendId(cursor.small()?), cursor.small()?);
    Ok((backend, load, cursor.varint()?.checked_sub(1).map(Nanos::new)))
}

/// The two bits of a decision; [`put_decided`] writes the rest.
#[inline]
pub(crate) fn decision_code(decision: Decision) -> u8 {
    match decision {
        Decision::Assign(_) => 0,
        Decision::Poll(_) => 1,
        Decision::Wait => 2,
        Decision::Reject => 3,
    }
}

/// A decision outside an offer.
pub(crate) fn put_decided(out: &mut Vec<u8>, decision: Decision) {
    out.push(decision_code(decision));
    match decision {
        Decision::Assign(b) => put_varint(out, u64::from(b.0)),
        Decision::Poll(candidates) => put_backends(out, candidates.as_slice()),
        Decision::Wait | Decision::Reject => {}
    }
}

/// What follows the two bits of a decision.
pub(crate) fn read_decision(code: u8, cursor: &mut ByteCursor<'_>) -> Result<Decision, Malformed> {
    match code {
        0 => Ok(Decision::Assign(BackendId(cursor.small()?))),
        1 => Ok(Decision::Poll(read_backends(cursor)?)),
        2 => Ok(Decision::Wait),
        3 => Ok(Decision::Reject),
        _ => Err(Malformed("a decision is of no known kind")),
    }
}

pub(crate) fn put_backends(out: &mut Vec<u8>, backends: &[BackendId]) {
    out.push(backends.len() as u8);
    backends.iter().for_each(|b| put_varint(out, u64::from(b.0)));
}

pub(crate) fn read_backends<const MOST: usize>(
    cursor: &mut ByteCursor<'_>,
) -> Result<BackendList<MOST>, Malformed> {
    let count = usize::from(cursor.byte()?);
    if count > MOST {
        return Err(Malformed("more back-ends are named than can be"));
    }
    let mut ids = [BackendId(0); MOST];
    for id in &mut ids[..count] {
        *id = BackendId(cursor.small()?);
    }
    Ok(BackendList::new(ids[..count].iter().copied()))
}
