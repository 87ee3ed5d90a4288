//! First in, first out: the object that came first goes first, used or not. A baseline.

use crate::cache_spec::CacheSpec;
use crate::queue::QueueCache;

/// FIFO.
pub type Fifo = QueueCache<false>;

/// Registry entry.
pub static SPEC: CacheSpec = CacheSpec {
    name: "fifo",
    aliases: &["first_in_first_out"],
    summary: "evicts the object that came first, whatever its use; a baseline",
    citation: "L. Belady, A study of replacement algorithms for a virtual-storage computer, IBM \
               Systems Journal 5(2), 1966",
    build: |capacity_bytes, object_limit_bytes| Box::new(Fifo::new(capacity_bytes, object_limit_bytes)),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;

    #[test]
    fn the_first_in_goes_first_though_used() {
        let mut fifo = Fifo::new(30, None);
        let mut evicted = Vec::new();
        for id in [1, 2, 3] {
            fifo.insert(id, 10, &mut evicted);
        }
        assert!(fifo.access(1));
        assert_eq!(fifo.victim_value(), Some(-3.0));
        assert!(!fifo.request(4, 20, &mut evicted));
        assert_eq!(evicted, [1, 2]);
    }
}
