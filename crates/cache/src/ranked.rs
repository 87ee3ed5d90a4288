//! Caches whose order of eviction is a value per object, with a lazy heap: LFU and the
//! Greedy-Dual family.

use std::marker::PhantomData;

use crate::cache::Cache;
use crate::heap::{Heap, HeapEntry, HeapKey};
use crate::index::{HasId, Index, MAX_NODES, hash};

/// How a [`RankedCache`] values its objects. The object with the smallest value is the victim; of
/// several, the one whose last use is longest ago.
pub trait Rank: Send {
    /// Whether the value of an evicted object becomes the cache's inflation value L, on which later values
    /// build; else L stays 0.
    const INFLATES: bool;

    /// Whether a new object competes with those present: it gets its value before room is made, and
    /// if that is below the victim's before there is room, the new object is not admitted and its
    /// value becomes L. Else room is made whatever it takes, and the new object's value built upon
    /// the L that came of it.
    const NEWCOMER_COMPETES: bool;

    /// The power of two at which L is rebased, see [`RankedCache`].
    const REBASE_AT: f64;

    /// The value of an object of `size_bytes` (at least 1) on its `uses`-th use (from 1) when the
    /// inflation value is `inflation`. It must not fall as `inflation` or `uses` rise, and must be
    /// at least `inflation`.
    fn value(inflation: f64, uses: u32, size_bytes: u64) -> f64;
}

/// Aligned so that no node straddles two cache lines.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct RankedNode {
    id: u64,
    size_bytes: u64,
    value: f64,
    /// The clock at the last use.
    time: u32,
    /// Uses since it came, at most `u32::MAX`; 0 marks a dead node, whose object is gone but whose
    /// heap entry is not.
    uses: u32,
}

impl HasId for RankedNode {
    #[inline]
    fn id(&self) -> u64 {
        self.id
    }
}

impl RankedNode {
    #[inline]
    fn key(&self) -> HeapKey {
        HeapKey::new(self.value, self.time)
    }
}

/// A cache that evicts the object of the smallest value, as given by a [`Rank`].
///
/// # The heap is lazy, and exact
/// A hit writes the object's new key (value, time of use) into its node and leaves the heap alone.
/// Thus an entry of the heap may be out of date, but since keys only rise — the inflation value
/// never falls, nor does the number of uses, and the time of use always rises — no entry's key is
/// ever above its object's. When a victim is wanted, an entry at the top that is out of date gets
/// its object's key and sinks to its place, until the top is up to date. Then its object's key
/// equals the least key of the heap, which is not above any other object's: it is the minimum.
/// As every key has its own time of use, the minimum is unique, so the order of eviction does not
/// depend on the layout of the heap, and equals that of a heap kept in order at every hit.
///
/// An object that is removed, or comes with a new size (its value may fall), leaves its node
/// behind dead. Dead nodes are freed when they reach the top or, once they outnumber the living,
/// all at once.
///
/// # Precision
/// The inflation value L grows without bound and values are L plus a credit, so in time the credit
/// would drown in rounding. Once L has reached [`Rank::REBASE_AT`], the largest multiple of that
/// power of two not above L is taken from L and from every key. All values are at least L and,
/// below 2^52 times the power, multiples of a unit that divides it; so each difference is a smaller
/// multiple of the same unit and exact: the order, with its ties, stays the same.
pub struct RankedCache<R> {
    capacity_bytes: u64,
    /// The largest object admitted.
    limit_bytes: u64,
    used_bytes: u64,
    inflation: f64,
    /// Counts uses and insertions; renumbered before it overflows.
    clock: u32,
    index: Index,
    nodes: Vec<RankedNode>,
    free: Vec<u32>,
    heap: Heap,
    rank: PhantomData<R>,
}

impl<R: Rank> RankedCache<R> {
    /// An empty cache of `capacity_bytes` that admits no object larger than `object_limit_bytes`.
    #[must_use]
    pub fn new(capacity_bytes: u64, object_limit_bytes: Option<u64>) -> Self {
        Self {
            capacity_bytes,
            limit_bytes: object_limit_bytes.map_or(capacity_bytes, |l| l.min(capacity_bytes)),
            used_bytes: 0,
            inflation: 0.0,
            clock: 0,
            index: Index::new(),
            nodes: Vec::new(),
            free: Vec::new(),
            heap: Heap::new(),
            rank: PhantomData,
        }
    }

    /// The key of a use at this moment.
    #[inline]
    fn key(&self, uses: u32, size_bytes: u64) -> HeapKey {
        let value = R::value(self.inflation, uses, size_bytes.max(1));
        HeapKey::new(value, self.clock)
    }

    #[inline]
    fn touch(&mut self, slot: u32) {
        self.tick();
        let node = &mut self.nodes[slot as usize];
        node.uses = node.uses.saturating_add(1);
        node.value = R::value(self.inflation, node.uses, node.size_bytes.max(1));
        node.time = self.clock;
    }

    #[inline]
    fn tick(&mut self) {
        if self.clock == u32::MAX {
            self.renumber();
        }
        self.clock += 1;
    }

    /// Renumbers the times of use from 1, in the same order.
    #[cold]
    fn renumber(&mut self) {
        let mut by_time = Vec::with_capacity(self.nodes.len());
        for (slot, node) in (0..).zip(&self.nodes) {
            by_time.push((node.time, slot));
        }
        by_time.sort_unstable();
        self.clock = 0;
        for (_, slot) in by_time {
            self.clock += 1;
            self.nodes[slot as usize].time = self.clock;
        }
        self.rebuild_heap();
    }

    /// Brings the victim's entry, up to date, to the top of the heap.
    fn settle(&mut self) -> Option<u32> {
        while let Some(top) = self.heap.top() {
            let slot = top.slot();
            let node = &self.nodes[slot as usize];
            if node.uses == 0 {
                self.heap.pop();
                self.free.push(slot);
            } else if node.key() != top.key() {
                self.heap.replace_top(HeapEntry::new(node.key(), slot));
            } else {
                return Some(slot);
            }
        }
        None
    }

    /// Makes room for `size_bytes`, at most the capacity. Returns false as soon as an object with
    /// the key `newcomer` would be the victim.
    fn make_room(&mut self, size_bytes: u64, newcomer: Option<HeapKey>, evicted: &mut Vec<u64>) -> bool {
        while self.used_bytes > self.capacity_bytes - size_bytes {
            let Some(slot) = self.settle() else { break };
            let node = self.nodes[slot as usize];
            if let Some(key) = newcomer
                && key < node.key()
            {
                self.inflate(key.value());
                return false;
            }
            self.heap.pop();
            self.index.take(&self.nodes, slot);
            self.free.push(slot);
            self.used_bytes -= node.size_bytes;
            self.inflate(node.value);
            evicted.push(node.id);
        }
        true
    }

    #[inline]
    fn inflate(&mut self, value: f64) {
        if R::INFLATES {
            self.inflation = value;
        }
    }

    /// Rebases L; see "Precision" above.
    #[cold]
    fn rebase(&mut self) {
        let offset = (self.inflation / R::REBASE_AT).floor() * R::REBASE_AT;
        self.inflation -= offset;
        // Entries may be far older than L. An out-of-date key only has to stay below its object's key, so the
        // present keys serve.
        for node in &mut self.nodes {
            // Dead and free nodes may be below, and do not matter.
            node.value = (node.value - offset).max(0.0);
        }
        self.rebuild_heap();
    }

    /// Rebuilds the heap from the present keys of the living nodes and frees the dead ones.
    #[cold]
    fn rebuild_heap(&mut self) {
        let (nodes, free) = (&self.nodes, &mut self.free);
        self.heap.rebuild(|entry| {
            let node = &nodes[entry.slot() as usize];
            if node.uses == 0 {
                free.push(entry.slot());
            }
            (node.uses != 0).then_some(node.key())
        });
    }

    /// Removes an object from the index and leaves its node dead. Returns its uses.
    fn bury(&mut self, slot: u32) -> u32 {
        self.index.take(&self.nodes, slot);
        let node = &mut self.nodes[slot as usize];
        let uses = std::mem::take(&mut node.uses);
        self.used_bytes -= node.size_bytes;
        if self.heap.len() > 2 * self.index.len() + 64 {
            self.rebuild_heap();
        }
        uses
    }

    /// Inserts an absent object, on its `uses`-th use.
    fn admit(&mut self, (id, hash): (u64, u64), size_bytes: u64, uses: u32, evicted: &mut Vec<u64>) -> bool {
        if size_bytes > self.limit_bytes {
            return false;
        }
        if self.inflation >= R::REBASE_AT {
            self.rebase();
        }
        self.tick();
        let key = if R::NEWCOMER_COMPETES {
            let key = self.key(uses, size_bytes);
            if !self.make_room(size_bytes, Some(key), evicted) {
                return false;
            }
            key
        } else {
            self.make_room(size_bytes, None, evicted);
            self.key(uses, size_bytes)
        };
        let node = RankedNode { id, size_bytes, value: key.value(), time: self.clock, uses };
        let slot = if let Some(slot) = self.free.pop() {
            self.nodes[slot as usize] = node;
            slot
        } else if self.nodes.len() < MAX_NODES {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            return false;
        };
        self.used_bytes += size_bytes;
        self.heap.push(HeapEntry::new(key, slot));
        self.index.add(&self.nodes, slot, hash);
        true
    }
}

impl<R: Rank> Cache for RankedCache<R> {
    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    fn len(&self) -> usize {
        self.index.len()
    }

    #[inline]
    fn contains(&self, id: u64) -> bool {
        self.index.find(&self.nodes, id, hash(id)).is_some()
    }

    #[inline]
    fn access(&mut self, id: u64) -> bool {
        let found = self.index.find(&self.nodes, id, hash(id));
        if let Some(slot) = found {
            self.touch(slot);
        }
        found.is_some()
    }

    fn insert(&mut self, id: u64, size_bytes: u64, evicted: &mut Vec<u64>) -> bool {
        let hash = hash(id);
        if let Some(slot) = self.index.find(&self.nodes, id, hash) {
            if self.nodes[slot as usize].size_bytes == size_bytes {
                return true;
            }
            let uses = self.bury(slot);
            let admitted = self.admit((id, hash), size_bytes, uses, evicted);
            if !admitted {
                evicted.push(id);
            }
            return admitted;
        }
        self.admit((id, hash), size_bytes, 1, evicted)
    }

    #[inline]
    fn request(&mut self, id: u64, size_bytes: u64, evicted: &mut Vec<u64>) -> bool {
        let hash = hash(id);
        let found = self.index.find(&self.nodes, id, hash);
        match found {
            Some(slot) => self.touch(slot),
            None => {
                self.admit((id, hash), size_bytes, 1, evicted);
            }
        }
        found.is_some()
    }

    fn remove(&mut self, id: u64) -> bool {
        let found = self.index.find(&self.nodes, id, hash(id));
        if let Some(slot) = found {
            self.bury(slot);
        }
        found.is_some()
    }

    fn victim(&mut self) -> Option<u64> {
        self.settle().map(|slot| self.nodes[slot as usize].id)
    }

    fn victim_value(&mut self) -> Option<f64> {
        self.settle().map(|slot| self.nodes[slot as usize].value - self.inflation)
    }

    fn clear(&mut self) {
        self.used_bytes = 0;
        self.inflation = 0.0;
        self.clock = 0;
        self.index.clear();
        self.nodes.clear();
        self.free.clear();
        self.heap.clear();
    }
}

#[cfg(test)]
mod tests;
