//! What all threads of a node share.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_datapath::{Mac, NextHop, PacketRouter, RouterCounters, neighbor};
use tokio::sync::watch;

use super::super::noise::Noise;
use super::super::serve::Serve;
use super::access::{AccessBegin, NodeAccessLog, RequestEnd};
use super::asks::AsksNodes;
use super::clones::Clones;
use super::config::CloneConfig;
use super::counters::{CloneCounters, CloneStats};
use super::doubts::Doubts;
use super::heard_sizes::Sharing;
use super::mapping::Mapping;
use super::originals::Originals;

/// How long another node's MAC address is waited for. Its link is there, so the kernel knows it.
const MAC_WAIT: Duration = Duration::from_millis(100);

/// Whether a node takes connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodePhase {
    Running,
    /// It takes no new ones, and ends others after the request under way.
    Stopping,
    /// It resets those that are left.
    Cut,
}

/// See the module's documentation.
pub(super) struct CloneShared {
    pub(super) config: CloneConfig,
    pub(super) router: PacketRouter,
    pub(super) serve: Serve,
    pub(super) mapping: Mapping,
    /// Carries polls to other nodes.
    pub(super) asks: AsksNodes,
    pub(super) sharing: Sharing,
    pub(super) access_log: Option<NodeAccessLog>,
    pub(super) originals: Originals,
    pub(super) clones: Clones,
    pub(super) doubts: Doubts,
    pub(super) counters: CloneCounters,
    pub(super) phase: watch::Sender<NodePhase>,
    refused_links: Noise,
    nodes: Mutex<BTreeMap<IpAddr, Mac>>,
    /// Links to each peer that are there.
    up: Mutex<Vec<usize>>,
    open: AtomicUsize,
    ended: AtomicBool,
}

/// Room for one connection, as long as this lives.
pub(super) struct CloneRoom(Arc<CloneShared>);

impl Drop for CloneRoom {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CloneShared {
    pub(super) fn new(
        config: CloneConfig,
        router: PacketRouter,
        serve: Serve,
        mapping: Mapping,
        (asks, access_log): (AsksNodes, Option<NodeAccessLog>),
    ) -> Self {
        let up = Mutex::new(vec![0; config.peers.len()]);
        Self {
            router,
            serve,
            mapping,
            asks,
            sharing: Sharing::new(&config),
            access_log,
            config,
            originals: Originals::default(),
            clones: Clones::default(),
            doubts: Doubts::default(),
            counters: CloneCounters::default(),
            phase: watch::Sender::new(NodePhase::Running),
            refused_links: Noise::default(),
            nodes: Mutex::default(),
            up,
            open: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        }
    }

    pub(super) fn stats(&self) -> CloneStats {
        let router = self.router.counters().unwrap_or_else(|error| {
            tracing::debug!(%error, "the packet router's counters could not be read");
            RouterCounters::default()
        });
        self.counters.stats(router, self.serve.origin_stats())
    }

    /// A request with this head has come, for the access log.
    pub(super) fn log_begin(&self, client: SocketAddr, head: &[u8]) -> Option<AccessBegin> {
        self.access_log.as_ref().map(|log| log.begin(client, head))
    }

    /// It has ended so.
    pub(super) fn log_end(&self, begun: Option<&AccessBegin>, end: &RequestEnd) {
        if let (Some(log), Some(begun)) = (&self.access_log, begun) {
            log.end(begun, end, &self.config);
        }
    }

    /// Whether clones of this node's connections keep them. Servers behind the shim get one request at a time.
    pub(super) fn keeps(&self) -> bool {
        self.config.keeps && self.serve.reads_here()
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.phase.borrow() != NodePhase::Running
    }

    /// Number of connections, clones included.
    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Reserves room for one more connection, if there is any.
    pub(super) fn room(self: &Arc<Self>) -> Option<CloneRoom> {
        let most = self.config.max_connections;
        let room = |open: usize| (open < most).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        Some(CloneRoom(Arc::clone(self)))
    }

    /// Ends the threads.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// A link was refused: strangers can cause this as often as they like.
    pub(super) fn refused_link(&self, source: IpAddr, why: &str) {
        CloneCounters::count(&self.counters.refused_links);
        if let Some(left_out) = self.refused_links.admits(Instant::now()) {
            tracing::warn!(%source, not_logged = left_out, "a link was refused: {why}");
        }
    }

    /// Has the packet router know another node, with which there is a link, and returns the way there.
    pub(super) fn learn_node(&self, address: IpAddr) -> Result<NextHop, String> {
        let next_hop = neighbor(address, MAC_WAIT).map_err(|error| error.to_string())?;
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if nodes.insert(address, next_hop.mac) != Some(next_hop.mac) {
            let all: Vec<Mac> = nodes.values().copied().collect();
            self.router.set_nodes(&all).map_err(|error| error.to_string())?;
        }
        Ok(next_hop)
    }

    /// A thread's link to a peer is there, or no longer. The first one that is lost tells that the peer may be gone.
    pub(super) fn link_is_up(&self, peer: usize, up: bool) {
        let mut links = self.up.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = links.get_mut(peer) else { return };
        *count = if up { *count + 1 } else { count.saturating_sub(1) };
        self.mapping.set_up(peer, up);
    }

    /// Links to other nodes that are there, over all threads.
    pub(super) fn links_up(&self) -> usize {
        self.up.lock().unwrap_or_else(PoisonError::into_inner).iter().sum()
    }
}
