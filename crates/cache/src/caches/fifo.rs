//! First in, first out: the object that came first goes first, used or not. A baseline.

use crate::queue::QueueCache;
use crate::registry::CacheSpec;

/// FIFO.
pub type Fifo = QueueCache<false>;

/// How the registry knows it.
pub static SPEC: CacheSpec = CacheSpec {
    name: "fifo",
    aliases: &["first_in_first_out"],
    summary: "evicts the object that came first, whatever its use; a baseline",
    citation: "L. Belady, A study of replacement algorithms for a virtual-storage computer, IBM \
               Systems Journal 5(2), 1966",
    build: |capacity_bytes, object_limit_bytes| Box::new(Fifo::new(capacity_bytes, object_limit_bytes)),
};
