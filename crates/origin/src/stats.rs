//! What an origin counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// What an origin has counted since it was made, and what it holds now.
///
/// The figures are read one after another, so while the origin works one may be newer than another. Those of an idle
/// origin agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OriginStats {
    /// Requests whose head was read.
    pub requests: u64,
    /// Bodies served from memory.
    pub hits: u64,
    /// Bodies that were not in memory, so that their request had them read.
    pub misses: u64,
    /// Bodies that were not in memory, but being read for another request already.
    pub joined: u64,
    /// Bodies that were not in memory, and came from another node's.
    pub from_peers: u64,
    /// Bodies that were streamed, because the memory cache does not take files of their size.
    pub bypassed: u64,
    /// Whole files read into memory, including those whose request was given up.
    pub reads: u64,
    /// Bytes of bodies handed to connections.
    pub body_bytes: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// Bytes in the memory cache now.
    pub cache_used_bytes: u64,
    /// Files in the memory cache now.
    pub cache_objects: u64,
}

/// The counters behind [`OriginStats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: Counter,
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) joined: Counter,
    pub(crate) from_peers: Counter,
    pub(crate) bypassed: Counter,
    pub(crate) reads: Counter,
    pub(crate) body_bytes: Counter,
    pub(crate) connections: Counter,
    pub(crate) connections_closed: Counter,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// A snapshot, with what the cache holds.
    pub(crate) fn snapshot(&self, cache_used_bytes: u64, cache_objects: u64) -> OriginStats {
        // The closed ones are read before all: so the difference is never below zero.
        let closed = self.connections_closed.get();
        let connections = self.connections.get();
        OriginStats {
            requests: self.requests.get(),
            hits: self.hits.get(),
            misses: self.misses.get(),
            joined: self.joined.get(),
            from_peers: self.from_peers.get(),
            bypassed: self.bypassed.get(),
            reads: self.reads.get(),
            body_bytes: self.body_bytes.get(),
            connections,
            connections_open: connections.saturating_sub(closed),
            cache_used_bytes,
            cache_objects,
        }
    }
}
