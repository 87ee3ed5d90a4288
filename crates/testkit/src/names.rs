//! Names for what processes share: network namespaces, pinned maps, files.

use std::process;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// A name that nothing else on this machine has, not even what an earlier process of the same number left behind.
#[must_use]
pub fn unique_name(prefix: &str) -> String {
    static BEGAN_NS: LazyLock<u128> =
        LazyLock::new(|| SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos()));
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}{}-{:x}-{}", process::id(), *BEGAN_NS, COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        let (one, other) = (unique_name("a"), unique_name("a"));
        assert!(one != other && one.starts_with('a') && one.len() < 40, "{one} {other}");
    }
}
