//! Caches whose order of eviction is a queue: LRU and FIFO.

use crate::cache::Cache;
use crate::index::{HasId, Index, MAX_NODES, NIL, hash};

/// Aligned so that no node straddles two cache lines.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct QueueNode {
    id: u64,
    size_bytes: u64,
    /// The clock when the node last went to the back of the queue.
    stamp: u64,
    /// Towards the victim; in a free node, the next free one.
    older: u32,
    newer: u32,
}

impl HasId for QueueNode {
    #[inline]
    fn id(&self) -> u64 {
        self.id
    }
}

/// A cache that evicts from the front of a queue. Objects enter at the back; with `MOVE_ON_HIT`
/// a hit sends its object to the back again.
///
/// Nodes lie in one slab and are linked by 32-bit slot numbers: 32 bytes each, and 5 in the index.
pub struct QueueCache<const MOVE_ON_HIT: bool> {
    capacity_bytes: u64,
    /// The largest object admitted.
    limit_bytes: u64,
    used_bytes: u64,
    /// Counts uses and insertions.
    clock: u64,
    index: Index,
    nodes: Vec<QueueNode>,
    oldest: u32,
    newest: u32,
    free: u32,
}

impl<const MOVE_ON_HIT: bool> QueueCache<MOVE_ON_HIT> {
    /// An empty cache of `capacity_bytes` that admits no object larger than `object_limit_bytes`.
    #[must_use]
    pub fn new(capacity_bytes: u64, object_limit_bytes: Option<u64>) -> Self {
        Self {
            capacity_bytes,
            limit_bytes: object_limit_bytes.map_or(capacity_bytes, |l| l.min(capacity_bytes)),
            used_bytes: 0,
            clock: 0,
            index: Index::new(),
            nodes: Vec::new(),
            oldest: NIL,
            newest: NIL,
            free: NIL,
        }
    }

    fn link_newest(&mut self, slot: u32) {
        self.nodes[slot as usize].older = self.newest;
        self.nodes[slot as usize].newer = NIL;
        match self.newest {
            NIL => self.oldest = slot,
            newest => self.nodes[newest as usize].newer = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let QueueNode { older, newer, .. } = self.nodes[slot as usize];
        match older {
            NIL => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
        match newer {
            NIL => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
    }

    /// Removes an object from queue and index, and frees its slot.
    fn drop_slot(&mut self, slot: u32) -> u64 {
        self.unlink(slot);
        self.index.take(&self.nodes, slot);
        let node = &mut self.nodes[slot as usize];
        node.older = self.free;
        self.free = slot;
        self.used_bytes -= node.size_bytes;
        node.id
    }

    #[inline]
    fn touch(&mut self, slot: u32) {
        self.clock += 1;
        if MOVE_ON_HIT {
            self.nodes[slot as usize].stamp = self.clock;
            if slot != self.newest {
                self.unlink(slot);
                self.link_newest(slot);
            }
        }
    }

    /// Inserts an absent object.
    fn admit(&mut self, id: u64, hash: u64, size_bytes: u64, evicted: &mut Vec<u64>) -> bool {
        if size_bytes > self.limit_bytes {
            return false;
        }
        while self.used_bytes > self.capacity_bytes - size_bytes {
            evicted.push(self.drop_slot(self.oldest));
        }
        self.clock += 1;
        let node = QueueNode { id, size_bytes, stamp: self.clock, older: NIL, newer: NIL };
        let slot = self.free;
        let slot = if slot != NIL {
            self.free = self.nodes[slot as usize].older;
            self.nodes[slot as usize] = node;
            slot
        } else if self.nodes.len() < MAX_NODES {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            return false;
        };
        self.used_bytes += size_bytes;
        self.link_newest(slot);
        self.index.add(&self.nodes, slot, hash);
        true
    }
}

impl<const MOVE_ON_HIT: bool> Cache for QueueCache<MOVE_ON_HIT> {
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
            self.drop_slot(slot);
            let admitted = self.admit(id, hash, size_bytes, evicted);
            if !admitted {
                evicted.push(id);
            }
            return admitted;
        }
        self.admit(id, hash, size_bytes, evicted)
    }

    #[inline]
    fn request(&mut self, id: u64, size_bytes: u64, evicted: &mut Vec<u64>) -> bool {
        let hash = hash(id);
        let found = self.index.find(&self.nodes, id, hash);
        match found {
            Some(slot) => self.touch(slot),
            None => {
                self.admit(id, hash, size_bytes, evicted);
            }
        }
        found.is_some()
    }

    fn remove(&mut self, id: u64) -> bool {
        let found = self.index.find(&self.nodes, id, hash(id));
        if let Some(slot) = found {
            self.drop_slot(slot);
        }
        found.is_some()
    }

    fn victim(&mut self) -> Option<u64> {
        (self.oldest != NIL).then(|| self.nodes[self.oldest as usize].id)
    }

    fn victim_value(&mut self) -> Option<f64> {
        (self.oldest != NIL).then(|| {
            let age = self.clock - self.nodes[self.oldest as usize].stamp;
            -(age as f64)
        })
    }

    fn clear(&mut self) {
        self.used_bytes = 0;
        self.clock = 0;
        self.index.clear();
        self.nodes.clear();
        self.oldest = NIL;
        self.newest = NIL;
        self.free = NIL;
    }
}
