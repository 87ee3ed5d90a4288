//! Whole-object caches: LRU, LFU, Greedy-Dual-Size and its kin.
//!
//! A cache here decides which objects of given sizes stay within a capacity; it knows neither
//! their contents nor where they come from. Objects are numbered by the caller.
//!
//! ```
//! use plimsoll_cache::{Cache, build};
//!
//! let mut cache = build("lru", 100, None)?;
//! let mut evicted = Vec::new();
//! for (id, size_bytes) in [(1, 60), (2, 30), (1, 60), (3, 30)] {
//!     cache.request(id, size_bytes, &mut evicted);
//! }
//! assert_eq!(evicted, [2]);
//! assert_eq!(cache.used_bytes(), 90);
//! # Ok::<(), plimsoll_cache::UnknownCache>(())
//! ```

mod cache;
mod cache_spec;
pub mod caches;
mod heap;
mod index;
mod queue;
mod ranked;
mod registry;

pub use cache::Cache;
pub use cache_spec::CacheSpec;
pub use caches::fifo::Fifo;
pub use caches::gds::GreedyDualSize;
pub use caches::gdsf::GreedyDualSizeFrequency;
pub use caches::lfu::Lfu;
pub use caches::lru::Lru;
pub use queue::QueueCache;
pub use ranked::{Rank, RankedCache};
pub use registry::{REGISTRY, UnknownCache, build, find};
