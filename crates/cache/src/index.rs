//! From object numbers to slots of a slab.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// No slot; ends lists.
pub(crate) const NIL: u32 = u32::MAX;

/// The most nodes of a slab: slots and renumbered times of use must fit 32 bits.
pub(crate) const MAX_NODES: usize = 1 << 31;

/// A node of a slab, as the index needs it.
pub(crate) trait HasId {
    /// The object's number.
    fn id(&self) -> u64;
}

/// A hash table of slots, which keeps the numbers themselves only in the slab. The seed is fixed,
/// so the layout, and with it the run time, is the same in every run; nothing iterates over it.
///
/// Linear probing in one array of slots and parts of hashes touches fewer cache lines, but was a
/// quarter to a half slower on `benches/cache`: the lengths of probes are mispredicted.
pub(crate) struct Index {
    table: HashTable<u32>,
}

/// The hash of an object's number, the same in every run.
#[inline]
pub(crate) fn hash(id: u64) -> u64 {
    FixedState::with_seed(0).hash_one(id)
}

impl Index {
    pub(crate) fn new() -> Self {
        Self { table: HashTable::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn clear(&mut self) {
        self.table.clear();
    }

    /// The slot of `id`, whose hash is `hash`.
    #[inline]
    pub(crate) fn find<N: HasId>(&self, nodes: &[N], id: u64, hash: u64) -> Option<u32> {
        self.table.find(hash, |&slot| nodes[slot as usize].id() == id).copied()
    }

    /// Adds `slot`, whose node is in place and whose object is not yet in the index.
    #[inline]
    pub(crate) fn add<N: HasId>(&mut self, nodes: &[N], slot: u32, hash_of_id: u64) {
        self.table.insert_unique(hash_of_id, slot, |&slot| hash(nodes[slot as usize].id()));
    }

    /// Removes `slot`. Its node must still be in place.
    #[inline]
    pub(crate) fn take<N: HasId>(&mut self, nodes: &[N], slot: u32) {
        let hash = hash(nodes[slot as usize].id());
        if let Ok(entry) = self.table.find_entry(hash, |&found| found == slot) {
            entry.remove();
        }
    }
}
