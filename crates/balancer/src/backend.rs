//! The state of a back-end that all workers share.

mod condition;
pub(crate) mod excess;
pub(crate) mod kept_places;
pub(crate) mod leaves_open;
mod lesson;
pub(crate) mod signs;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_config::{BackendName, EjectionConfig, HostPort, ProxyProtocol};
use plimsoll_policy::{BackendId, Health};
use plimsoll_wire::message::AgentCounts;
use tokio::sync::Semaphore;

use self::condition::BackendCondition;
use self::excess::Excess;
use self::kept_places::{AfterStarving, KeptPlaces, Starving};
use self::leaves_open::LeavesOpen;
use crate::backend_address::BackendAddress;
use crate::ejection::{EjectionChange, TrialEnd};
use crate::host_names::UnresolvedHost;
use crate::metrics::{BackendCounts, SharedCounter};
use crate::net::backend_tls::BackendTls;
use crate::slowness::FirstByteCounts;

/// Where the agent of a back-end tells its load, over UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadAt {
    /// At this port of the back-end's address.
    Port(u16),
    /// At an address of its own.
    Address(SocketAddr),
}

/// A back-end: address, connection limit, health.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) id: BackendId,
    /// The number of its pool; ids are of one pool.
    pub(crate) pool: u32,
    pub(crate) name: BackendName,
    /// Where it answers, or why that is not known: then it is down.
    pub(crate) address: Result<BackendAddress, UnresolvedHost>,
    /// How TLS is spoken to it, if it is.
    pub(crate) tls: Option<BackendTls>,
    /// Whether HTTP/2 is spoken to it.
    pub(crate) http2: bool,
    /// Whether it is told whose connections requests come on.
    pub(crate) proxy_protocol: ProxyProtocol,
    /// Where its agent takes handoffs.
    pub(crate) agent: Option<SocketAddr>,
    /// The name that led to its agent, or leads nowhere yet.
    pub(crate) agent_at: Option<HostPort>,
    /// Where its agent tells its load, over UDP.
    pub(crate) load_at: LoadAt,
    /// `Host` of health checks, and the name that led to its address.
    pub(crate) authority: String,
    /// Connections that may still be opened to it.
    pub(crate) permits: Arc<Semaphore>,
    /// The limit on connections.
    pub(crate) max_connections: u32,
    /// Requests that may wait for a connection at once.
    pub(crate) max_waiting: u32,
    /// Requests that dispatch may have under way at it at once.
    pub(crate) max_requests: Option<u32>,
    /// Requests that wait for a connection because the limit is reached.
    pub(crate) waiting: AtomicU32,
    /// Shared with the back-ends of this name at the same address, which a reload put another in the place of: what is
    /// under way on those tells of this one, too.
    condition: Arc<BackendCondition>,
    /// Whether connections that are kept take the places of others; shared like `condition`.
    pub(crate) kept_places: Arc<KeptPlaces>,
    /// Whether connections that are kept are left open; shared like `condition`.
    pub(crate) leaves_open: Arc<LeavesOpen>,
    /// Whether it sends more than belongs to its responses; shared like `condition`.
    pub(crate) excess: Arc<Excess>,
    /// Whether it was seen to wait in the middle of a response, perhaps for an acknowledgement, and how often that is still to be believed;
    /// shared like `condition`.
    pub(crate) waits_in_response: Arc<AtomicU32>,
    /// Whether a connection to it was ever opened soon, or it is on this machine: one that takes longer then tells of a full queue, not of a long way.
    pub(crate) is_near: AtomicBool,
    /// What its agent has counted, as it last told; shared like `counts`.
    agent_counts: Arc<Mutex<Option<AgentCounts>>>,
    /// No longer configured, so its connections are not kept.
    retired: AtomicBool,
    /// What happened, by worker; the last one is for everyone else. Shared with the back-ends of this name that a reload
    /// put another in the place of, so that no count falls.
    pub(crate) counts: Arc<[BackendCounts]>,
}

impl Backend {
    /// A back-end, up until a check says otherwise; without an address it stays down.
    pub(crate) fn new(
        id: BackendId,
        name: BackendName,
        address: Result<BackendAddress, UnresolvedHost>,
        authority: String,
        max_connections: u32,
        workers: usize,
    ) -> Self {
        Self {
            id,
            pool: 0,
            name,
            tls: None,
            http2: false,
            proxy_protocol: ProxyProtocol::None,
            agent: None,
            agent_at: None,
            load_at: LoadAt::Port(0),
            authority,
            permits: Arc::new(Semaphore::new(max_connections as usize)),
            max_connections,
            max_waiting: max_connections,
            max_requests: None,
            waiting: AtomicU32::new(0),
            condition: Arc::new(BackendCondition::new(address.is_ok())),
            kept_places: Arc::default(),
            leaves_open: Arc::default(),
            waits_in_response: Arc::default(),
            is_near: AtomicBool::new(address.as_ref().is_ok_and(BackendAddress::is_unix)),
            excess: Arc::default(),
            address,
            agent_counts: Arc::default(),
            retired: AtomicBool::new(false),
            counts: (0..=workers).map(|_| BackendCounts::default()).collect(),
        }
    }

    /// Of the pool of this number.
    pub(crate) fn of_pool(self, pool: u32) -> Self {
        Self { pool, ..self }
    }

    /// With these limits on requests that wait for a connection, and on those under way.
    pub(crate) fn limited(self, max_waiting: u32, max_requests: Option<u32>) -> Self {
        Self { max_waiting, max_requests, ..self }
    }

    /// With an agent, which has this name.
    pub(crate) fn with_agent(self, agent: Option<SocketAddr>, agent_at: Option<HostPort>) -> Self {
        Self { agent, agent_at, ..self }
    }

    /// To which is spoken as a source says.
    pub(crate) fn spoken_to(self, tls: Option<BackendTls>, http2: bool, told: ProxyProtocol) -> Self {
        Self { tls, http2, proxy_protocol: told, ..self }
    }

    /// Whose agent tells its load there.
    pub(crate) fn telling_load_at(self, load_at: LoadAt) -> Self {
        Self { load_at, ..self }
    }

    /// Where its agent tells its load, if it has an IP address.
    pub(crate) fn load_address(&self) -> Option<SocketAddr> {
        let own = self.address.as_ref().ok()?.tcp()?;
        Some(match self.load_at {
            LoadAt::Port(port) => SocketAddr::new(own.ip(), port),
            LoadAt::Address(address) => address,
        })
    }

    /// Continues the counts of the back-end that this one replaces. At the same address, or where that one had none yet, also
    /// its health and an operator's drain: such a one is still down.
    pub(crate) fn succeeding(self, earlier: &Self) -> Self {
        let counts = Arc::clone(&earlier.counts);
        let agent_counts = Arc::clone(&earlier.agent_counts);
        let this = Self { counts, agent_counts, ..self };
        if earlier.is_retired() || earlier.address.is_ok() && earlier.address != this.address {
            return this;
        }
        let kept_places = Arc::clone(&earlier.kept_places);
        let leaves_open = Arc::clone(&earlier.leaves_open);
        let waits_in_response = Arc::clone(&earlier.waits_in_response);
        let excess = Arc::clone(&earlier.excess);
        let condition = Arc::clone(&earlier.condition);
        Self { condition, kept_places, leaves_open, waits_in_response, excess, ..this }
    }

    /// Connections that are open to it, those that are kept among them.
    pub(crate) fn connections(&self) -> usize {
        (self.max_connections as usize).saturating_sub(self.permits.available_permits())
    }

    /// What its agent has counted, if it has told.
    pub(crate) fn agent_counts(&self) -> Option<AgentCounts> {
        *self.agent_counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its agent has told what it has counted.
    pub(crate) fn set_agent_counts(&self, counts: AgentCounts) {
        *self.agent_counts.lock().unwrap_or_else(PoisonError::into_inner) = Some(counts);
    }

    /// Whether the other one is this one, or was before a reload: how one of them is, the other one is.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.condition, &other.condition)
    }

    /// Whether it is no longer configured.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Marks it as no longer configured.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    /// Whether it takes requests.
    pub(crate) fn health(&self) -> Health {
        self.tracker().health()
    }

    /// Whether an operator drained it.
    pub(crate) fn is_drained(&self) -> bool {
        self.tracker().drained
    }

    /// Whether it takes no requests but trials, because it failed too many.
    pub(crate) fn is_ejected(&self) -> bool {
        self.tracker().ejection.is_ejected()
    }

    /// Requests of clients that it has answered so far.
    pub(crate) fn answers(&self) -> u64 {
        self.counts.iter().flat_map(|counts| &counts.answers).map(SharedCounter::get).sum()
    }

    /// Counts a request that was sent at the time `sent` and failed here. True when it has to be ejected.
    pub(crate) fn attempt_failed(&self, sent: Instant, now: Instant, config: &EjectionConfig) -> bool {
        let answers = self.answers();
        self.tracker().ejection.failed(sent, answers, now, config)
    }

    /// Ejects it.
    pub(crate) fn eject(&self, now: Instant, config: &EjectionConfig) {
        self.tracker().ejection.eject(now, config);
    }

    /// Ejects it because it is slow.
    pub(crate) fn eject_slow(&self, limit: Duration, now: Instant, config: &EjectionConfig) {
        self.tracker().ejection.eject_slow(limit, now, config);
    }

    /// Whether it is ejected because it is slow.
    pub(crate) fn is_slow(&self) -> bool {
        self.tracker().ejection.is_slow()
    }

    /// Within which time it must answer to come back, while it is ejected because it is slow.
    pub(crate) fn slow_limit(&self) -> Option<Duration> {
        self.tracker().ejection.slow_limit()
    }

    /// It has answered one that starved. Learns from that whether connections to it are kept, if it was `soon` after one was closed; whether
    /// that one had waited for this reason.
    pub(crate) fn starves_no_more(&self, starving: Starving, soon: Duration) -> bool {
        let answer = starving.answered(soon);
        if let AfterStarving::NoneIsKept(none_kept) = answer {
            tracing::info!(
                backend = &*self.name,
                "it serves so many connections at once and no more: for {none_kept:?} none is kept for a next request"
            );
        }
        answer != AfterStarving::TookLong
    }

    /// Bytes came from it that belong to no response.
    pub(crate) fn sent_excess(&self) {
        if let Some(none_kept) = self.excess.came() {
            tracing::warn!(
                backend = &*self.name,
                "it sends more than belongs to its responses (a Content-Length that is too small?): for {none_kept:?} no connection to it is used twice"
            );
        }
    }

    /// The times to the first byte of its answers so far, by bucket.
    pub(crate) fn first_bytes(&self) -> FirstByteCounts {
        let sum = |i: usize| self.counts.iter().map(|counts| counts.first_byte.buckets[i].get()).sum();
        std::array::from_fn(sum)
    }

    /// Takes it back.
    pub(crate) fn readmit(&self, now: Instant) {
        self.tracker().ejection.readmit(now);
    }

    /// When its trials begin, while it is ejected.
    pub(crate) fn trials_from(&self) -> Option<Instant> {
        self.tracker().ejection.trials_from()
    }

    /// Whether it is to be readmitted though no trial says so.
    pub(crate) fn is_ejection_over(&self, now: Instant) -> bool {
        self.tracker().ejection.is_over(now)
    }

    /// Whether it would take requests if it were not ejected.
    pub(crate) fn is_able(&self) -> bool {
        let tracker = self.tracker();
        tracker.up && !tracker.drained
    }

    /// Whether a request may be sent to it on trial now.
    pub(crate) fn is_trial_due(&self, now: Instant) -> bool {
        let tracker = self.tracker();
        tracker.up && !tracker.drained && tracker.ejection.is_trial_due(now)
    }

    /// Begins a trial where one is due; its number.
    pub(crate) fn begin_trial(&self, now: Instant) -> Option<u64> {
        let mut tracker = self.tracker();
        if !tracker.up || tracker.drained {
            return None;
        }
        tracker.ejection.begin_trial(now)
    }

    /// The trial of this number has ended.
    pub(crate) fn end_trial(
        &self,
        number: u64,
        end: TrialEnd,
        now: Instant,
        config: &EjectionConfig,
    ) -> Option<EjectionChange> {
        self.tracker().ejection.end_trial(number, end, now, config)
    }

    /// Starts or ends draining; the new health. Whoever ends it wants the back-end to take requests, so that ends an
    /// ejection, too.
    pub(crate) fn set_drained(&self, drained: bool) -> Health {
        let mut tracker = self.tracker();
        tracker.drained = drained;
        if !drained {
            tracker.ejection.clear();
        }
        tracker.health()
    }

    /// A drained one takes requests of its sessions yet, or no longer.
    pub(crate) fn set_keeps_sessions(&self, keeps: bool) {
        self.tracker().keeps_sessions = keeps;
    }
}

#[cfg(test)]
mod tests;
