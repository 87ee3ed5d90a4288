//! Requests as policies see them.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::BackendId;

/// A target, identified by a 64-bit hash of its key. Simulator and live front-end use the same hash, so that
/// a hashing policy partitions targets alike in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetId(pub u64);

impl TargetId {
    /// The identity of the target with this key (by default method-less URL path + query): XXH3-64 of its bytes.
    #[must_use]
    pub fn from_key(key: &[u8]) -> Self {
        Self(xxh3_64(key))
    }
}

/// What kind of work a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// A stored document.
    #[default]
    Static,
    /// Computed on demand.
    Dynamic,
    /// A connection, whose requests are not known yet: what a layer-4 front-end distributes.
    Connection,
}

/// Optional features, which few requests have; they cost nothing for requests without them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Features {
    /// Hashes of the prefix's blocks, each over its block and all before it: candidates for a language
    /// model's key-value cache.
    pub prefix_blocks: Vec<u64>,
    /// The back-end that the request says its session has.
    pub session: Option<BackendId>,
}

/// A request as a policy sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Number of the request, from 0 in arrival order.
    pub number: u64,
    /// What is asked for.
    pub target: TargetId,
    /// Expected size of the response body in bytes, where it is known.
    pub size_bytes: Option<u64>,
    /// Static or dynamic.
    pub kind: Kind,
    /// Identity of the client.
    pub client: u64,
    /// Class of content, 0 when there are no classes.
    pub class: u16,
    /// Optional features.
    pub features: Option<Arc<Features>>,
}

impl Request {
    /// A static request for `target` of unknown size from client 0.
    #[must_use]
    pub const fn of(number: u64, target: TargetId) -> Self {
        Self { number, target, size_bytes: None, kind: Kind::Static, client: 0, class: 0, features: None }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Answered.
    Completed,
    /// Lost: the back-end failed, or the client went away.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_identity_never_changes() {
        // Decision logs hold these numbers; a change of hash would break every replay. Reference: XXH3 test vector
        // for the empty input.
        assert_eq!(TargetId::from_key(b"").0, 0x2D06_8005_38D3_94C2);
        assert_ne!(TargetId::from_key(b"/a"), TargetId::from_key(b"/b"));
    }
}
