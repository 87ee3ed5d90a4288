//! Starts and stops a node.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_datapath::privileges::RunUser;
use plimsoll_datapath::{HeldRing, PacketRouter, PacketRouterConfig, RouterEvent, Vip, tcp};
use tokio::sync::oneshot;

use super::super::config::AgentError;
use super::super::serve::Serve;
use super::super::setup::{CUT_OFF, add_vips, listen, wait_until};
use super::config::CloneConfig;
use super::counters::CloneStats;
use super::mapping::Mapping;
use super::shared::{CloneShared, NodePhase};
use super::threads::{start_links, start_serving};
use super::told::{BegunTold, PreparedTold};

/// The most connections that are cloned at a time.
const CLONES: u32 = 65_536;
/// Memory for held packets that were not read yet.
const RING_BYTES: u32 = 4 << 20;
/// Time for clients that were reset.
const AFTER_CUT: Duration = Duration::from_millis(300);

/// A node that has what takes privileges: bound sockets, a loaded packet program and addresses. It has no thread yet, so that
/// the process can give its privileges away.
pub struct PreparedCloneNode {
    config: CloneConfig,
    serve: Serve,
    told: PreparedTold,
    listener: TcpListener,
    clients: Vec<TcpListener>,
    router: PreparedRouter,
    ring: HeldRing<RouterEvent>,
    vips: Vec<Vip>,
}

/// The packet router of a node that may not start. Dropped, nothing of it stays, unless it has inherited connections, which the next
/// process is to find.
struct PreparedRouter(Option<PacketRouter>);

impl PreparedRouter {
    fn take(mut self) -> PacketRouter {
        self.0.take().expect("it is taken once")
    }
}

impl Drop for PreparedRouter {
    fn drop(&mut self) {
        if let Some(router) = self.0.take_if(|router| router.entered() == 0) {
            let detached = router.detach();
            detached.unwrap_or_else(|error| tracing::error!(%error, "the packet program stays"));
        }
    }
}

impl std::fmt::Debug for PreparedCloneNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedCloneNode").field("config", &self.config).finish_non_exhaustive()
    }
}

impl PreparedCloneNode {
    /// Sets the addresses up, loads the packet program, and listens; `user` is the one that the process is to become before
    /// [`PreparedCloneNode::start`], if any.
    ///
    /// # Errors
    /// When the configuration is invalid, privileges are missing, or an address cannot be listened on.
    pub fn new(config: CloneConfig, user: Option<&RunUser>) -> Result<Self, AgentError> {
        config.check()?;
        tcp::prepare().map_err(AgentError::Repair)?;
        let serve = Serve::of(&config.serve, &config.gauge)?;
        Mapping::check(&config)?;
        let told = PreparedTold::new(&config)?;
        let at = |address| move |error| AgentError::Listen { address, error };
        let listener = listen(config.listen).map_err(at(config.listen))?;
        let wanted = PacketRouterConfig {
            instance: config.name.clone(),
            interface: config.interface.clone(),
            vips: config.vips.clone(),
            clones: CLONES,
            ring_bytes: RING_BYTES,
        };
        let (router, ring) = PacketRouter::open(&wanted, user)?;
        let router = PreparedRouter(Some(router));
        let vips = add_vips(&config.vips, &config.interface)?;
        let listen_at = |vip: &SocketAddr| listen(*vip).map_err(at(*vip));
        let clients = config.vips.iter().map(listen_at).collect::<Result<_, _>>()?;
        Ok(Self { config, serve, told, listener, clients, router, ring, vips })
    }

    /// Takes clients and links.
    ///
    /// # Errors
    /// When the system provides no threads, or a log cannot be opened.
    pub fn start(self) -> Result<CloneNode, AgentError> {
        let Self { config, serve, told, listener, clients, router, ring, vips } = self;
        let address = listener.local_addr();
        let address = address.map_err(|error| AgentError::Listen { address: config.listen, error })?;
        let count = config.threads;
        // Both begin threads.
        let mapping = Mapping::new(&config)?;
        let (parts, told): (_, BegunTold) = told.begin(&config)?;
        let admin = told.admin_address;
        let mut router = router.take();
        let inherited = router.take_inherited();
        let shared = Arc::new(CloneShared::new(config, router, serve, mapping, parts));
        shared.doubts.inherit(inherited);
        let (mut senders, mut threads) = (Vec::new(), Vec::new());
        let mut ring = Some(ring);
        for number in 0..count {
            let copies = clients.iter().map(TcpListener::try_clone).collect::<io::Result<_>>();
            let copies =
                copies.map_err(|error| AgentError::System { what: "cannot share a listener", error })?;
            let started = start_serving(number, &shared, copies, ring.take())?;
            senders.push(started.links);
            threads.push(started.thread);
        }
        drop(clients);
        let (stop, stopped) = oneshot::channel();
        let links = start_links(Arc::clone(&shared), listener, senders, stopped)?;
        threads.extend(told.start(&shared)?);
        Ok(CloneNode { shared, vips, address, admin, links, stop, threads })
    }
}

/// A running node. If dropped, it runs until the process ends, and its packet program stays.
pub struct CloneNode {
    shared: Arc<CloneShared>,
    vips: Vec<Vip>,
    address: SocketAddr,
    admin: Option<SocketAddr>,
    links: JoinHandle<()>,
    stop: oneshot::Sender<()>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for CloneNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CloneNode").field("address", &self.address).finish_non_exhaustive()
    }
}

impl CloneNode {
    /// Sets the node up, and takes clients and links.
    ///
    /// # Errors
    /// As [`PreparedCloneNode::new`] and [`PreparedCloneNode::start`].
    pub fn start(config: CloneConfig) -> Result<Self, AgentError> {
        PreparedCloneNode::new(config, None)?.start()
    }

    /// Where it takes links, with the real port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its admin API listens, with the real port.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> CloneStats {
        self.shared.stats()
    }

    /// Links to other nodes by which clones can be asked for: one of each thread to each of them, once all are there.
    #[must_use]
    pub fn links_up(&self) -> usize {
        self.shared.links_up()
    }

    /// Connections at the moment, clones included.
    #[must_use]
    pub fn open(&self) -> usize {
        self.shared.open()
    }

    /// Connections that the packet router leads to clones, or holds, at the moment.
    #[must_use]
    pub fn routed(&self) -> usize {
        self.shared.router.entered()
    }

    /// Takes no new connections, gives requests under way `drain_timeout`, cuts off the rest, and undoes the set-up.
    ///
    /// # Errors
    /// When something could not be undone. The node has stopped all the same.
    pub fn stop(self) -> Result<CloneStats, AgentError> {
        let Self { shared, vips, links, stop, threads, .. } = self;
        shared.phase.send_replace(NodePhase::Stopping);
        wait_until(|| shared.open() == 0, shared.config.drain_timeout);
        let is_cut = shared.open() > 0;
        if is_cut {
            tracing::warn!(connections = shared.open(), "connections are cut off");
            shared.phase.send_replace(NodePhase::Cut);
            wait_until(|| shared.open() == 0, CUT_OFF);
        }
        if is_cut || !shared.doubts.is_empty() {
            // Clients whose numbers are others than we know tell them (RFC 5961), and need an answer from the address.
            wait_until(|| shared.doubts.is_empty(), CUT_OFF);
            std::thread::sleep(AFTER_CUT);
        }
        let stats = shared.stats();
        // Ends the thread of the links, which drops the senders, which ends the others.
        shared.end();
        let _ = stop.send(());
        for thread in std::iter::once(links).chain(threads) {
            if thread.join().is_err() {
                tracing::error!("a thread of the node has failed");
            }
        }
        shared.mapping.close_log();
        if let Some(log) = &shared.access_log {
            log.flush();
        }
        // If one fails, the rest is dropped, which undoes it as well.
        let undone = vips.into_iter().try_for_each(Vip::undo);
        match Arc::into_inner(shared) {
            Some(shared) => shared.router.detach()?,
            None => tracing::error!("the packet program stays, as something still uses it"),
        }
        undone?;
        Ok(stats)
    }
}
