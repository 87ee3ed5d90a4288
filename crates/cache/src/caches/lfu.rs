//! Least frequently used: the object with the fewest uses goes first; of several, the one whose
//! last use is longest ago. Uses are counted while an object is present and forgotten with it
//! ("in-cache LFU").

use crate::cache_spec::CacheSpec;
use crate::ranked::{Rank, RankedCache};

/// LFU.
pub type Lfu = RankedCache<Uses>;

/// The value is the number of uses.
pub struct Uses;

impl Rank for Uses {
    const INFLATES: bool = false;
    const NEWCOMER_COMPETES: bool = false;
    const REBASE_AT: f64 = f64::INFINITY;

    #[inline]
    fn value(_inflation: f64, uses: u32, _size_bytes: u64) -> f64 {
        f64::from(uses)
    }
}

/// Registry entry.
pub static SPEC: CacheSpec = CacheSpec {
    name: "lfu",
    aliases: &["least_frequently_used"],
    summary: "evicts the object used least often since it came",
    citation: "L. Breslau et al., Web Caching and Zipf-like Distributions: Evidence and \
               Implications, INFOCOM 1999, section V (in-cache LFU)",
    build: |capacity_bytes, object_limit_bytes| Box::new(Lfu::new(capacity_bytes, object_limit_bytes)),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;

    #[test]
    fn the_least_used_goes_first_and_of_equals_the_least_recent() {
        let mut lfu = Lfu::new(3, None);
        let mut evicted = Vec::new();
        for id in [1, 2, 3, 1, 3, 2, 1] {
            lfu.request(id, 1, &mut evicted);
        }
        // 1 has three uses, 3 and 2 two each, 3 the earlier.
        assert_eq!(lfu.victim(), Some(3));
        assert_eq!(lfu.victim_value(), Some(2.0));
        lfu.request(4, 1, &mut evicted);
        // 4 has a single use.
        lfu.request(5, 1, &mut evicted);
        assert_eq!(evicted, [3, 4]);
        // Uses before an eviction are forgotten.
        assert!(!lfu.request(3, 1, &mut evicted));
        assert_eq!(lfu.victim_value(), Some(1.0));
    }
}
