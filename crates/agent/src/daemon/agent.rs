//! Starts and stops an agent.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_datapath::privileges::RunUser;
use plimsoll_datapath::{Guard, GuardConfig, HeldRing, Vip, tcp};
use plimsoll_wire::message::{AgentCounts, FromAgent};
use tokio::sync::oneshot;

use super::config::{AgentConfig, AgentError, LEASES};
use super::queue::SendQueues;
use super::serve::Serve;
use super::setup::{CUT_OFF, LOOK, add_vips, listen, wait_until};
use super::shared::AgentShared;
use super::threads::{OriginThread, serve_origin, start_control, start_held, start_thread};
use plimsoll_origin::{OriginError, OriginStats};

/// The longest time that the end waits for links to take their last messages.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Memory for held packets that were not read yet.
const RING_BYTES: u32 = 4 << 20;

/// Counts of an agent since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentStats {
    /// What it has counted itself.
    pub counts: AgentCounts,
    /// Counts of the origin, if it answers.
    pub origin: Option<OriginStats>,
}

/// A running agent. If dropped, it runs until the process ends, and its packet programs stay.
pub struct Agent {
    shared: Arc<AgentShared>,
    vips: Vec<Vip>,
    address: SocketAddr,
    origin_address: Option<SocketAddr>,
    control: JoinHandle<()>,
    stop: oneshot::Sender<()>,
    threads: Vec<JoinHandle<()>>,
    origin: Option<OriginThread>,
}

/// A handle to an agent that is being stopped, usable from any thread.
#[derive(Clone)]
pub struct AgentHandle(Weak<AgentShared>);

impl AgentHandle {
    /// Makes [`Agent::stop`] end requests under way at once.
    pub fn hurry(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.hurry();
        }
    }
}

impl std::fmt::Debug for AgentHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AgentHandle").finish()
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("address", &self.address).finish_non_exhaustive()
    }
}

/// An agent that has what takes privileges: bound sockets, loaded packet programs and virtual addresses. It has no thread yet,
/// so that the process can give its privileges away.
pub struct PreparedAgent {
    config: AgentConfig,
    queues: SendQueues,
    serve: Serve,
    listener: TcpListener,
    origin: Option<TcpListener>,
    guard: Guard,
    ring: HeldRing,
    vips: Vec<Vip>,
}

impl std::fmt::Debug for PreparedAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedAgent").field("config", &self.config).finish_non_exhaustive()
    }
}

impl PreparedAgent {
    /// Sets the virtual addresses up and loads the packet programs; `user` is the one that the process is to become before
    /// [`PreparedAgent::start`], if any.
    ///
    /// # Errors
    /// When the configuration is invalid, privileges are missing, or an address cannot be listened on.
    pub fn new(config: AgentConfig, user: Option<&RunUser>) -> Result<Self, AgentError> {
        config.check()?;
        tcp::prepare().map_err(AgentError::Repair)?;
        let asking = |error| AgentError::System { what: "cannot ask the kernel about connections", error };
        let queues = SendQueues::open().map_err(asking)?;
        let serve = Serve::of(&config.serve, &config.gauge)?;
        let listener =
            listen(config.listen).map_err(|error| AgentError::Listen { address: config.listen, error })?;
        let origin = match (config.origin_listen, &serve) {
            (Some(address), Serve::Origin(_)) => {
                let failed = |error| AgentError::Origin(OriginError::Listen { address, error });
                Some(listen(address).map_err(failed)?)
            }
            _ => None,
        };
        // The guard first: without it the kernel resets what comes for an address of its own.
        let wanted = GuardConfig {
            instance: config.name.clone(),
            interface: config.interface.clone(),
            vips: config.vips.clone(),
            leases: LEASES,
            ring_bytes: RING_BYTES,
        };
        let (guard, ring) = Guard::open_for(&wanted, user)?;
        let vips = add_vips(&config.vips, &config.interface)?;
        Ok(Self { config, queues, serve, listener, origin, guard, ring, vips })
    }

    /// Takes links.
    ///
    /// # Errors
    /// When the system provides no threads.
    pub fn start(self) -> Result<Agent, AgentError> {
        let Self { config, queues, serve, listener, origin, guard, ring, vips } = self;
        let listening = |error| AgentError::Listen { address: config.listen, error };
        let address = listener.local_addr().map_err(listening)?;
        let origin = match (origin, &serve) {
            (Some(listener), Serve::Origin(service)) => {
                Some(serve_origin(listener, service.clone(), config.threads)?)
            }
            _ => None,
        };
        let (origin_address, origin) = origin.unzip();
        let threads = config.threads;
        let shared = Arc::new(AgentShared::new(config, guard, serve, queues));
        let (senders, mut threads): (Vec<_>, Vec<_>) = (0..threads)
            .map(|number| start_thread(number, &shared))
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .unzip();
        let (stop, stopped) = oneshot::channel();
        let control = start_control(Arc::clone(&shared), listener, senders, stopped)?;
        threads.push(start_held(Arc::clone(&shared), ring)?);
        Ok(Agent { shared, vips, address, origin_address, control, stop, threads, origin })
    }
}

impl Agent {
    /// Sets the virtual addresses up, loads the packet programs, and takes links.
    ///
    /// # Errors
    /// As [`PreparedAgent::new`] and [`PreparedAgent::start`].
    pub fn start(config: AgentConfig) -> Result<Self, AgentError> {
        PreparedAgent::new(config, None)?.start()
    }

    /// Where it takes links, with the real port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its origin listens, with the real port.
    #[must_use]
    pub fn origin_address(&self) -> Option<SocketAddr> {
        self.origin_address
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> AgentStats {
        self.shared.stats()
    }

    /// A handle to keep when the agent itself is being stopped.
    #[must_use]
    pub fn handle(&self) -> AgentHandle {
        AgentHandle(Arc::downgrade(&self.shared))
    }

    /// Refuses new connections, gives requests under way `drain_timeout`, cuts off the rest, and undoes the
    /// setup.
    ///
    /// # Errors
    /// When something could not be undone. The agent has stopped all the same.
    pub fn stop(self) -> Result<AgentStats, AgentError> {
        let Self { shared, vips, control, stop, threads, origin, .. } = self;
        shared.stop();
        shared.links().iter().for_each(|link| link.push(&FromAgent::Stopping));
        let origin_done = origin.map(|origin| {
            let _ = origin.stop.send(());
            (origin.runtime, origin.done)
        });
        wait_until(|| shared.open() == 0 || shared.is_hurried(), shared.config.drain_timeout);
        if shared.open() > 0 {
            tracing::warn!(connections = shared.open(), "connections are cut off");
            shared.cut_all();
            wait_until(|| shared.open() == 0, CUT_OFF);
        }
        if let Some((runtime, done)) = origin_done {
            let limit = if shared.is_hurried() { LOOK } else { shared.config.drain_timeout };
            let _ = done.recv_timeout(limit);
            runtime.shutdown_timeout(Duration::from_millis(100));
        }
        let stats = shared.stats();
        // Reports of the last requests may still be queued: an urgent message takes them along.
        let links = shared.links();
        links.iter().for_each(|link| link.push(&FromAgent::Counted { counts: stats.counts }));
        wait_until(|| shared.is_hurried() || links.iter().all(|link| link.has_sent_all()), LAST_WORDS);
        drop(links);
        // Ends the control thread, which drops the senders, which ends the others.
        shared.end();
        let _ = stop.send(());
        for thread in std::iter::once(control).chain(threads) {
            if thread.join().is_err() {
                tracing::error!("a thread of the agent has failed");
            }
        }
        // If one fails, the rest is dropped, which undoes it as well.
        let undone = vips.into_iter().try_for_each(Vip::undo);
        match Arc::into_inner(shared) {
            Some(shared) => shared.guard.clear_and_detach()?,
            None => tracing::error!("the packet programs stay, as something still uses them"),
        }
        undone?;
        Ok(stats)
    }
}

impl AgentShared {
    fn stats(&self) -> AgentStats {
        AgentStats { counts: self.counts(), origin: self.serve.origin_stats() }
    }
}
