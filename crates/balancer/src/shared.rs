//! The state that all threads of the front-end share.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use arc_swap::ArcSwap;
use plimsoll_config::Config;
#[cfg(test)]
use plimsoll_policy::BackendId;
use plimsoll_policy::Health;

use crate::backend::Backend;
use crate::directory_status::DirectoryStatus;
use crate::dispatch::PartitionedDispatch;
use crate::http::target_hash::TargetHash;
use crate::load_information::LoadIntake;
use crate::metrics::WorkerCounts;
use crate::net::places::Places;
use crate::peers::Peers;
use crate::refusals::RefusalExamples;
use crate::tls_serving::TlsServing;
use plimsoll_observe::access_log::AccessLogSender;

/// The state that all workers share.
pub(crate) struct FrontEndShared {
    pub(crate) dispatch: PartitionedDispatch,
    /// The back-ends by the index of their id.
    pub(crate) backends: ArcSwap<Vec<Arc<Backend>>>,
    pub(crate) config: ArcSwap<Config>,
    /// Held while back-ends come, go or change, so that it is one change at a time.
    pub(crate) membership: Mutex<()>,
    /// How targets and clients are identified.
    pub(crate) hash: TargetHash,
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
    /// Tells whoever waits that a back-end has just gone down, so that it is looked at again soon.
    pub(crate) suspected: tokio::sync::Notify,
    /// Held while back-ends are ejected or readmitted, so that two at once are not more than may be.
    pub(crate) ejecting: Mutex<()>,
    /// Whether a back-end may be ejected, so that requests look for one on trial.
    pub(crate) any_ejected: AtomicBool,
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

impl FrontEndShared {
    /// Takes a sign that a back-end works: counts it, and tells dispatch when it is up by that.
    pub(crate) fn good_sign(&self, backend: &Arc<Backend>) {
        match backend.good_sign(self.config.load().health.rise) {
            Some(health) if self.is_there(backend) => {
                let drained = if health == Health::Draining { ", and drained" } else { "" };
                tracing::info!(backend = &*backend.name, "back-end is up{drained}");
                self.health_changed(backend);
            }
            _ => {}
        }
    }

    /// Takes a sign that a back-end does not work, and the reason: counts it, and tells dispatch when it is down by that.
    pub(crate) fn bad_sign(&self, backend: &Arc<Backend>, why: &dyn fmt::Display) {
        let changed = backend.bad_sign(self.config.load().health.fall);
        if changed.is_some() && self.is_there(backend) {
            tracing::warn!(backend = &*backend.name, %why, "back-end is down");
            self.health_changed(backend);
        }
    }

    fn health_changed(&self, backend: &Backend) {
        self.tell_health(backend);
        self.suspected.notify_waiters();
    }

    /// Tells dispatch how a back-end is, and readmits ejected ones where that asks for it.
    pub(crate) fn tell_health(&self, backend: &Backend) {
        self.pass_health(backend);
        self.look_after_ejected(Instant::now());
    }

    /// Tells dispatch how a back-end is. Whoever comes last with two changes at once tells the later one.
    pub(crate) fn pass_health(&self, backend: &Backend) {
        // Each further round is for a change that happened meanwhile.
        for _ in 0..16 {
            let health = backend.health();
            self.dispatch.set_health(backend.id, health);
            if backend.health() == health {
                break;
            }
        }
    }

    /// Whether a back-end is configured, as it is or as it was before a reload.
    pub(crate) fn is_there(&self, backend: &Backend) -> bool {
        let backends = self.backends.load();
        backends.get(backend.id.index()).is_some_and(|now| !now.is_retired() && now.is_same(backend))
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
        let specs = crate::membership::resolve::members_of(&config, &[]);
        let backends = specs.iter().enumerate();
        let backends =
            backends.map(|(i, s)| Arc::new(crate::membership::members::backend(BackendId::new(i), s, 1)));
        Arc::new(Self {
            hash: TargetHash::PLAIN,
            dispatch: PartitionedDispatch::new(&config, &specs, 1).unwrap(),
            backends: ArcSwap::from_pointee(backends.collect()),
            membership: Mutex::default(),
            access_log: plimsoll_observe::access_log::start(None).unwrap().0,
            counts: [WorkerCounts::default()].into(),
            refusal_examples: RefusalExamples::default(),
            room_wanted: AtomicUsize::new(0),
            connections_limit: AtomicUsize::new(1),
            places: Places::new(1),
            suspected: tokio::sync::Notify::new(),
            ejecting: Mutex::default(),
            any_ejected: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            peers: None,
            directory: OnceLock::new(),
            load_information: LoadIntake::prepare(&config.load_information).unwrap(),
            tls: TlsServing::new(&config).unwrap(),
            config: ArcSwap::from_pointee(config),
        })
    }

    /// The back-end of this index.
    pub(crate) fn nth(&self, index: usize) -> Arc<Backend> {
        Arc::clone(&self.backends.load()[index])
    }
}
