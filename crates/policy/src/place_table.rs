//! Targets with their states: an open-addressing table with linear probing that holds the states in place.
//!
//! ```text
//! part       <- the hash as a fraction of 2^64, times the number of parts, rounded down
//! home       <- the same within that part, by the fraction that is left
//! find       from home on, until the target or a free place is met
//! remove     later slots of the part move back into the hole, unless they would pass their home, so that no search ends too early
//! grow       a part of which more than two thirds are used gets twice as many places
//! ```
//!
//! With a million targets most of this is not in the CPU's cache, and a look-up takes as long as memory does. A table of references to states
//! waits for memory twice, one after the other; this one waits once. Parts grow one by one, so that a request waits for one of 64 parts at
//! most, not for the whole table.

use foldhash::fast::FixedState;
use std::hash::BuildHasher as _;

use crate::request::TargetId;

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;
/// `prev` of a free slot.
const FREE: u32 = u32::MAX - 1;
/// Parts of a table whose capacity is above [`WHOLE`]; other tables have one.
const PARTS: usize = 64;
const WHOLE: usize = 16_384;
/// Bits of a place in a part; the other bits of a slot's number are those of its part.
const PLACE_BITS: u32 = 26;
/// All numbers of slots are below [`FREE`].
const MOST_PLACES: usize = (1 << PLACE_BITS) - 2;
/// So many targets find places: they use 93 % of those of a part, far from all by any chance, so that each search meets a free place. Above some 2,800,000,000
/// targets parts are fuller than two thirds.
const MOST_TARGETS: usize = 4_000_000_000;
/// A part begins with at most so many places, and at least half of them.
const FIRST_PLACES: usize = 8;

/// Aligns slots to the CPU's cache lines: worth it where a slot fills one.
#[derive(Debug)]
#[repr(align(64))]
pub struct CacheLine;

/// A target and its state, or a free place. Slots are linked in an order that [`LruOrder`](crate::lru_order::LruOrder) keeps.
pub(crate) struct Slot<V, A> {
    pub(crate) target: TargetId,
    pub(crate) prev: u32,
    pub(crate) next: u32,
    /// Number of the move that brought it to the front.
    pub(crate) moved: u32,
    pub(crate) value: V,
    _aligned_like: [A; 0],
}

impl<V: Default, A> Slot<V, A> {
    fn free() -> Self {
        Self { target: TargetId(0), prev: FREE, next: NONE, moved: 0, value: V::default(), _aligned_like: [] }
    }
}

impl<V, A> Slot<V, A> {
    #[inline]
    fn is_free(&self) -> bool {
        self.prev == FREE
    }
}

struct Part<V, A> {
    slots: Vec<Slot<V, A>>,
    len: usize,
}

/// See the module's documentation. A slot has a number: that of its part, and of its place in it.
pub(crate) struct PlaceTable<V, A> {
    parts: Vec<Part<V, A>>,
    len: usize,
    capacity: usize,
    table_seed: u64,
    hasher: FixedState,
}

impl<V: Default, A> PlaceTable<V, A> {
    /// A table of at most `capacity` targets (at least 1, at most 4,000,000,000), with the hash function that is drawn by this seed.
    pub(crate) fn new(capacity: usize, table_seed: u64) -> Self {
        let capacity = capacity.clamp(1, MOST_TARGETS);
        let parts = if capacity > WHOLE { PARTS } else { 1 };
        let places = first_places(capacity / parts);
        let part = || Part { slots: free_slots(places), len: 0 };
        let parts = std::iter::repeat_with(part).take(parts).collect();
        Self { parts, len: 0, capacity, table_seed, hasher: FixedState::with_seed(table_seed) }
    }

    /// An empty table of this capacity and hash function.
    pub(crate) fn emptied(&self) -> Self {
        Self::new(self.capacity, self.table_seed)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Number of targets.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The slot with this number.
    #[inline]
    pub(crate) fn slot(&self, at: u32) -> &Slot<V, A> {
        let (part, place) = part_and_place(at);
        &self.parts[part].slots[place]
    }

    #[inline]
    pub(crate) fn slot_mut(&mut self, at: u32) -> &mut Slot<V, A> {
        let (part, place) = part_and_place(at);
        &mut self.parts[part].slots[place]
    }

    /// The slot of the target.
    #[inline]
    pub(crate) fn find(&self, target: TargetId) -> Option<u32> {
        let (number, rest) = self.part_of(target);
        let part = &self.parts[number];
        let mut place = part.home(rest);
        loop {
            let slot = &part.slots[place];
            if slot.is_free() {
                return None;
            }
            if slot.target == target {
                return Some(slot_number(number, place));
            }
            place = part.after(place);
        }
    }

    /// Adds a target that is not there, linked to nothing. Returns the number of its slot.
    ///
    /// If its part grows for that, links keep their order, and `ends` are the new numbers of the slots that they were the numbers of.
    pub(crate) fn insert(&mut self, target: TargetId, value: V, ends: [&mut u32; 2]) -> u32 {
        let (number, rest) = self.part_of(target);
        if self.parts[number].is_full() {
            self.grow(number, ends);
        }
        let part = &mut self.parts[number];
        let place = part.free_place(rest);
        part.slots[place] = Slot { target, prev: NONE, next: NONE, moved: 0, value, _aligned_like: [] };
        part.len += 1;
        self.len += 1;
        slot_number(number, place)
    }

    fn grow(&mut self, number: usize, ends: [&mut u32; 2]) {
        let part = &mut self.parts[number];
        let larger = free_slots((2 * part.slots.len()).min(MOST_PLACES));
        let old = std::mem::replace(&mut part.slots, larger);
        let mut now_at = vec![NONE; old.len()];
        for (slot, now_at) in old.into_iter().zip(&mut now_at).filter(|(slot, _)| !slot.is_free()) {
            let (_, rest) = self.part_of(slot.target);
            let part = &mut self.parts[number];
            let place = part.free_place(rest);
            *now_at = slot_number(number, place);
            part.slots[place] = slot;
        }
        let is_here = |at: u32| at != NONE && part_and_place(at).0 == number;
        let now = |at: u32| now_at[part_and_place(at).1];
        for end in ends.into_iter().filter(|end| is_here(**end)) {
            *end = now(*end);
        }
        for &at in now_at.iter().filter(|&&at| at != NONE) {
            let Slot { prev, next, .. } = *self.slot(at);
            match prev {
                NONE => {}
                prev if is_here(prev) => self.slot_mut(at).prev = now(prev),
                prev => self.slot_mut(prev).next = at,
            }
            match next {
                NONE => {}
                next if is_here(next) => self.slot_mut(at).next = now(next),
                next => self.slot_mut(next).prev = at,
            }
        }
    }

    /// Removes a slot that is in no list. `moved` gets the new number of each slot that moves.
    pub(crate) fn remove(&mut self, at: u32, mut moved: impl FnMut(&mut Self, u32)) -> V {
        let (number, mut hole) = part_and_place(at);
        let part = &mut self.parts[number];
        let removed = std::mem::replace(&mut part.slots[hole], Slot::free());
        part.len -= 1;
        self.len -= 1;
        let mut place = self.parts[number].after(hole);
        while !self.parts[number].slots[place].is_free() {
            let (_, rest) = self.part_of(self.parts[number].slots[place].target);
            let part = &mut self.parts[number];
            if part.distance(part.home(rest), place) >= part.distance(hole, place) {
                part.slots.swap(hole, place);
                moved(self, slot_number(number, hole));
                hole = place;
            }
            place = self.parts[number].after(place);
        }
        removed.value
    }

    /// The numbers of all places, each part from behind a free one on: what is removed there has only such slots move up that come later.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> + use<V, A> {
        let of = |(number, part): (usize, &Part<V, A>)| {
            let (places, free) = (part.slots.len(), part.slots.iter().position(Slot::is_free).unwrap_or(0));
            (free..places).chain(0..free).map(move |place| slot_number(number, place))
        };
        self.parts.iter().enumerate().map(of).collect::<Vec<_>>().into_iter().flatten()
    }

    /// The target in this place, and its state.
    pub(crate) fn at(&mut self, at: u32) -> Option<(TargetId, &mut V)> {
        let slot = self.slot_mut(at);
        (!slot.is_free()).then_some((slot.target, &mut slot.value))
    }

    /// The number of the part of a target, and what is left of its hash.
    #[inline]
    fn part_of(&self, target: TargetId) -> (usize, u64) {
        let product = u128::from(self.hasher.hash_one(target.0)) * self.parts.len() as u128;
        ((product >> 64) as usize, product as u64)
    }
}

impl<V, A> Part<V, A> {
    fn is_full(&self) -> bool {
        (self.len + 1) * 3 > self.slots.len() * 2 && self.slots.len() < MOST_PLACES
    }

    /// Where the search for a target begins.
    #[inline]
    fn home(&self, rest: u64) -> usize {
        ((u128::from(rest) * self.slots.len() as u128) >> 64) as usize
    }

    #[inline]
    fn free_place(&self, rest: u64) -> usize {
        let mut place = self.home(rest);
        while !self.slots[place].is_free() {
            place = self.after(place);
        }
        place
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        if place + 1 < self.slots.len() { place + 1 } else { 0 }
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.slots.len() - from }
    }
}

#[inline]
fn part_and_place(at: u32) -> (usize, usize) {
    ((at >> PLACE_BITS) as usize, (at & ((1 << PLACE_BITS) - 1)) as usize)
}

#[inline]
fn slot_number(part: usize, place: usize) -> u32 {
    (part as u32) << PLACE_BITS | place as u32
}

/// So many that doubling them ends at most a quarter above what so many targets need: one and a half times as many and, as parts differ by
/// chance, and anew whenever targets are exchanged, six standard deviations more.
fn first_places(targets: usize) -> usize {
    let needed = (targets + 6 * targets.isqrt() + 1) * 3 / 2 + 1;
    let mut places = needed;
    while places > FIRST_PLACES {
        places = places.div_ceil(2);
    }
    places.max(FIRST_PLACES / 2)
}

fn free_slots<V: Default, A>(places: usize) -> Vec<Slot<V, A>> {
    std::iter::repeat_with(Slot::free).take(places).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_doubled_to_little_more_than_needed() {
        for targets in [1, 1_000, 15_625, 1_000_000, MOST_TARGETS / PARTS / 2] {
            let mut places = first_places(targets);
            while (targets + 1) * 3 > places * 2 {
                places *= 2;
            }
            let used = targets as f64 / places as f64;
            assert!(places <= FIRST_PLACES || (0.45..=0.667).contains(&used), "{targets} in {places}");
        }
    }

    #[test]
    fn every_slot_has_a_number() {
        let last = slot_number(PARTS - 1, MOST_PLACES - 1);
        assert!(last < FREE && part_and_place(last) == (PARTS - 1, MOST_PLACES - 1));
        const { assert!(PARTS * MOST_PLACES > MOST_TARGETS) };
    }
}
