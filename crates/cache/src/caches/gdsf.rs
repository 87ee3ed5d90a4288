//! Greedy-Dual-Size-Frequency with cost 1.
//!
//! L. Cherkasova, Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency Caching
//! Policy, HP Labs report HPL-98-69R1, 1998: like Greedy-Dual-Size with
//! H(p) = L + uses(p) · cost / size(p).
//!
//! The details follow libCacheSim (0.3.5 of its Python package), with whose counts of misses it
//! agrees exactly:
//! - the cost is 10^6 (this matters to rounding only);
//! - `uses` is 1 when an object comes and rises by 1 with each hit; eviction forgets it;
//! - L is the H of the object evicted last;
//! - of several objects with the least H the one whose last use is longest ago goes;
//! - a new object gets its H first and then competes for its place: objects are evicted by rising H
//!   until there is room, and if it comes to the new object itself, it is the one not admitted (the
//!   objects evicted before it are gone nevertheless, and L is its H);
//! - an object larger than the cache changes nothing;
//! - only the objects' own sizes count (libCacheSim with `consider_obj_metadata` false).
//!
//! An object of size 0 counts as one of size 1 in the formula.

use crate::cache_spec::CacheSpec;
use crate::ranked::{Rank, RankedCache};

/// Greedy-Dual-Size-Frequency with cost 1.
pub type GreedyDualSizeFrequency = RankedCache<UsesPerSize>;

/// H = L + 10^6 · uses / size, size in bytes.
pub struct UsesPerSize;

impl Rank for UsesPerSize {
    const INFLATES: bool = true;
    const NEWCOMER_COMPETES: bool = true;
    // Below 2^36 the unit in the last place is at most 2^-17, so the credit of an object of 1 GB
    // used once (10^-3) is known to within 1 %.
    const REBASE_AT: f64 = 68_719_476_736.0;

    #[inline]
    fn value(inflation: f64, uses: u32, size_bytes: u64) -> f64 {
        inflation + f64::from(uses) * 1.0e6 / size_bytes as f64
    }
}

/// Registry entry.
pub static SPEC: CacheSpec = CacheSpec {
    name: "gdsf",
    aliases: &["greedy_dual_size_frequency"],
    summary: "Greedy-Dual-Size-Frequency: prefers small and often used objects, ages by inflation",
    citation: "L. Cherkasova, Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency \
               Caching Policy, HP Labs HPL-98-69R1, 1998",
    build: |capacity_bytes, object_limit_bytes| {
        Box::new(GreedyDualSizeFrequency::new(capacity_bytes, object_limit_bytes))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;

    #[test]
    fn a_run_worked_by_hand() {
        let mut gdsf = GreedyDualSizeFrequency::new(10, None);
        let mut evicted = Vec::new();
        gdsf.request(1, 4, &mut evicted); // H(1) = 250,000
        gdsf.request(2, 5, &mut evicted); // H(2) = 200,000
        gdsf.request(2, 5, &mut evicted); // H(2) = 400,000
        assert_eq!(gdsf.victim(), Some(1));
        // H(3) = 125,000 is below the victim's, so nothing goes but 3 itself.
        assert!(!gdsf.insert(3, 8, &mut evicted));
        assert!(evicted.is_empty());
        assert_eq!(gdsf.victim_value(), Some(125_000.0), "L is the H of the object turned away");
        // H(4) = 125,000 + 333,333: 1 goes for it, and that is enough.
        assert!(gdsf.insert(4, 3, &mut evicted));
        assert_eq!(evicted, [1]);
        assert_eq!(gdsf.victim(), Some(2));
        assert_eq!(gdsf.victim_value(), Some(150_000.0));
    }

    #[test]
    fn a_newcomer_may_evict_and_yet_be_turned_away() {
        let mut gdsf = GreedyDualSizeFrequency::new(10, None);
        let mut evicted = Vec::new();
        gdsf.request(1, 10, &mut evicted); // H(1) = 100,000
        gdsf.request(2, 5, &mut evicted); // H(2) = 200,000; 1 goes, L = 100,000
        gdsf.request(3, 5, &mut evicted); // H(3) = 300,000
        gdsf.request(3, 5, &mut evicted); // H(3) = 500,000
        // H(4) = 211,111: 2 is worth less and goes, but 3, which would have to go too, is worth more.
        assert!(!gdsf.insert(4, 9, &mut evicted));
        assert_eq!(evicted, [1, 2]);
        assert_eq!((gdsf.len(), gdsf.used_bytes(), gdsf.victim()), (1, 5, Some(3)));
        let l = 1e5 + 1e6 / 9.0;
        assert_eq!(gdsf.victim_value(), Some(5e5 - l), "L is the H of the object turned away");
    }
}
