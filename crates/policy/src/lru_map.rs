//! A map from targets to per-target state with a set capacity: the least recently used target is forgotten.
//!
//! LARD section 2.6: assignments of targets that were not requested lately may be dropped, as those targets have most
//! likely left the back-ends' caches anyway.
//!
//! The order of use is kept in a list, but a target that is still in its newest quarter stays where it is: with a
//! million targets, moving it would touch three more places that are not in the CPU's cache. The price is that order
//! within that quarter is not exact: a target is forgotten only after at least three quarters of the capacity of other
//! targets were used since it was. While the map holds fewer than 16 targets the order is exact.

use foldhash::fast::FixedState;
use std::hash::BuildHasher as _;

use crate::capability::BadState;
use crate::request::TargetId;
use crate::saved::{StateReader, StateWriter};
use crate::target_index::TargetIndex;

const NONE: u32 = u32::MAX;
/// `prev` of a free slot.
const FREE: u32 = u32::MAX - 1;

/// Aligns slots to the CPU's cache lines: worth it where a slot fills one.
#[derive(Debug)]
#[repr(align(64))]
pub struct CacheLine;

/// Slots are linked from the most to the least recently used; free slots are chained through `next`.
pub(crate) struct Slot<V, A> {
    target: TargetId,
    prev: u32,
    next: u32,
    /// Number of the move that brought it to the front: at most as many slots are ahead of it as moves came after.
    moved: u32,
    value: V,
    _aligned_like: [A; 0],
}

/// See the module's documentation. With [`CacheLine`] for `A`, slots are aligned to cache lines.
pub struct LruMap<V, A = ()> {
    index: TargetIndex,
    slots: Vec<Slot<V, A>>,
    newest: u32,
    oldest: u32,
    free: u32,
    capacity: usize,
    moves: u32,
    table_seed: u64,
    hasher: FixedState,
}

/// Draws the hash function where nobody wants another one.
const TABLE_SEED: u64 = 0x506C_696D_736F_6C6C;

impl<V: Default> LruMap<V> {
    /// A map of at most `capacity` targets (at least 1, at most 2^32 − 3).
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self::with_seed(capacity, TABLE_SEED)
    }

    /// The same with a hash function that is drawn by this seed: a secret one where clients choose the targets. Nothing but
    /// the time that it takes depends on it.
    #[must_use]
    pub fn with_seed(capacity: usize, table_seed: u64) -> Self {
        Self::of(capacity, table_seed)
    }
}

impl<V: Default> LruMap<V, CacheLine> {
    /// The same with slots that are aligned to cache lines.
    #[must_use]
    pub fn in_cache_lines(capacity: usize) -> Self {
        Self::of(capacity, TABLE_SEED)
    }
}

impl<V: Default, A> LruMap<V, A> {
    fn of(capacity: usize, table_seed: u64) -> Self {
        Self {
            index: TargetIndex::new(),
            slots: Vec::new(),
            newest: NONE,
            oldest: NONE,
            free: NONE,
            capacity: capacity.clamp(1, FREE as usize - 1),
            moves: 0,
            table_seed,
            hasher: FixedState::with_seed(table_seed),
        }
    }

    /// Number of targets held.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no target is held.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.index.len() == 0
    }

    /// The state of `target`, without counting as a use.
    #[must_use]
    #[inline]
    pub fn peek(&self, target: TargetId) -> Option<&V> {
        let at = self.find(self.hasher.hash_one(target.0), target)?;
        Some(&self.slots[at as usize].value)
    }

    /// The state of `target`, which becomes the most recently used; `None` if absent.
    pub fn get_mut(&mut self, target: TargetId) -> Option<&mut V> {
        let at = self.find(self.hasher.hash_one(target.0), target)?;
        self.touch(at);
        Some(self.value_at(at))
    }

    /// The state of `target`, created by `new` if absent, which becomes the most recently used. The second
    /// value is the state evicted to make room.
    #[inline]
    pub fn get_or_insert_with(&mut self, target: TargetId, new: impl FnOnce() -> V) -> (&mut V, Option<V>) {
        let hash = self.hasher.hash_one(target.0);
        if let Some(at) = self.find(hash, target) {
            self.touch(at);
            return (self.value_at(at), None);
        }
        let forgotten = if self.index.len() >= self.capacity { self.pop_oldest() } else { None };
        if self.index.is_full() {
            // No slot is free: there were never more targets than now.
            let hashes = self.slots.iter().map(|slot| self.hasher.hash_one(slot.target.0));
            self.index = self.index.larger(hashes.zip(0..));
        }
        let at = self.take_slot(target, new());
        self.link_newest(at);
        self.index.insert(hash, at);
        (self.value_at(at), forgotten)
    }

    /// Keeps the targets for which `keep` returns true; `keep` may change the state. The order of calls does
    /// not depend on hashes.
    pub fn retain(&mut self, mut keep: impl FnMut(TargetId, &mut V) -> bool) {
        for at in 0..self.slots.len() as u32 {
            let slot = &mut self.slots[at as usize];
            let target = slot.target;
            if slot.prev != FREE && !keep(target, &mut slot.value) {
                self.remove_slot(at);
            }
        }
    }

    /// Writes the targets from the least to the most recently used, each state by `value`.
    pub(crate) fn save(&self, out: &mut StateWriter, value: impl Fn(&V, &mut StateWriter)) {
        out.words([self.index.len() as u64, u64::from(self.moves)]);
        let mut at = self.oldest;
        while at != NONE {
            let slot = &self.slots[at as usize];
            out.words([slot.target.0, u64::from(slot.moved)]);
            value(&slot.value, out);
            at = slot.prev;
        }
    }

    /// Reads back into an empty map of the same capacity and seed what [`LruMap::save`] wrote.
    pub(crate) fn restored(
        &self,
        from: &mut StateReader<'_>,
        value: impl Fn(&mut StateReader<'_>) -> Result<V, BadState>,
    ) -> Result<Self, BadState> {
        const COUNTER: BadState = BadState("a counter of moves is above 2^32");
        let mut map = Self::of(self.capacity, self.table_seed);
        let count = from.count()?;
        if count > map.capacity {
            return Err(BadState("it holds more targets than `max_targets`"));
        }
        let moves = u32::try_from(from.word()?).map_err(|_| COUNTER)?;
        for _ in 0..count {
            let target = TargetId(from.word()?);
            let moved = u32::try_from(from.word()?).map_err(|_| COUNTER)?;
            if map.peek(target).is_some() {
                return Err(BadState("it holds a target twice"));
            }
            let value = value(from)?;
            map.get_or_insert_with(target, || value);
            let newest = map.newest;
            map.slots[newest as usize].moved = moved;
        }
        map.moves = moves;
        Ok(map)
    }

    /// Draws another hash function, of a map that is empty.
    pub(crate) fn reseed(&mut self, table_seed: u64) {
        *self = Self::of(self.capacity, table_seed);
    }

    #[inline]
    fn find(&self, hash: u64, target: TargetId) -> Option<u32> {
        self.index.find(hash, |at| self.slots[at as usize].target == target)
    }

    #[inline]
    fn value_at(&mut self, at: u32) -> &mut V {
        &mut self.slots[at as usize].value
    }

    #[inline]
    fn touch(&mut self, at: u32) {
        // A wrapped counter can only make the distance look shorter once in 2^32 moves, and the order coarser then.
        let ahead_at_most = self.moves.wrapping_sub(self.slots[at as usize].moved) as usize;
        let near = if self.index.len() < 16 { 1 } else { self.index.len() / 4 };
        if ahead_at_most >= near {
            self.unlink(at);
            self.link_newest(at);
        }
    }

    fn pop_oldest(&mut self) -> Option<V> {
        (self.oldest != NONE).then(|| self.remove_slot(self.oldest))
    }

    fn remove_slot(&mut self, at: u32) -> V {
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.index.remove(at, |at| hasher.hash_one(slots[at as usize].target.0));
        self.unlink(at);
        let slot = &mut self.slots[at as usize];
        (slot.prev, slot.next) = (FREE, self.free);
        self.free = at;
        std::mem::take(&mut slot.value)
    }

    fn take_slot(&mut self, target: TargetId, value: V) -> u32 {
        let slot = Slot { target, prev: NONE, next: NONE, moved: 0, value, _aligned_like: [] };
        if self.free == NONE {
            self.slots.push(slot);
            return (self.slots.len() - 1) as u32;
        }
        let at = self.free;
        self.free = self.slots[at as usize].next;
        self.slots[at as usize] = slot;
        at
    }

    #[inline]
    fn unlink(&mut self, at: u32) {
        let Slot { prev, next, .. } = self.slots[at as usize];
        match prev {
            NONE => self.newest = next,
            p => self.slots[p as usize].next = next,
        }
        match next {
            NONE => self.oldest = prev,
            n => self.slots[n as usize].prev = prev,
        }
    }

    #[inline]
    fn link_newest(&mut self, at: u32) {
        self.moves = self.moves.wrapping_add(1);
        let slot = &mut self.slots[at as usize];
        (slot.prev, slot.next, slot.moved) = (NONE, self.newest, self.moves);
        match self.newest {
            NONE => self.oldest = at,
            n => self.slots[n as usize].prev = at,
        }
        self.newest = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn forgets_the_least_recently_used() {
        let mut map = LruMap::new(2);
        assert_eq!(*map.get_or_insert_with(TargetId(1), || 'a').0, 'a');
        map.get_or_insert_with(TargetId(2), || 'b');
        map.get_or_insert_with(TargetId(1), || 'x'); // a use, not an insertion
        assert_eq!(map.get_or_insert_with(TargetId(3), || 'c').1, Some('b'));
        assert_eq!(map.peek(TargetId(1)), Some(&'a'));
        assert_eq!(map.peek(TargetId(2)), None);
    }

    proptest! {
        /// Against the obvious model: a vector ordered by use.
        #[test]
        fn behaves_like_a_vector_ordered_by_use(
            capacity in 1usize..6,
            steps in prop::collection::vec((0u64..10, 0u8..8), 0..200),
        ) {
            let mut map = LruMap::new(capacity);
            let mut model: Vec<(u64, u64)> = Vec::new();
            for (n, (key, action)) in steps.into_iter().enumerate() {
                if action == 0 {
                    map.retain(|t, _| t.0 % 2 != key % 2);
                    model.retain(|(k, _)| k % 2 != key % 2);
                    continue;
                }
                let (value, forgotten) = map.get_or_insert_with(TargetId(key), || n as u64);
                let value = *value;
                let old = model.iter().position(|(k, _)| *k == key).map(|i| model.remove(i));
                let expected = if old.is_none() && model.len() == capacity { Some(model.remove(0).1) } else { None };
                model.push(old.unwrap_or((key, n as u64)));
                prop_assert_eq!(forgotten, expected);
                prop_assert_eq!(value, model.last().unwrap().1);
                prop_assert_eq!(map.len(), model.len());
            }
            for (key, value) in model {
                prop_assert_eq!(map.peek(TargetId(key)), Some(&value));
            }
        }
    }

    proptest! {
        /// While its index grows, and slots become free and are taken again.
        #[test]
        fn holds_what_a_list_holds_while_it_grows(
            capacity in 16usize..200,
            steps in prop::collection::vec((0u64..400, 0u8..40), 0..600),
        ) {
            let mut map = LruMap::new(capacity);
            let mut model: Vec<u64> = Vec::new();
            for (key, action) in steps {
                if action == 0 {
                    map.retain(|t, _| t.0 % 3 != key % 3);
                    model.retain(|k| k % 3 != key % 3);
                } else if let (_, Some(gone)) = map.get_or_insert_with(TargetId(key), || key) {
                    model.retain(|&k| k != gone);
                }
                if action != 0 && !model.contains(&key) {
                    model.push(key);
                }
                prop_assert_eq!(map.len(), model.len());
                for k in 0..400 {
                    prop_assert_eq!(map.peek(TargetId(k)).copied(), model.contains(&k).then_some(k));
                }
            }
        }
    }

    proptest! {
        /// The promise for larger maps: what is forgotten was not used while three quarters of the capacity of other
        /// targets were.
        #[test]
        fn forgets_only_what_was_long_unused(
            capacity in 16usize..80,
            keys in prop::collection::vec(0u64..120, 0..1500),
        ) {
            let mut map = LruMap::new(capacity);
            let mut uses: Vec<u64> = Vec::new();
            for key in keys {
                if let (_, Some(gone)) = map.get_or_insert_with(TargetId(key), || key) {
                    let last = uses.iter().rposition(|&k| k == gone).unwrap();
                    let since: std::collections::BTreeSet<u64> = uses[last + 1..].iter().copied().collect();
                    prop_assert!(since.len() >= capacity * 3 / 4 - 1, "{} of {}", since.len(), capacity);
                }
                uses.push(key);
            }
        }
    }
}
