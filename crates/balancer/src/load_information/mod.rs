//! Where policies' loads come from, beside the front-end's own count: agents are asked (`poller`, with the state machine
//! `polls`), announce them (`broadcast`), or back-ends write them into their responses (`header`).
//!
//! Whatever is learned goes to dispatch, as answers to a request's poll or as reports; so the decision log has all of it.
//! `sockets` are where announcements come in; `hearing` knows which back-ends were silent for too long, and `silence` has told of whom.

mod broadcast;
mod counts;
pub(crate) mod fuzzed;
mod header;
mod kernel_timer;
mod poller;
mod silence;
mod silence_told;
mod sockets;

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_config::{LoadInformationConfig, LoadSource};
use plimsoll_wire::load::{InquiryLimits, LoadInquirer, LoadKeys};

pub(crate) use broadcast::listen;
pub(crate) use counts::LoadInformationCounts;
pub(crate) use header::{HeaderLoads, watch};
pub(crate) use poller::LoadPoller;

use plimsoll_exchange::Hearing;
use silence::SilentAgents;
use sockets::AnnouncementSockets;

/// What all threads share of load information.
#[derive(Debug)]
pub(crate) struct LoadIntake {
    pub(crate) config: LoadInformationConfig,
    pub(crate) counts: LoadInformationCounts,
    /// Where announcements come in, until someone listens.
    sockets: Mutex<Option<AnnouncementSockets>>,
    /// Where announcements come in.
    pub(crate) address: Option<SocketAddr>,
    hearing: Mutex<Hearing>,
    silence: SilentAgents,
    origin: Instant,
}

impl LoadIntake {
    /// Binds what announcements come in by.
    ///
    /// # Errors
    /// When that cannot be had; with the address.
    pub(crate) fn prepare(config: &LoadInformationConfig) -> Result<Self, (SocketAddr, std::io::Error)> {
        let at = config.listen.filter(|_| config.from == LoadSource::Broadcast);
        let bound = at.map(|at| AnnouncementSockets::bind(at, config).map_err(|error| (at, error)));
        let sockets = bound.transpose()?;
        let address = sockets.as_ref().and_then(AnnouncementSockets::address);
        Ok(Self {
            counts: LoadInformationCounts::default(),
            sockets: Mutex::new(sockets),
            address,
            silence: SilentAgents::default(),
            hearing: Mutex::new(Hearing::new(nanos(config.interval))),
            origin: Instant::now(),
            config: config.clone(),
        })
    }

    pub(crate) fn now_ns(&self) -> u64 {
        nanos(self.origin.elapsed())
    }

    /// Asks agents; `None` without a key or random numbers.
    pub(crate) fn inquirer(&self) -> Option<LoadInquirer> {
        let keys = LoadKeys::new(self.config.key.as_ref()?);
        let limits = InquiryLimits { most_load: self.config.most_load, ..InquiryLimits::default() };
        match plimsoll_wire::random() {
            Ok(client) => {
                let inquirer = LoadInquirer::new(keys, client, limits);
                self.counts.follow(inquirer.counters());
                Some(inquirer)
            }
            Err(error) => {
                tracing::error!(%error, "agents are not asked");
                None
            }
        }
    }

    fn hearing(&self) -> std::sync::MutexGuard<'_, Hearing> {
        self.hearing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
