//! Least recently used: the object whose last use is longest ago goes first.

use crate::queue::QueueCache;
use crate::registry::CacheSpec;

/// LRU. With an object limit of 500 KB it is the variant of the LARD paper.
pub type Lru = QueueCache<true>;

/// How the registry knows it.
pub static SPEC: CacheSpec = CacheSpec {
    name: "lru",
    aliases: &["least_recently_used"],
    summary: "evicts the object whose last use is longest ago",
    citation: "V. Pai et al., Locality-Aware Request Distribution in Cluster-based Network \
               Servers, ASPLOS 1998, section 3.1 (with an object limit of 500 KB)",
    build: |capacity_bytes, object_limit_bytes| Box::new(Lru::new(capacity_bytes, object_limit_bytes)),
};
