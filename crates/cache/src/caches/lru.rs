//! Least recently used: the object whose last use is longest ago goes first.

use crate::cache_spec::CacheSpec;
use crate::queue::QueueCache;

/// LRU. With an object limit of 500 KB it is the variant of the LARD paper.
pub type Lru = QueueCache<true>;

/// Registry entry.
pub static SPEC: CacheSpec = CacheSpec {
    name: "lru",
    aliases: &["least_recently_used"],
    summary: "evicts the object whose last use is longest ago",
    citation: "V. Pai et al., Locality-Aware Request Distribution in Cluster-based Network \
               Servers, ASPLOS 1998, section 3.1 (with an object limit of 500 KB)",
    build: |capacity_bytes, object_limit_bytes| Box::new(Lru::new(capacity_bytes, object_limit_bytes)),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut lru = Lru::new(30, None);
        let mut evicted = Vec::new();
        for id in [1, 2, 3] {
            assert!(!lru.access(id));
            assert!(lru.insert(id, 10, &mut evicted));
        }
        assert!(lru.access(1));
        assert_eq!(lru.victim(), Some(2));
        // Used last at the second of four events.
        assert_eq!(lru.victim_value(), Some(-2.0));
        assert!(lru.insert(4, 11, &mut evicted));
        assert_eq!(evicted, [2, 3]);
        assert!(lru.contains(1) && lru.contains(4));
        assert_eq!(lru.used_bytes(), 21);
    }

    #[test]
    fn a_new_version_is_the_most_recent() {
        let mut lru = Lru::new(30, None);
        let mut evicted = Vec::new();
        for id in [1, 2, 3] {
            lru.insert(id, 10, &mut evicted);
        }
        assert!(lru.insert(1, 10, &mut evicted), "the same version");
        assert_eq!(lru.victim(), Some(1));
        assert!(lru.insert(1, 15, &mut evicted));
        assert_eq!(evicted, [2]);
        assert_eq!(lru.victim(), Some(3));
    }
}
