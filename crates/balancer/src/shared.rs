//! The state that all threads of the front-end share.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, ArcSwapOption};
#[cfg(test)]
use plimsoll_config::Config;

use crate::backend_pool::{BackendPool, FIRST_POOL};
use crate::directory_status::DirectoryStatus;
#[cfg(test)]
use crate::http::target_hash::TargetHash;
use crate::load_information::LoadIntake;
use crate::metrics::WorkerCounts;
use crate::net::held_memory::HeldMemory;
use crate::net::places::Places;
use crate::peers::Peers;
use crate::refusals::RefusalExamples;
use crate::routing::Routing;
use crate::tls_serving::TlsServing;
use plimsoll_observe::access_log::AccessLogSender;

/// The state that all workers share.
pub(crate) struct FrontEndShared {
    /// The pool of the back-ends that name none.
    pub(crate) first: Arc<BackendPool>,
    /// The other pools; those that a reload has removed stay until their requests are over.
    pub(crate) others: ArcSwap<Vec<Arc<BackendPool>>>,
    /// Which pool takes a request; none where the first one takes all.
    pub(crate) routing: ArcSwapOption<Routing>,
    pub(crate) access_log: AccessLogSender,
    /// By worker.
    pub(crate) counts: Box<[WorkerCounts]>,
    /// Refused requests, to show in the log.
    pub(crate) refusal_examples: RefusalExamples,
    /// Accepted connections for which there is no place yet.
    pub(crate) room_wanted: AtomicUsize,
    /// The number of places.
    pub(crate) connections_limit: AtomicUsize,
    /// Places for connections of clients.
    pub(crate) places: Arc<Places>,
    /// What is held for slow clients.
    pub(crate) held: HeldMemory,
    /// Bodies that are compressed now.
    pub(crate) compressing: AtomicUsize,
    /// Set when the front-end begins to stop.
    pub(crate) stopping: AtomicBool,
    /// Front-ends beside this one.
    pub(crate) peers: Option<Arc<Peers>>,
    /// The directory of services, once it is listened to.
    pub(crate) directory: OnceLock<DirectoryStatus>,
    /// Where policies' loads come from.
    pub(crate) load_information: LoadIntake,
    /// What TLS handshakes go by.
    pub(crate) tls: TlsServing,
}

/// What is of the whole front-end where there are no other pools is of its first one.
impl Deref for FrontEndShared {
    type Target = BackendPool;

    fn deref(&self) -> &BackendPool {
        &self.first
    }
}

impl FrontEndShared {
    /// All pools, the first one first.
    pub(crate) fn pools(&self) -> Vec<Arc<BackendPool>> {
        std::iter::once(&self.first).chain(self.others.load().iter()).cloned().collect()
    }

    /// Does this with the pool of this number, if it is there.
    pub(crate) fn in_pool<T>(&self, number: u32, does: impl FnOnce(&Arc<BackendPool>) -> T) -> Option<T> {
        match number {
            FIRST_POOL => Some(does(&self.first)),
            _ => self.others.load().iter().find(|pool| pool.number == number).map(does),
        }
    }
}

#[cfg(test)]
impl FrontEndShared {
    /// Of a front-end without threads, before three back-ends `a`, `b` and `c`; `tables` goes to the end of the configuration.
    pub(crate) fn before_three(tables: &str) -> Arc<Self> {
        let backends: String = ["a", "b", "c"]
            .iter()
            .zip(1..)
            .map(|(name, port)| format!("[[backend]]\nname = \"{name}\"\naddress = \"127.0.0.1:{port}\"\n"))
            .collect();
        let text = format!("[[listener]]\naddress = \"127.0.0.1:0\"\n{backends}{tables}");
        let config = Config::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{text}\n{e}"));
        let config = Config { workers: 1, ..config };
        let specs = crate::membership::resolve::members_of(&config, &[]);
        let first =
            BackendPool::new((FIRST_POOL, "default"), config.clone(), TargetHash::PLAIN, &specs).unwrap();
        Arc::new(Self {
            first,
            others: ArcSwap::default(),
            routing: ArcSwapOption::default(),
            access_log: plimsoll_observe::access_log::start(None).unwrap().0,
            counts: [WorkerCounts::default()].into(),
            refusal_examples: RefusalExamples::default(),
            room_wanted: AtomicUsize::new(0),
            connections_limit: AtomicUsize::new(1),
            places: Places::new(1),
            held: HeldMemory::default(),
            compressing: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            peers: None,
            directory: OnceLock::new(),
            load_information: LoadIntake::prepare(&config.load_information).unwrap(),
            tls: TlsServing::new(&config).unwrap(),
        })
    }
}
