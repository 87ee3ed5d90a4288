//! The settings of an origin.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_wire::load::LoadGauge;

use super::emulate::{CpuModel, DiskModel};
use super::peers::PeerMemory;
use super::source::Source;

/// The settings of an origin.
#[derive(Debug, Clone)]
pub struct OriginConfig {
    /// What it serves.
    pub source: Source,
    /// Replacement policy of the memory cache, a name of `plimsoll_cache::REGISTRY`; `gds` by default.
    pub cache_policy: String,
    /// Size of the memory cache in bytes; 64 MiB by default, 0 for none.
    pub cache_bytes: u64,
    /// Largest file that the cache takes, in bytes; larger ones are streamed. By default the size of the cache.
    pub cache_object_limit_bytes: Option<u64>,
    /// The disk to emulate. By default none: files are read as fast as this machine can.
    pub disk: Option<DiskModel>,
    /// The CPU to emulate; none by default.
    pub cpu: Option<CpuModel>,
    /// Value of the header `X-Backend`; the header is left out by default.
    pub name: Option<String>,
    /// Most open connections; further ones wait to be accepted. 4,096 by default.
    pub max_connections: usize,
    /// How long a client may take until it has sent the head of its next request, idle time included; 60 s by default.
    pub head_timeout: Duration,
    /// How long a client may take no byte of a response before its connection is cut; 30 s by default.
    pub write_timeout: Duration,
    /// How long requests under way may go on when the origin stops; 10 s by default.
    pub drain_timeout: Duration,
    /// Counts the requests that are being answered; a gauge of its own by default.
    pub gauge: LoadGauge,
    /// The memory of other nodes, which is asked before the disk; none by default.
    pub peers: Option<Arc<dyn PeerMemory>>,
}

impl OriginConfig {
    /// The defaults, for an origin that serves `source`.
    #[must_use]
    pub fn new(source: Source) -> Self {
        Self {
            source,
            cache_policy: "gds".to_owned(),
            cache_bytes: 64 << 20,
            cache_object_limit_bytes: None,
            disk: None,
            cpu: None,
            name: None,
            max_connections: 4096,
            head_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
            gauge: LoadGauge::new(),
            peers: None,
        }
    }
}
