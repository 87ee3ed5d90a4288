//! What all links of the thread use.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use plimsoll_origin::OwnMemory;

use super::super::accepting::LinkHost;
use super::super::noise::Noise;
use super::config::CacheNodeConfig;
use super::counters::CacheCounters;
use super::place::CachePlaces;

/// See the module's documentation.
pub(super) struct CacheState {
    pub(super) config: CacheNodeConfig,
    pub(super) places: RefCell<CachePlaces>,
    /// What is in memory here, for links that begin. Bounded by the memory.
    pub(super) held: RefCell<BTreeSet<u64>>,
    pub(super) own: Arc<OnceLock<Arc<dyn OwnMemory>>>,
    pub(super) counters: Arc<CacheCounters>,
    links_up: Arc<AtomicUsize>,
    refused_links: Noise,
}

impl CacheState {
    /// With nothing in memory, and no link.
    pub(super) fn new(
        config: CacheNodeConfig,
        places: CachePlaces,
        own: Arc<OnceLock<Arc<dyn OwnMemory>>>,
        (counters, links_up): (Arc<CacheCounters>, Arc<AtomicUsize>),
    ) -> Self {
        Self {
            config,
            places: RefCell::new(places),
            held: RefCell::default(),
            own,
            counters,
            links_up,
            refused_links: Noise::default(),
        }
    }

    pub(super) fn links_up(&self, change: isize) {
        if change > 0 {
            self.links_up.fetch_add(1, Ordering::Relaxed);
        } else {
            self.links_up.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A link was refused: strangers can cause this as often as they like.
    pub(super) fn refused_link(&self, source: IpAddr, why: &str) {
        self.counters.refused_links.add();
        if let Some(left_out) = self.refused_links.admits(Instant::now()) {
            tracing::warn!(%source, not_logged = left_out, "a link for documents is refused: {why}");
        }
    }
}

impl LinkHost for CacheState {
    fn stranger(&self, source: IpAddr) -> Option<&'static str> {
        let known = self.config.peers.iter().any(|peer| peer.address.ip() == source);
        (!known).then_some("its address is no node's")
    }

    fn refused_link(&self, source: IpAddr, why: &str) {
        Self::refused_link(self, source, why);
    }
}
