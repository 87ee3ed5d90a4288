//! LFU with counts that are kept for good ("Perfect-LFU": Breslau et al., INFOCOM 1999, section V).
//!
//! It counts every object that was ever asked for, so it is for simulations, whose objects are numbered from 0 on.

use std::collections::BTreeSet;

use plimsoll_cache::{Cache, CacheSpec};

/// An object that was asked for.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    uses: u32,
    /// The clock at the last use.
    time: u64,
    /// `None` while it is not present.
    size_bytes: Option<u64>,
}

/// See the module's documentation. Unlike with other caches, an access that misses is a use.
struct PerfectLfu {
    capacity_bytes: u64,
    /// The largest object admitted.
    limit_bytes: u64,
    used_bytes: u64,
    clock: u64,
    /// By number.
    objects: Vec<Counted>,
    /// Those present: uses, time, number.
    order: BTreeSet<(u32, u64, u64)>,
}

/// The kind of cache; no registry has it.
pub(super) static SPEC: CacheSpec = CacheSpec {
    name: "perfect_lfu",
    aliases: &[],
    summary: "evicts the object used least often, counted from the beginning",
    citation: "L. Breslau et al., Web Caching and Zipf-like Distributions: Evidence and Implications, INFOCOM 1999, section V (Perfect-LFU)",
    build: |capacity_bytes, object_limit_bytes| {
        Box::new(PerfectLfu {
            capacity_bytes,
            limit_bytes: object_limit_bytes.map_or(capacity_bytes, |limit| limit.min(capacity_bytes)),
            used_bytes: 0,
            clock: 0,
            objects: Vec::new(),
            order: BTreeSet::new(),
        })
    },
};

impl PerfectLfu {
    fn of(&mut self, id: u64) -> &mut Counted {
        let at = id as usize;
        if at >= self.objects.len() {
            self.objects.resize(at + 1, Counted::default());
        }
        &mut self.objects[at]
    }

    fn evict(&mut self) -> Option<u64> {
        let (_, _, id) = self.order.pop_first()?;
        self.used_bytes -= self.of(id).size_bytes.take().unwrap_or_default();
        Some(id)
    }
}

impl Cache for PerfectLfu {
    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    fn contains(&self, id: u64) -> bool {
        self.objects.get(id as usize).is_some_and(|object| object.size_bytes.is_some())
    }

    fn access(&mut self, id: u64) -> bool {
        self.clock += 1;
        let clock = self.clock;
        let object = self.of(id);
        let before = (object.uses, object.time, id);
        object.uses = object.uses.saturating_add(1);
        object.time = clock;
        let (after, present) = ((object.uses, object.time, id), object.size_bytes.is_some());
        if present {
            self.order.remove(&before);
            self.order.insert(after);
        }
        present
    }

    fn insert(&mut self, id: u64, size_bytes: u64, evicted: &mut Vec<u64>) -> bool {
        if self.of(id).size_bytes == Some(size_bytes) {
            return true;
        }
        let was_present = self.remove(id);
        if size_bytes > self.limit_bytes {
            evicted.extend(was_present.then_some(id));
            return false;
        }
        while self.used_bytes > self.capacity_bytes - size_bytes {
            evicted.extend(self.evict());
        }
        let object = self.of(id);
        object.size_bytes = Some(size_bytes);
        let key = (object.uses, object.time, id);
        self.order.insert(key);
        self.used_bytes += size_bytes;
        true
    }

    fn remove(&mut self, id: u64) -> bool {
        let object = self.of(id);
        let key = (object.uses, object.time, id);
        let Some(size_bytes) = object.size_bytes.take() else { return false };
        self.order.remove(&key);
        self.used_bytes -= size_bytes;
        true
    }

    fn victim(&mut self) -> Option<u64> {
        self.order.first().map(|key| key.2)
    }

    fn victim_value(&mut self) -> Option<f64> {
        self.order.first().map(|key| f64::from(key.0))
    }

    fn clear(&mut self) {
        self.objects.clear();
        self.order.clear();
        (self.used_bytes, self.clock) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_before_an_eviction_are_remembered() {
        let mut lfu = (SPEC.build)(3, None);
        let mut evicted = Vec::new();
        for id in [1, 1, 1, 2, 3, 3, 4] {
            lfu.request(id, 1, &mut evicted);
        }
        assert_eq!((evicted.as_slice(), lfu.used_bytes(), lfu.len()), (&[2][..], 3, 3));
        // A second use of 2 makes it equal to 3, which came later.
        lfu.request(2, 1, &mut evicted);
        assert_eq!((evicted.as_slice(), lfu.victim()), (&[2, 4][..], Some(3)));
        lfu.request(4, 1, &mut evicted);
        lfu.request(3, 1, &mut evicted);
        assert_eq!(
            (evicted.as_slice(), lfu.victim(), lfu.victim_value()),
            (&[2, 4, 3, 2][..], Some(4), Some(2.0))
        );
        assert!(lfu.contains(1) && !lfu.contains(2) && !lfu.insert(9, 4, &mut evicted));
        assert!(lfu.insert(4, 2, &mut evicted) && lfu.used_bytes() == 3 && !lfu.contains(1));
        lfu.clear();
        assert!(lfu.is_empty() && lfu.used_bytes() == 0);
    }
}
