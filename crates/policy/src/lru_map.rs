//! A map from targets to per-target state with a set capacity: the least recently used target is forgotten.
//!
//! LARD section 2.6: assignments of targets that were not requested lately may be dropped, as those targets have most
//! likely left the back-ends' caches anyway.
//!
//! A target that was used lately keeps its place in the order of use, see [`LruOrder`]. The price is that order within the newest quarter is
//! not exact: a target is forgotten only after at least three quarters of the capacity of other targets were used since it was. While the
//! map holds fewer than 16 targets the order is exact.

use crate::capability::BadState;
use crate::lru_order::LruOrder;
pub use crate::place_table::CacheLine;
use crate::place_table::{NONE, PlaceTable};
use crate::request::TargetId;
use crate::saved::{StateReader, StateWriter};

/// See the module's documentation. With [`CacheLine`] for `A`, slots are aligned to cache lines.
pub struct LruMap<V, A = ()> {
    table: PlaceTable<V, A>,
    order: LruOrder,
}

/// Draws the hash function where nobody wants another one.
const TABLE_SEED: u64 = 0x506C_696D_736F_6C6C;

impl<V: Default> LruMap<V> {
    /// A map of at most `capacity` targets (at least 1, at most 4,000,000,000).
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self::with_seed(capacity, TABLE_SEED)
    }

    /// The same with a hash function that is drawn by this seed: a secret one where clients choose the targets. Time,
    /// memory and the order of [`Self::retain`]'s calls depend on it, nothing else.
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
        Self { table: PlaceTable::new(capacity, table_seed), order: LruOrder::EMPTY }
    }

    /// Number of targets held.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no target is held.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.table.len() == 0
    }

    /// The state of `target`, without counting as a use.
    #[must_use]
    #[inline]
    pub fn peek(&self, target: TargetId) -> Option<&V> {
        self.table.find(target).map(|at| &self.table.slot(at).value)
    }

    /// The state of `target`, which becomes the most recently used; `None` if absent.
    pub fn get_mut(&mut self, target: TargetId) -> Option<&mut V> {
        let at = self.table.find(target)?;
        Some(self.used(at))
    }

    /// The state of `target`, created by `new` if absent, which becomes the most recently used. The second
    /// value is the state evicted to make room.
    #[inline]
    pub fn get_or_insert_with(&mut self, target: TargetId, new: impl FnOnce() -> V) -> (&mut V, Option<V>) {
        match self.table.find(target) {
            Some(at) => (self.used(at), None),
            None => self.insert(target, new()),
        }
    }

    /// Keeps the targets for which `keep` returns true; `keep` may change the state. The order of the calls depends on the hash function; nothing may follow from it.
    pub fn retain(&mut self, mut keep: impl FnMut(TargetId, &mut V) -> bool) {
        for at in self.table.places() {
            // Where one was removed another one may stand now.
            while let Some((target, value)) = self.table.at(at)
                && !keep(target, value)
            {
                self.remove(at);
            }
        }
    }

    /// Writes the targets from the least to the most recently used, each state by `value`.
    pub(crate) fn save(&self, out: &mut StateWriter, value: impl Fn(&V, &mut StateWriter)) {
        out.words([self.len() as u64, u64::from(self.order.moves)]);
        let mut at = self.order.oldest;
        while at != NONE {
            let slot = self.table.slot(at);
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
        let mut map = Self { table: self.table.emptied(), order: LruOrder::EMPTY };
        let count = from.count()?;
        if count > map.table.capacity() {
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
            map.insert(target, value);
            map.table.slot_mut(map.order.newest).moved = moved;
        }
        map.order.moves = moves;
        Ok(map)
    }

    /// Draws another hash function, of a map that is empty.
    pub(crate) fn reseed(&mut self, table_seed: u64) {
        *self = Self::of(self.table.capacity(), table_seed);
    }

    #[inline]
    fn used(&mut self, at: u32) -> &mut V {
        self.order.touch(&mut self.table, at);
        &mut self.table.slot_mut(at).value
    }

    /// Adds a target that is not there. Apart from the look-up, which is to stay small.
    #[cold]
    fn insert(&mut self, target: TargetId, value: V) -> (&mut V, Option<V>) {
        let forgotten = (self.len() >= self.table.capacity()).then(|| self.remove(self.order.oldest));
        let at = self.table.insert(target, value, [&mut self.order.newest, &mut self.order.oldest]);
        self.order.link_newest(&mut self.table, at);
        (&mut self.table.slot_mut(at).value, forgotten)
    }

    fn remove(&mut self, at: u32) -> V {
        self.order.unlink(&mut self.table, at);
        self.table.remove(at, |table, at| self.order.moved(table, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place_table::Slot;
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

    fn sorted(targets: &[u64]) -> Vec<u64> {
        let mut sorted = targets.to_vec();
        sorted.sort_unstable();
        sorted
    }

    /// The targets from this place on, by the links.
    fn linked(map: &LruMap<u64>, mut at: u32, link: impl Fn(&Slot<u64, ()>) -> u32) -> Vec<u64> {
        let mut targets = Vec::new();
        while at != NONE && targets.len() <= map.len() {
            let slot = map.table.slot(at);
            targets.push(slot.target.0);
            at = link(slot);
        }
        targets
    }

    proptest! {
        /// While its table, of one part and of several, grows, and places become free and are taken again.
        #[test]
        fn holds_what_a_list_holds_while_it_grows(
            capacity in prop_oneof![16usize..200, Just(20_000)],
            steps in prop::collection::vec((0u64..400, 0u8..40), 0..600),
        ) {
            let mut map = LruMap::new(capacity);
            let mut model: Vec<u64> = Vec::new();
            for (key, action) in steps {
                if action == 0 {
                    let mut asked = Vec::new();
                    map.retain(|t, _| {
                        asked.push(t.0);
                        t.0 % 3 != key % 3
                    });
                    asked.sort_unstable();
                    prop_assert_eq!(&asked, &sorted(&model), "each one once");
                    model.retain(|k| k % 3 != key % 3);
                } else if let (_, Some(gone)) = map.get_or_insert_with(TargetId(key), || key) {
                    model.retain(|&k| k != gone);
                }
                if action != 0 && !model.contains(&key) {
                    model.push(key);
                }
                prop_assert_eq!(map.len(), model.len());
                let (to_oldest, to_newest) = (linked(&map, map.order.newest, |slot| slot.next), linked(&map, map.order.oldest, |slot| slot.prev));
                prop_assert_eq!(sorted(&to_oldest), sorted(&model));
                prop_assert!(to_oldest.iter().eq(to_newest.iter().rev()));
                for k in 0..400 {
                    prop_assert_eq!(map.peek(TargetId(k)).copied(), model.contains(&k).then_some(k));
                }
            }
        }
    }

    /// A map of several parts that is full.
    #[test]
    fn what_is_forgotten_does_not_depend_on_the_seed() {
        let forgotten = |seed| {
            let mut map = LruMap::with_seed(17_000, seed);
            let forgotten: Vec<u64> = (0..40_000)
                .filter_map(|n| map.get_or_insert_with(TargetId(n * n % 36_007), || n).1)
                .collect();
            let linked = linked(&map, map.order.newest, |slot| slot.next);
            assert_eq!((map.len(), linked.len()), (17_000, 17_000));
            (forgotten, linked)
        };
        let one = forgotten(1);
        assert!(!one.0.is_empty());
        assert!(one == forgotten(2));
    }

    /// Of several parts, saved when it was full.
    #[test]
    fn a_restored_map_goes_on_as_the_saved_one() {
        let (capacity, seed) = (17_000, 3);
        let mut saved = LruMap::with_seed(capacity, seed);
        for n in 0..30_000 {
            saved.get_or_insert_with(TargetId(n * n % 36_007), || n);
        }
        let mut out = StateWriter::default();
        saved.save(&mut out, |&value, out| out.word(value));
        let bytes = out.finish();
        let mut from = StateReader::new(&bytes);
        let mut restored =
            LruMap::<u64>::with_seed(capacity, seed).restored(&mut from, |from| from.word()).unwrap();
        from.finish().unwrap();
        for n in 30_000..60_000 {
            let target = TargetId(n * n % 36_007);
            let (value, forgotten) = saved.get_or_insert_with(target, || n);
            assert_eq!(restored.get_or_insert_with(target, || n), (value, forgotten), "{n}");
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
