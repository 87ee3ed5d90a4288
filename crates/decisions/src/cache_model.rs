//! A model of the back-ends' caches under given assignments, based on sizes alone.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_cache::{Cache, CacheSpec};
use plimsoll_policy::{BackendId, TargetId};

/// One cache for each back-end. A request hits when its target is cached; otherwise it misses, and the object enters
/// the cache when the request has been answered, or it joins a miss under way for the same target at the same back-end.
///
/// The size is that of the answer, or the one known beforehand. Memory is bounded: a cache holds at most
/// [`CacheModel::MOST_OBJECTS`] objects, and at most [`CacheModel::MOST_UNDER_WAY`] targets under way are
/// tracked per back-end; misses beyond that never enter the cache.
pub struct CacheModel {
    spec: &'static CacheSpec,
    capacity_bytes: u64,
    backends: Vec<Modelled>,
    evicted: Vec<u64>,
    hits: u64,
    misses: u64,
    joined: u64,
}

struct Modelled {
    cache: Box<dyn Cache>,
    /// Looked up by key only, never iterated.
    under_way: HashMap<u64, UnderWay, FixedState>,
}

/// Requests for one target that found it absent.
struct UnderWay {
    requests: u32,
    size_bytes: Option<u64>,
}

impl CacheModel {
    /// The most objects in one cache, so that tiny objects cannot make it grow without bound.
    pub const MOST_OBJECTS: usize = 1_000_000;
    /// The most targets under way that are tracked per back-end.
    pub const MOST_UNDER_WAY: usize = 65_536;

    /// Empty caches of this kind and capacity.
    #[must_use]
    pub fn new(spec: &'static CacheSpec, capacity_bytes: u64) -> Self {
        Self {
            spec,
            capacity_bytes,
            backends: Vec::new(),
            evicted: Vec::new(),
            hits: 0,
            misses: 0,
            joined: 0,
        }
    }

    /// A request for `target` went to `b`. Returns whether it finds the target in the cache.
    pub fn assigned(&mut self, b: BackendId, target: TargetId, size_bytes: Option<u64>) -> bool {
        while self.backends.len() <= b.index() {
            self.backends.push(Modelled {
                cache: (self.spec.build)(self.capacity_bytes, None),
                under_way: HashMap::with_hasher(FixedState::with_seed(1)),
            });
        }
        let backend = &mut self.backends[b.index()];
        if backend.cache.access(target.0) {
            self.hits += 1;
            return true;
        }
        if let Some(under_way) = backend.under_way.get_mut(&target.0) {
            self.joined += 1;
            under_way.requests = under_way.requests.saturating_add(1);
            under_way.size_bytes = under_way.size_bytes.or(size_bytes);
            return false;
        }
        self.misses += 1;
        if backend.under_way.len() < Self::MOST_UNDER_WAY {
            backend.under_way.insert(target.0, UnderWay { requests: 1, size_bytes });
        }
        false
    }

    /// A request for `target` at `b` was answered with this size, where it is known.
    pub fn completed(&mut self, b: BackendId, target: TargetId, size_bytes: Option<u64>) {
        let Some(known_bytes) = self.left(b, target) else { return };
        let (Some(size_bytes), Some(backend)) =
            (size_bytes.or(known_bytes), self.backends.get_mut(b.index()))
        else {
            return;
        };
        let cache = &mut backend.cache;
        if cache.contains(target.0) {
            return;
        }
        while cache.len() >= Self::MOST_OBJECTS {
            let Some(victim) = cache.victim() else { break };
            cache.remove(victim);
        }
        cache.insert(target.0, size_bytes, &mut self.evicted);
        self.evicted.clear();
    }

    /// A request for `target` at `b` was lost: nothing enters the cache.
    pub fn failed(&mut self, b: BackendId, target: TargetId) {
        self.left(b, target);
    }

    /// `b` failed: its cache is empty when it comes back.
    pub fn down(&mut self, b: BackendId) {
        if let Some(backend) = self.backends.get_mut(b.index()) {
            backend.cache.clear();
            backend.under_way.clear();
        }
    }

    /// Requests that found their target.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Requests that had to fetch their target.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Requests that joined a fetch under way.
    #[must_use]
    pub fn joined(&self) -> u64 {
        self.joined
    }

    /// Misses per request; `None` before the first one.
    #[must_use]
    pub fn miss_ratio(&self) -> Option<f64> {
        let requests = self.hits + self.misses + self.joined;
        (requests > 0).then(|| self.misses as f64 / requests as f64)
    }

    /// Removes one request for `target`. Returns its known size, if it was tracked.
    fn left(&mut self, b: BackendId, target: TargetId) -> Option<Option<u64>> {
        let backend = self.backends.get_mut(b.index())?;
        let under_way = backend.under_way.get_mut(&target.0)?;
        let size_bytes = under_way.size_bytes;
        under_way.requests -= 1;
        if under_way.requests == 0 {
            backend.under_way.remove(&target.0);
        }
        Some(size_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const B0: BackendId = BackendId(0);
    const B1: BackendId = BackendId(1);
    const T: TargetId = TargetId(7);

    fn model(bytes: u64) -> CacheModel {
        CacheModel::new(&plimsoll_cache::caches::lru::SPEC, bytes)
    }

    #[test]
    fn a_miss_enters_the_cache_when_it_is_answered() {
        let mut m = model(100);
        assert!(!m.assigned(B0, T, None));
        assert!(!m.assigned(B0, T, None)); // joins
        assert!(!m.assigned(B1, T, None)); // another back-end fetches for itself
        m.completed(B0, T, Some(60));
        assert!(m.assigned(B0, T, None));
        m.completed(B0, T, Some(60));
        m.completed(B0, T, Some(60));
        assert_eq!((m.hits(), m.misses(), m.joined()), (1, 2, 1));
        assert_eq!(m.miss_ratio(), Some(0.5));
        // 60 + 60 > 100: the first one goes.
        assert!(!m.assigned(B0, TargetId(8), Some(60)));
        m.completed(B0, TargetId(8), None);
        assert!(!m.assigned(B0, T, None));
        assert!(m.assigned(B0, TargetId(8), None));
    }

    #[test]
    fn lost_requests_and_failed_backends_leave_nothing_in_the_cache() {
        let mut m = model(100);
        m.assigned(B0, T, Some(10));
        m.failed(B0, T);
        assert!(!m.assigned(B0, T, Some(10)));
        m.completed(B0, T, None);
        assert!(m.assigned(B0, T, Some(10)));
        m.down(B0);
        m.completed(B0, T, None);
        assert!(!m.assigned(B0, T, Some(10)));
        // Nobody asked for this one here.
        m.completed(B1, T, Some(1));
        assert!(!m.assigned(B1, T, None));
    }
}
