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
    /// The longest time to live that counts: whoever claims a longer one has this one.
    pub most_ttl: Duration,
}

impl Default for MapBounds {
    fn default() -> Self {
        Self {
            nodes: 4096,
            services: 4096,
            replicas: 16_384,
            freshness: Duration::from_secs(30),
            most_ttl: MOST_TTL,
        }
    }
}
