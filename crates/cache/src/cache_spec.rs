//! What the registry knows of a kind of cache.

use crate::cache::Cache;

/// A kind of cache as registered.
pub struct CacheSpec {
    /// The name, in lower case with underscores.
    pub name: &'static str,
    /// Other names it answers to.
    pub aliases: &'static [&'static str],
    /// One line that says what it evicts.
    pub summary: &'static str,
    /// Where it is described.
    pub citation: &'static str,
    /// Builds an empty one from its capacity in bytes and the largest size in bytes of an object
    /// it admits (`None`: whatever fits).
    pub build: fn(u64, Option<u64>) -> Box<dyn Cache>,
}

impl std::fmt::Debug for CacheSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CacheSpec").field("name", &self.name).finish_non_exhaustive()
    }
}
