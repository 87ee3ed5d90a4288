//! The bounds of a map of services.

use std::time::Duration;

use crate::announcement::MOST_TTL;

/// What a map holds at most, and how old an announcement may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapBounds {
    /// Nodes that are remembered.
    pub nodes: usize,
    /// Partitions of services.
    pub services: usize,
    /// Replicas of all of them.
    pub replicas: usize,
    /// How far the time in an announcement may be from ours: what differs more is stale.
    pub freshness: Duration,
    /// The longest time to live that counts, 3 s or more where announcements are repeated: whoever claims a longer one has this one.
    pub most_ttl: Duration,
    /// How long a node is given at least to publish again, where a directory that is back has not got what it published.
    pub least_settling: Duration,
}

/// A node that lives is heard within this time: that much counts for any listener.
const LEAST_MOST_TTL: Duration = Duration::from_secs(3);

impl MapBounds {
    /// Of a listener that has what others say count for `ttl` at most.
    #[must_use]
    pub fn of_listener(ttl: Duration) -> Self {
        Self { most_ttl: ttl.max(LEAST_MOST_TTL), ..Self::default() }
    }
}

impl Default for MapBounds {
    fn default() -> Self {
        Self {
            nodes: 4096,
            services: 4096,
            replicas: 16_384,
            freshness: Duration::from_secs(30),
            most_ttl: MOST_TTL,
            least_settling: Duration::ZERO,
        }
    }
}
