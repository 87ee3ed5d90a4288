//! The front-end as a whole: starts workers, applies configurations, stops gracefully.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use plimsoll_config::{Admin, Config, MechanismKind, PeersConfig};
use plimsoll_datapath::privileges::RunUser;

use crate::control::{Control, ControlError};
use crate::dispatch::BuildFailed;
use crate::http::target_hash::TargetHash;
use crate::load_information::LoadIntake;
use crate::mechanism::carry::Mechanism;
use crate::mechanism::direct::{DirectThreads, LeftServices};
use crate::mechanism::registry::{MechanismSystems, Mechanisms};
use crate::metrics::WorkerCounts;
use crate::net::held_memory::HeldMemory;
use crate::net::listen::listen;
use crate::net::places::Places;
use crate::peers::Peers;
use crate::pools::{self, PoolError, PoolsReload};
use crate::refusals::RefusalExamples;
use crate::rlimit::most_connections;
use crate::routing::Routing;
use crate::shared::FrontEndShared;
use crate::thread::WorkerThread;
use crate::tls_serving::TlsServing;
use plimsoll_observe::access_log;

/// Why a front-end does not start, or does not take over a configuration.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened at.
    #[error("cannot listen at {address}: {error} ({})", listen_remedy(key, error))]
    Listen {
        /// The key of the configuration that says so.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The access log cannot be opened.
    #[error("cannot open the access log {0}")]
    AccessLog(io::Error),
    /// Policy or decision log cannot be used.
    #[error("{0}")]
    Dispatch(String),
    /// The back-ends before and after, which are there together for a while, are more than a cluster holds.
    #[error("old and new back-ends together are more than 65,534; replace them in several reloads")]
    TooManyBackends,
    /// This system does not allow connections to be distributed at layer 4.
    #[error("connections cannot be distributed at layer 4: {0}")]
    Direct(String),
    /// This system does not allow connections to be handed off.
    #[error("connections cannot be handed off: {0}")]
    Handoff(String),
    /// Packets to a listener go to another front-end of this machine.
    #[error("clients could not connect: {0}")]
    Unreachable(String),
    /// The system provides no random numbers.
    #[error("cannot draw a key for the hash of targets: {0}")]
    Random(io::Error),
    /// TLS cannot be spoken as configured.
    #[error("cannot speak TLS as configured: {0}")]
    Tls(rustls::Error),
    /// The directory of services cannot be listened to.
    #[error("cannot listen to the directory of services: {0}")]
    Discovery(String),
    /// The system has no thread to give.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl From<BuildFailed> for StartError {
    fn from(error: BuildFailed) -> Self {
        Self::Dispatch(error.to_string())
    }
}

impl From<PoolError> for StartError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Build(error) => error.into(),
            PoolError::TooMany => Self::TooManyBackends,
        }
    }
}

impl From<ControlError> for StartError {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::Thread(error) => Self::Thread(error),
            ControlError::Discovery(error) => Self::Discovery(error.to_string()),
        }
    }
}

/// A running front-end. Dropping it without [`Balancer::stop`] leaves its threads running.
pub struct Balancer {
    shared: Arc<FrontEndShared>,
    systems: Arc<MechanismSystems>,
    /// With the mechanism `direct`.
    direct: Option<DirectThreads>,
    workers: Vec<WorkerThread>,
    control: Control,
    access_log: JoinHandle<()>,
    /// Configured address to real one: they differ where the system chose the port.
    listeners: Mutex<BTreeMap<SocketAddr, SocketAddr>>,
}

/// A front-end that has what takes privileges: bound sockets and loaded packet programs. It has no thread yet, so that the
/// process can give its privileges away.
pub struct PreparedBalancer {
    config: Config,
    most_connections: usize,
    sockets: Vec<Bound>,
    admin: Option<TcpListener>,
    systems: Arc<MechanismSystems>,
    peers: Option<Arc<Peers>>,
    load_information: LoadIntake,
}

impl PreparedBalancer {
    /// Prepares a front-end; `user` is the one that the process is to become before [`PreparedBalancer::start`], if any.
    ///
    /// # Errors
    /// When an address cannot be had, or connections cannot be handed off.
    pub fn new(config: Config, user: Option<&RunUser>) -> Result<Self, StartError> {
        let most_connections = most_connections(&config);
        let anywhere = config.failover.is_some();
        let is_direct = config.mechanism == MechanismKind::Direct;
        let left =
            LeftServices::find(&config.listeners, config.mechanism).map_err(StartError::Unreachable)?;
        let listeners = config.listeners.iter().map(|l| l.address);
        let sockets = bind_all(listeners.filter(|_| !is_direct), config.workers, anywhere)?;
        let admin = config.admin.as_ref().map(bind_admin).transpose()?.flatten();
        let refused = if is_direct { StartError::Direct } else { StartError::Handoff };
        let systems = Mechanisms::start(&config, user).map_err(refused)?.unwrap_or_default();
        let peers = config.peers.as_ref().map(beside).transpose()?;
        let load_information =
            LoadIntake::prepare(&config.load_information).map_err(|(address, error)| StartError::Listen {
                key: "`load_information.address`",
                address,
                error,
            })?;
        // Now that somebody listens.
        left.withdraw();
        Ok(Self { config, most_connections, sockets, admin, systems, peers, load_information })
    }

    /// Starts it: it serves clients when this returns.
    ///
    /// # Errors
    /// When a file or a thread cannot be had; nothing runs then.
    pub fn start(self) -> Result<Balancer, StartError> {
        let Self { config, most_connections, sockets, admin, systems, peers, load_information } = self;
        let hash = TargetHash::of(&config).map_err(StartError::Random)?;
        let first = pools::start_first(&config, hash)?;
        let others = pools::start_others(&config, hash)?;
        let pools: Vec<_> = std::iter::once(&first).chain(&others).cloned().collect();
        let routing = ArcSwapOption::from(Routing::of(&config, &pools, None).map(Arc::new));
        let (sender, access_log) =
            access_log::start(config.access_log.as_ref()).map_err(StartError::AccessLog)?;
        let shared = Arc::new(FrontEndShared {
            first,
            others: ArcSwap::from_pointee(others),
            routing,
            access_log: sender,
            counts: (0..config.workers).map(|_| WorkerCounts::default()).collect(),
            refusal_examples: RefusalExamples::default(),
            room_wanted: AtomicUsize::new(0),
            connections_limit: AtomicUsize::new(most_connections),
            places: Places::new(most_connections),
            held: HeldMemory::default(),
            compressing: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            peers,
            directory: OnceLock::new(),
            load_information,
            tls: TlsServing::new(&config).map_err(StartError::Tls)?,
        });
        let direct = systems.direct().map(|system| DirectThreads::start(&shared, system));
        let direct = direct.transpose().map_err(StartError::Thread)?;
        let control = Control::start(Arc::clone(&shared), Arc::clone(&systems), admin)?;
        let start = |index| {
            WorkerThread::start(Arc::clone(&shared), Arc::clone(&systems), index).map_err(StartError::Thread)
        };
        let workers = (0..shared.counts.len()).map(start).collect::<Result<Vec<_>, _>>()?;
        // Those of a switch are bound nowhere.
        let unbound = shared.config.load().listeners.iter().map(|l| (l.address, l.address)).collect();
        let listeners = Mutex::new(if direct.is_some() { unbound } else { BTreeMap::new() });
        let balancer = Balancer { shared, systems, direct, workers, control, access_log, listeners };
        balancer.listen(sockets);
        Ok(balancer)
    }
}

impl Balancer {
    /// Starts a front-end: it serves clients when this returns.
    ///
    /// # Errors
    /// When an address, a file or a thread cannot be had; nothing runs then.
    pub fn start(config: Config) -> Result<Self, StartError> {
        PreparedBalancer::new(config, None)?.start()
    }

    /// The addresses at which clients are served, in the order of the configuration.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let config = self.shared.config.load();
        config.listeners.iter().filter_map(|l| listeners.get(&l.address).copied()).collect()
    }

    /// The address of the admin API.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.control.admin
    }

    /// Where the front-ends beside this one connect.
    #[must_use]
    pub fn peers_address(&self) -> Option<SocketAddr> {
        self.shared.peers.as_ref().map(|peers| peers.address)
    }

    /// Where announcements of loads come in.
    #[must_use]
    pub fn load_information_address(&self) -> Option<SocketAddr> {
        self.shared.load_information.address
    }

    /// Requests assigned to back-ends and not completed.
    #[must_use]
    pub fn load(&self) -> u64 {
        self.shared.pools().iter().map(|pool| pool.dispatch.load()).sum()
    }

    /// Applies another configuration: changes only what differs and loses no request. Number of workers and
    /// admin address change only by a restart.
    ///
    /// # Errors
    /// When something in it cannot be had; the running configuration stays in force then.
    pub fn reload(&self, new: Config) -> Result<(), StartError> {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        // First everything that can fail.
        let wanted: Vec<SocketAddr> = new.listeners.iter().map(|l| l.address).collect();
        let fresh = wanted.iter().copied().filter(|a| self.direct.is_none() && !listeners.contains_key(a));
        let sockets = bind_all(fresh, self.workers.len(), self.shared.config.load().failover.is_some())?;
        access_log::probe(new.access_log.as_ref()).map_err(StartError::AccessLog)?;
        let tls = self.shared.tls.prepare(&new).map_err(StartError::Tls)?;
        let there = self.shared.pools();
        let reload = PoolsReload::prepare(&self.shared, &there, new)?;
        // From here on nothing fails.
        let new = reload.config();
        self.change_places(new);
        // Opened anew even when unchanged: that is how a log that was rotated away is let go.
        self.shared.access_log.reopen(new.access_log.clone());
        Mechanisms::listen(&self.systems, &new.listeners);
        self.shared.tls.replace(tls);
        reload.apply(&self.shared);
        listeners.retain(|configured, _| {
            let stays = wanted.contains(configured);
            if !stays {
                self.workers.iter().for_each(|w| w.unlisten(*configured));
            }
            stays
        });
        if self.direct.is_some() {
            listeners.extend(wanted.iter().map(|&address| (address, address)));
        }
        drop(listeners);
        self.listen(sockets);
        self.control.rewatch();
        Ok(())
    }

    /// Stops: accepts nothing more, finishes what is under way within the configured time, closes the logs.
    pub fn stop(self) {
        let drain = self.shared.config.load().timeouts.drain;
        self.stop_within(drain);
    }

    /// The same, with another bound on the time.
    pub fn stop_within(self, drain: Duration) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        for worker in &self.workers {
            worker.stop(drain);
        }
        for worker in self.workers {
            worker.join();
        }
        self.control.stop();
        if let Some(direct) = self.direct {
            direct.stop();
        }
        Mechanisms::clear(&self.systems);
        self.shared.pools().iter().for_each(|pool| pool.dispatch.close_log());
        self.shared.access_log.flush();
        // The thread ends when the last sender is gone, which may be later, with a task that still holds it.
        drop(self.access_log);
    }

    fn listen(&self, sockets: Vec<Bound>) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        for bound in sockets {
            listeners.insert(bound.configured, bound.real);
            for (worker, socket) in self.workers.iter().zip(bound.sockets) {
                worker.listen(bound.configured, socket);
            }
        }
    }

    fn change_places(&self, new: &Config) {
        let places = most_connections(new);
        let old = self.shared.connections_limit.swap(places, Ordering::Relaxed);
        self.shared.places.resize(old, places);
    }
}

/// Sockets of one listener, one for each worker.
struct Bound {
    configured: SocketAddr,
    real: SocketAddr,
    sockets: Vec<TcpListener>,
}

const LISTENER: &str = "`address` of a [[listener]]";

fn bind_all(
    addresses: impl Iterator<Item = SocketAddr>,
    workers: usize,
    anywhere: bool,
) -> Result<Vec<Bound>, StartError> {
    let bind = |address, shared| {
        let failed = |error| StartError::Listen { key: LISTENER, address, error };
        listen(address, shared, anywhere).map_err(failed)
    };
    let bind_one = |configured: SocketAddr| {
        // Sharing the port is for our workers: another front-end that serves it already is found out.
        drop(bind(configured, false)?);
        let first = bind(configured, true)?;
        let failed = |error| StartError::Listen { key: LISTENER, address: configured, error };
        let real = first.local_addr().map_err(failed)?;
        let more = (1..workers).map(|_| bind(real, true));
        let sockets = std::iter::once(Ok(first)).chain(more).collect::<Result<_, _>>()?;
        Ok(Bound { configured, real, sockets })
    };
    addresses.map(bind_one).collect()
}

/// Where the admin API listens; nowhere if its address is taken and nobody has asked for it.
fn bind_admin(admin: &Admin) -> Result<Option<TcpListener>, StartError> {
    let address = admin.address;
    match listen(address, false, false) {
        Err(error) if admin.is_unasked && error.kind() == io::ErrorKind::AddrInUse => {
            tracing::warn!(
                "there is no admin API: {address}, its default address, is taken; write another `address`, or `enabled = false`, in [admin]"
            );
            Ok(None)
        }
        bound => {
            bound.map(Some).map_err(|error| StartError::Listen { key: "`admin.address`", address, error })
        }
    }
}

fn beside(config: &PeersConfig) -> Result<Arc<Peers>, StartError> {
    let address = config.address;
    let failed = |error| StartError::Listen { key: "`peers.address`", address, error };
    let peers = Peers::new(config.clone(), listen(address, false, false).map_err(failed)?);
    peers.map(Arc::new).map_err(failed)
}

/// What to change where an address cannot be listened at.
fn listen_remedy(key: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!(
                "another process listens there, perhaps one that is stopping: end it, or choose another port as {key}"
            )
        }
        io::ErrorKind::PermissionDenied => {
            format!(
                "ports below 1024 are for root: choose another one as {key}, or start as root with `user`"
            )
        }
        io::ErrorKind::AddrNotAvailable => {
            format!("this machine has no such address: choose one of `ip address` as {key}")
        }
        _ => format!("it is {key}"),
    }
}
