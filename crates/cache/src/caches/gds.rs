//! Greedy-Dual-Size with cost 1, the version for the hit ratio.
//!
//! P. Cao, S. Irani, Cost-Aware WWW Proxy Caching Algorithms, USITS 1997, section 4:
//!
//! ```text
//! L ← 0
//! for each request of an object p:
//!     if p is in the cache:  H(p) ← L + 1/size(p)
//!     else:
//!         while there is not room for p:
//!             L ← the least H(q) of the objects q in the cache
//!             evict the q with H(q) = L
//!         bring p in;  H(p) ← L + 1/size(p)
//! ```
//!
//! Of several objects with the least H the one whose last use is longest ago goes; the paper
//! leaves it open. An object of size 0 counts as one of size 1.

use crate::cache_spec::CacheSpec;
use crate::ranked::{Rank, RankedCache};

/// Greedy-Dual-Size with cost 1.
pub type GreedyDualSize = RankedCache<InverseSize>;

/// H = L + 1/size, size in bytes.
pub struct InverseSize;

impl Rank for InverseSize {
    const INFLATES: bool = true;
    const NEWCOMER_COMPETES: bool = false;
    // L rises by at most 1 per eviction. Below 2^16 the unit in the last place is at most 2^-37,
    // so the credit of an object of 1 GB (2^-30) is still known to within 1 %.
    const REBASE_AT: f64 = 65_536.0;

    #[inline]
    fn value(inflation: f64, _uses: u32, size_bytes: u64) -> f64 {
        inflation + 1.0 / size_bytes as f64
    }
}

/// Registry entry.
pub static SPEC: CacheSpec = CacheSpec {
    name: "gds",
    aliases: &["greedy_dual_size", "gds1"],
    summary: "Greedy-Dual-Size with cost 1: prefers small objects, ages by inflation",
    citation: "P. Cao, S. Irani, Cost-Aware WWW Proxy Caching Algorithms, USITS 1997, section 4",
    build: |capacity_bytes, object_limit_bytes| {
        Box::new(GreedyDualSize::new(capacity_bytes, object_limit_bytes))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;

    #[test]
    fn a_run_worked_by_hand() {
        let mut gds = GreedyDualSize::new(10, None);
        let mut evicted = Vec::new();
        gds.request(1, 4, &mut evicted); // H(1) = 1/4
        gds.request(2, 2, &mut evicted); // H(2) = 1/2
        gds.request(3, 4, &mut evicted); // H(3) = 1/4
        assert_eq!(gds.victim(), Some(1), "of equals the least recently used");
        gds.request(1, 4, &mut evicted); // L is 0 still: H(1) = 1/4, but later
        assert_eq!(gds.victim(), Some(3));
        assert_eq!(gds.victim_value(), Some(0.25));
        gds.request(4, 1, &mut evicted); // 3 goes, L = 1/4, H(4) = 5/4
        assert_eq!(evicted, [3]);
        assert_eq!(gds.victim_value(), Some(0.0), "1 has no credit left");
        gds.request(1, 4, &mut evicted); // H(1) = 1/2 again, as H(2)
        assert_eq!(gds.victim(), Some(2));
        gds.request(5, 8, &mut evicted); // 2 and 1 go, L = 1/2, H(5) = 5/8
        assert_eq!(evicted, [3, 2, 1]);
        assert_eq!(gds.victim(), Some(5), "large, so worth least");
        assert_eq!(gds.victim_value(), Some(0.125));
    }
}
