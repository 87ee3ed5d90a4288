//! What recorder and decoder must agree on: tags, chunk layout, and the memory of recent assignments.
//!
//! A chunk is `sequence, time, next number` as varints, the state of the run (0 for none, or 1 and a header), then
//! events. Every chunk can be read without the ones before it.

use plimsoll_policy::{BackendId, Health, TargetId, Time, Weight};

use crate::bytes::{Cursor, Malformed, put_text, put_varint};
use crate::event::{BackendEntry, RunHeader};

/// An offer or the answer to a poll; flags below.
pub(crate) const OFFER: u8 = 0b1000_0000;
/// In an offer: the number is not the next one, and follows.
pub(crate) const OFFER_NUMBER: u8 = 0b0000_0001;
/// In an offer: the client is not that of the offer before, and follows.
pub(crate) const OFFER_CLIENT: u8 = 0b0000_0010;
/// In an offer: flags of size, kind and class follow.
pub(crate) const OFFER_MORE: u8 = 0b0000_0100;
/// In an offer: answers to a poll follow.
pub(crate) const OFFER_POLLED: u8 = 0b0000_1000;
/// In an offer: where the two bits of the decision are: assign, poll, wait, reject.
pub(crate) const OFFER_DECISION_SHIFT: u8 = 4;

/// In the flags of an offer: a size follows.
pub(crate) const MORE_SIZE: u8 = 1;
/// In the flags of an offer: computed on demand.
pub(crate) const MORE_DYNAMIC: u8 = 2;
/// In the flags of an offer: a class follows.
pub(crate) const MORE_CLASS: u8 = 4;

/// The end of a request; flags below.
pub(crate) const DONE: u8 = 0b0100_0000;
/// In an end: target and back-end follow, for the decoder does not remember them.
pub(crate) const DONE_WHAT: u8 = 0b0000_0001;
/// In an end: the response time follows, for it is not the time since the assignment.
pub(crate) const DONE_TIME: u8 = 0b0000_0010;
/// In an end: a size follows.
pub(crate) const DONE_SIZE: u8 = 0b0000_0100;
/// In an end: the request was lost.
pub(crate) const DONE_FAILED: u8 = 0b0000_1000;

pub(crate) const RUN: u8 = 1;
pub(crate) const FOREIGN: u8 = 2;
pub(crate) const HEALTH: u8 = 3;
pub(crate) const WEIGHT: u8 = 4;
pub(crate) const JOINED: u8 = 5;
pub(crate) const TICKED: u8 = 6;
pub(crate) const STAYED: u8 = 7;

/// More requests than this are not under way when a run starts: a header that claims it is damaged.
const MOST_LOAD: u64 = 1 << 24;

/// The last assignments of the chunk, by request number: what the end of a request need not repeat. Fixed in size;
/// of two requests that share a place the later one is remembered.
pub(crate) struct Recent {
    places: Box<[Place]>,
    chunk: u32,
}

#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) number: u64,
    pub(crate) target: TargetId,
    pub(crate) at: Time,
    pub(crate) backend: BackendId,
    /// The chunk that the assignment is in, from 1; places of earlier chunks do not count.
    chunk: u32,
}

impl Recent {
    const PLACES: usize = 4096;

    pub(crate) fn new() -> Self {
        let empty = Place { number: 0, target: TargetId(0), at: Time::ZERO, backend: BackendId(0), chunk: 0 };
        Self { places: vec![empty; Self::PLACES].into_boxed_slice(), chunk: 0 }
    }

    /// Forgets everything: a chunk begins.
    pub(crate) fn begin_chunk(&mut self, sequence: u64) {
        self.chunk = (sequence as u32).wrapping_add(1);
    }

    #[inline]
    pub(crate) fn assigned(&mut self, number: u64, target: TargetId, backend: BackendId, at: Time) {
        let chunk = self.chunk;
        self.places[number as usize % Self::PLACES] = Place { number, target, at, backend, chunk };
    }

    #[inline]
    pub(crate) fn find(&self, number: u64) -> Option<&Place> {
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

pub(crate) fn read_health(cursor: &mut Cursor<'_>) -> Result<Health, Malformed> {
    match cursor.byte()? {
        0 => Ok(Health::Up),
        1 => Ok(Health::Draining),
        2 => Ok(Health::Down),
        _ => Err(Malformed("a health is none that there is")),
    }
}

pub(crate) fn read_weight(cursor: &mut Cursor<'_>) -> Result<Weight, Malformed> {
    let steps: u32 = cursor.small()?;
    Weight::new(f64::from(steps) / 256.0).ok_or(Malformed("a weight is above 65,536"))
}

pub(crate) fn put_header(out: &mut Vec<u8>, header: &RunHeader, loads: &[u32]) {
    put_text(out, &header.policy);
    put_varint(out, header.settings.len() as u64);
    for (key, value) in &header.settings {
        put_text(out, key);
        put_text(out, value);
    }
    put_varint(out, header.seed);
    put_text(out, &header.cache);
    put_varint(out, header.cache_bytes);
    put_varint(out, header.started_unix_ns);
    put_varint(out, header.backends.len() as u64);
    for (entry, load) in header.backends.iter().zip(loads) {
        put_text(out, &entry.name);
        out.extend_from_slice(&entry.key.to_le_bytes());
        put_varint(out, u64::from(entry.weight.steps()));
        out.push(health_code(entry.health));
        put_varint(out, u64::from(*load));
    }
}

pub(crate) fn read_header(cursor: &mut Cursor<'_>) -> Result<RunHeader, Malformed> {
    let policy = cursor.text()?;
    let mut settings = Vec::new();
    for _ in 0..cursor.varint()? {
        settings.push((cursor.text()?, cursor.text()?));
    }
    let (seed, cache) = (cursor.varint()?, cursor.text()?);
    let (cache_bytes, started_unix_ns) = (cursor.varint()?, cursor.varint()?);
    let mut backends = Vec::new();
    let mut load_left = MOST_LOAD;
    let count: u16 = cursor.small()?;
    for _ in 0..count {
        let (name, key) = (cursor.text()?, cursor.word()?);
        let (weight, health) = (read_weight(cursor)?, read_health(cursor)?);
        let load: u32 = cursor.small()?;
        load_left = load_left
            .checked_sub(u64::from(load))
            .ok_or(Malformed("more than 16,777,216 requests are under way"))?;
        backends.push(BackendEntry { name, key, weight, health, load });
    }
    Ok(RunHeader { policy, settings, seed, cache, cache_bytes, backends, started_unix_ns })
}
