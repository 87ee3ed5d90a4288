//! Starts and stops what tells a load.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use plimsoll_wire::load::{BootId, IndexLimits, LoadAnnouncer, LoadAnswerer, LoadGauge, LoadIndex, LoadKeys};
use plimsoll_wire::random;

use super::announce::{self, Announcing};
use super::answer::{self, AnswerShared, LoadAnswering};
use super::api::{self, ApiListener, ApiThread};
use super::config::{LoadConfig, LoadError, LoadRole, system};
use super::host;
use super::priority::{InheritedPriority, allow_priority};
use super::shared::LoadShared;
use super::status::LoadStatus;
use super::writers::Writers;

/// Bound sockets, and no thread yet, so that the process can give its privileges away. Until it is started or dropped, the thread that made
/// it has a high priority, where it may: start no others meanwhile.
#[derive(Debug)]
pub struct PreparedLoad {
    config: LoadConfig,
    socket: UdpSocket,
    api: Option<ApiListener>,
    /// Of the thread that prepares, until the threads are started.
    priority: Option<InheritedPriority>,
}

/// What tells a load, running. If dropped, it runs until the process ends.
pub struct LoadService {
    shared: Arc<LoadShared>,
    address: SocketAddr,
    announcing: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    api: Option<ApiThread>,
}

impl std::fmt::Debug for LoadService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadService").field("address", &self.address).finish_non_exhaustive()
    }
}

impl PreparedLoad {
    /// Binds what is listened on.
    ///
    /// # Errors
    /// When the configuration is invalid, or an address cannot be listened on.
    pub fn new(config: LoadConfig) -> Result<Self, LoadError> {
        config.check()?;
        allow_priority();
        let address = config.listen;
        let failed = |error| LoadError::Listen { address: address.to_string(), error };
        let socket = answer::bind(address).map_err(failed)?;
        if let Some(announce) = &config.announce {
            announce::prepare(&socket, announce).map_err(system("cannot announce to that group"))?;
        }
        let api = config.api.as_ref().map(|at| ApiListener::bind(at, config.api_access)).transpose()?;
        let priority = InheritedPriority::raise();
        Ok(Self { config, socket, api, priority })
    }

    /// Where it will take inquiries, with the real port.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }

    /// Answers, and announces.
    ///
    /// # Errors
    /// When the system provides no threads or random numbers.
    pub fn start(self) -> Result<LoadService, LoadError> {
        let Self { config, socket, api, priority } = self;
        let chance = || random::<8>().map_err(system("there are no random numbers"));
        let keys = LoadKeys::new(&config.key);
        let boot = BootId::new(chance()?);
        let seed = u64::from_le_bytes(chance()?);
        let origin = Instant::now();
        let address = socket.local_addr().map_err(system("cannot tell the address of a socket"))?;
        let (shared, mut threads) = (Arc::<AnswerShared>::default(), Vec::new());
        let (answering, gauge, counters) = match config.role {
            LoadRole::Answer(gauge) => {
                let answerer = LoadAnswerer::new(keys.clone(), boot, config.limits, seed);
                let counters = answerer.counters();
                let meter = config
                    .host
                    .as_ref()
                    .map(|host| host::start(host, gauge.clone(), Arc::clone(&shared.stopping)));
                let (meter, thread) = meter.transpose()?.unzip();
                threads.extend(thread.flatten());
                (LoadAnswering::Gauge(answerer.into(), gauge.clone(), meter), gauge, counters)
            }
            LoadRole::Index(names) => {
                let limits = IndexLimits { answers: config.limits, ..IndexLimits::default() };
                let index = LoadIndex::new(keys.clone(), boot, &names, limits, seed);
                let counters = index.counters();
                (LoadAnswering::Index(index.into()), LoadGauge::new(), counters)
            }
        };
        let announcing = Arc::<AtomicBool>::default();
        if let Some(announce) = config.announce {
            let socket = socket.try_clone().map_err(system("cannot use a socket twice"))?;
            let mean_ns = u64::try_from(announce.interval.as_nanos()).unwrap_or(u64::MAX);
            let now_ns = answer::clock_ns(origin);
            let announcer = LoadAnnouncer::new(keys, boot, mean_ns, seed.rotate_left(31), now_ns);
            let (gauge, counters, receivers) = (gauge.clone(), Arc::clone(&counters), announce.receivers);
            let what = Announcing { socket, announcer, gauge, counters, receivers, origin };
            let thread = announce::start(what, Arc::clone(&announcing));
            threads.push(thread.map_err(system("cannot start a thread"))?);
        }
        shared.raised.store(priority.is_some(), Ordering::Relaxed);
        let thread = answer::start(socket, answering, origin, Arc::clone(&shared));
        threads.push(thread.map_err(system("cannot start a thread"))?);
        // They have it from this thread, which needs it no more.
        drop(priority);
        let writers = Mutex::new(Writers::new(gauge.clone()));
        let shared = Arc::new(LoadShared { gauge, counters, answering: shared, writers });
        let api = api.map(|listener| api::start(listener, Arc::clone(&shared))).transpose()?;
        Ok(LoadService { shared, address, announcing, threads, api })
    }
}

impl LoadService {
    /// Where it takes inquiries, with the real port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where servers tell their loads, with the real port, if by TCP.
    #[must_use]
    pub fn api_address(&self) -> Option<SocketAddr> {
        self.api.as_ref().and_then(|api| api.address)
    }

    /// What it tells, and has counted.
    #[must_use]
    pub fn status(&self) -> LoadStatus {
        self.shared.status()
    }

    /// Ends all threads.
    pub fn stop(self) {
        self.shared.answering.stopping.store(true, Ordering::Relaxed);
        self.announcing.store(true, Ordering::Relaxed);
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a thread that tells the load has failed");
            }
        }
        if let Some(api) = self.api {
            api.stop();
        }
    }
}
