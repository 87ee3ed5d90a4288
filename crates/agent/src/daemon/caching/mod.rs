//! Cooperative caching: documents come from the memory of another node instead of from the disk.
//! `docs/mechanisms/cooperative-caching.md` describes it.
//!
//! A thread has the links. `memory` is what the origin sees; its questions go to the thread. `place` says which node is asked,
//! `asking` is the side of a link that asks, `holding` the one that answers.

mod asking;
mod config;
mod counters;
mod holding;
mod memory;
mod node;
mod place;
mod state;

pub use config::{CacheLocation, CacheNodeConfig, CachePeer};
pub use counters::CacheCounts;
pub use node::{CacheNode, PreparedCacheNode};
