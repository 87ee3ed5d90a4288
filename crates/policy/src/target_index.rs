//! Where each target's state stands: an open-addressing table with linear probing.
//!
//! ```text
//! entry      <- the slot of the target's state, and in the bits that this leaves of 32 a part of the target's hash
//! home       <- the first bits of the hash: as many as number the entries
//! find       from home on, until an entry is empty
//! remove     later entries move up, unless they would pass their home, so that no search ends too early
//! grow       above three quarters: twice as many entries
//! ```
//!
//! With a million targets most of this is not in the CPU's cache. A general hash table keeps its control bytes apart from its entries, and so
//! waits for memory once more for each look-up; here four bytes for each entry are all.

/// No entry: no slot has this number, and all slots are below the number of entries less one.
const EMPTY: u32 = u32::MAX;
/// The smallest table has 2 to the power of this many entries.
const FEWEST_BITS: u32 = 3;
/// Enough for all slots.
const MOST_BITS: u32 = 32;

/// See the module's documentation.
pub(crate) struct TargetIndex {
    entries: Vec<u32>,
    bits: u32,
    len: usize,
}

impl TargetIndex {
    pub(crate) fn new() -> Self {
        Self::of_bits(FEWEST_BITS)
    }

    fn of_bits(bits: u32) -> Self {
        Self { entries: vec![EMPTY; 1 << bits], bits, len: 0 }
    }

    /// Number of targets.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The slot of the target that has this hash and for whose slot `is_it` returns true.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let sought = self.entry(hash, 0);
        let mut at = self.home(hash);
        loop {
            let entry = self.entries[at];
            if entry == EMPTY {
                return None;
            }
            let slot = self.slot(entry);
            if entry ^ slot == sought && is_it(slot) {
                return Some(slot);
            }
            at = self.after(at);
        }
    }

    /// Whether there has to be a larger one ([`Self::larger`]) before the next [`Self::insert`].
    pub(crate) fn is_full(&self) -> bool {
        (self.len + 1) * 4 > self.entries.len() * 3 && self.bits < MOST_BITS
    }

    /// A larger one with the same targets, each with its hash and its slot.
    pub(crate) fn larger(&self, targets: impl Iterator<Item = (u64, u32)>) -> Self {
        let mut larger = Self::of_bits(self.bits + 1);
        targets.for_each(|(hash, slot)| larger.insert(hash, slot));
        larger
    }

    /// Adds a target that is not there to an index that is not full. Slots are numbered from 0 without gaps, so that a slot has no more bits
    /// than the number of an entry.
    pub(crate) fn insert(&mut self, hash: u64, slot: u32) {
        debug_assert!((slot as usize) < self.entries.len() - 1, "slot {slot} of {}", self.entries.len());
        let mut at = self.home(hash);
        while self.entries[at] != EMPTY {
            at = self.after(at);
        }
        self.entries[at] = self.entry(hash, slot);
        self.len += 1;
    }

    /// Removes the target that has this slot, and is there; `hash_of` returns the hash of the target that has a slot.
    pub(crate) fn remove(&mut self, slot: u32, hash_of: impl Fn(u32) -> u64) {
        let hash = hash_of(slot);
        let mut hole = self.home(hash);
        while self.entries[hole] != self.entry(hash, slot) {
            if self.entries[hole] == EMPTY {
                debug_assert!(false, "no entry for slot {slot}");
                return;
            }
            hole = self.after(hole);
        }
        let mut at = self.after(hole);
        while self.entries[at] != EMPTY {
            let home = self.home(hash_of(self.slot(self.entries[at])));
            if self.distance(home, at) >= self.distance(hole, at) {
                self.entries[hole] = self.entries[at];
                hole = at;
            }
            at = self.after(at);
        }
        self.entries[hole] = EMPTY;
        self.len -= 1;
    }

    /// What stands for a slot whose target has this hash: what its home leaves of the hash, from the other end.
    #[inline]
    fn entry(&self, hash: u64, slot: u32) -> u32 {
        (hash << self.bits) as u32 | slot
    }

    #[inline]
    fn slot(&self, entry: u32) -> u32 {
        entry & (self.entries.len() - 1) as u32
    }

    /// Where the search for a target begins.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        (hash >> (u64::BITS - self.bits)) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.entries.len() - 1)
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.entries.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list. Few different hashes, so that many have the same home, or the same hash; the largest ones, whose
        /// searches go on at the first entry.
        #[test]
        fn finds_what_a_list_has(steps in prop::collection::vec((0u64..24, 0usize..40, 0..3), 0..300)) {
            let mut index = TargetIndex::new();
            let mut list: Vec<(u64, u32)> = Vec::new();
            for (n, at, action) in steps {
                let hash = u64::MAX - ((n / 2) << 58) - n % 2;
                if action > 0 {
                    if index.is_full() {
                        index = index.larger(list.iter().copied());
                    }
                    let slot = (0..).find(|&slot| list.iter().all(|held| held.1 != slot)).unwrap();
                    index.insert(hash, slot);
                    list.push((hash, slot));
                } else if at < list.len() {
                    let slot = list[at].1;
                    index.remove(slot, |slot| list.iter().find(|held| held.1 == slot).unwrap().0);
                    let (gone, _) = list.remove(at);
                    prop_assert_eq!(index.find(gone, |found| found == slot), None);
                }
                prop_assert_eq!(index.len(), list.len());
                for &(hash, slot) in &list {
                    prop_assert_eq!(index.find(hash, |s| s == slot), Some(slot));
                    prop_assert_eq!(index.find(hash, |_| false), None);
                }
            }
        }
    }
}
