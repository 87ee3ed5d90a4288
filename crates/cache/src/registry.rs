//! The caches by name.

use crate::cache::Cache;
use crate::cache_spec::CacheSpec;
use crate::caches::{fifo, gds, gdsf, lfu, lru};

/// Every kind of cache, by name.
pub static REGISTRY: &[&CacheSpec] = &[&fifo::SPEC, &gds::SPEC, &gdsf::SPEC, &lfu::SPEC, &lru::SPEC];

/// No cache has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no cache called \"{name}\"; did you mean \"{nearest}\"? There are: {}", names())]
pub struct UnknownCache {
    /// The name that was asked for.
    pub name: String,
    /// The known name nearest to it.
    pub nearest: &'static str,
}

fn names() -> String {
    let names: Vec<_> = REGISTRY.iter().map(|spec| spec.name).collect();
    names.join(", ")
}

/// The kind of cache called `name`, by its name or an alias; case, `-` and `_` make no difference.
///
/// # Errors
/// [`UnknownCache`] with the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static CacheSpec, UnknownCache> {
    let plain = name.to_ascii_lowercase().replace(['-', ' '], "_");
    let mut nearest = (f64::NEG_INFINITY, REGISTRY[0].name);
    for spec in REGISTRY {
        for &known in std::iter::once(&spec.name).chain(spec.aliases) {
            if known == plain || known.replace('_', "") == plain.replace('_', "") {
                return Ok(spec);
            }
            let likeness = strsim::jaro_winkler(known, &plain);
            if likeness > nearest.0 {
                nearest = (likeness, spec.name);
            }
        }
    }
    Err(UnknownCache { name: name.to_owned(), nearest: nearest.1 })
}

/// An empty cache of the kind called `name`, of `capacity_bytes`, that admits no object larger
/// than `object_limit_bytes`.
///
/// # Errors
/// [`UnknownCache`] with the nearest name if there is no such kind.
pub fn build(
    name: &str,
    capacity_bytes: u64,
    object_limit_bytes: Option<u64>,
) -> Result<Box<dyn Cache>, UnknownCache> {
    find(name).map(|spec| (spec.build)(capacity_bytes, object_limit_bytes))
}
