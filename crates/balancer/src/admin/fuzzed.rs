//! Paths and queries, for the fuzz targets.

use plimsoll_config::TargetKey;

use super::route::Route;
use super::{passed, why};

/// Reads a path and a query as each of their readers does.
pub(crate) fn read(path: &str, query: Option<&str>) {
    if let Some(Route::Backend(name) | Route::Weight(name) | Route::Drain(name, _)) = Route::of(path) {
        assert!(!name.contains('/') && path.contains(name));
        why::percent_decoded(name.as_bytes());
    }
    for key in [TargetKey::Path, TargetKey::PathQuery, TargetKey::HostPath] {
        if let Ok(target) = why::target(&key, query) {
            assert!(target.contains(&b'/'), "a target of this kind is a path");
        }
    }
    passed::after(query.unwrap_or_default());
}
