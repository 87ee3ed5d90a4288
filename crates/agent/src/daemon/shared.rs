//! The state shared by all threads of an agent.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_datapath::{DatapathError, Flow, Guard, GuardCounters, HeldPacket, now_ns};
use plimsoll_wire::message::{AgentCounts, FromAgent};

use super::active::ActiveFrontEnds;
use super::config::{AgentConfig, FrontEnd, LEASES};
use super::connection::{Connection, Cut};
use super::flows::{Flows, PacketFate};
use super::link::FrontEndLink;
use super::noise::Noise;
use super::queue::SendQueues;
use super::serve::Serve;

/// The counters behind [`AgentCounts`].
#[derive(Debug, Default)]
pub(super) struct AgentCounters {
    pub(super) taken: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) returned: AtomicU64,
    pub(super) kept: AtomicU64,
    pub(super) cancelled: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) content_bytes: AtomicU64,
    pub(super) injected: AtomicU64,
    pub(super) emitted: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) strays: AtomicU64,
    pub(super) links: AtomicU64,
    pub(super) refused_links: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// See the module's documentation.
pub(super) struct AgentShared {
    pub(super) config: AgentConfig,
    pub(super) guard: Guard,
    pub(super) flows: Flows,
    pub(super) queues: SendQueues,
    pub(super) serve: Serve,
    pub(super) counters: AgentCounters,
    pub(super) active: ActiveFrontEnds,
    succession: Mutex<()>,
    refused_links: Noise,
    stopping: AtomicBool,
    hurried: AtomicBool,
    ended: AtomicBool,
    open: AtomicUsize,
    next_number: AtomicU64,
    losses: AtomicU64,
    /// Time until which the server behind the agent counts as unreachable.
    down_until_ns: AtomicU64,
    connections: Mutex<BTreeMap<u64, Arc<Connection>>>,
    links: Mutex<BTreeMap<u64, Arc<FrontEndLink<Connection>>>>,
    /// Connections that both sides have ended: when (ns of `CLOCK_MONOTONIC`), in that order, flow and number.
    closed: Mutex<VecDeque<(u64, Flow, u64)>>,
    /// Number of the connection that each lease of this agent is for. Held while a lease is entered or ended. Looked up only.
    leased: Mutex<HashMap<Flow, u64, FixedState>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Room for one connection, as long as this lives.
pub(super) struct Room(Arc<AgentShared>);

impl Drop for Room {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AgentShared {
    pub(super) fn new(config: AgentConfig, guard: Guard, serve: Serve, queues: SendQueues) -> Self {
        Self {
            config,
            guard,
            flows: Flows::new(),
            queues,
            serve,
            counters: AgentCounters::default(),
            active: ActiveFrontEnds::default(),
            succession: Mutex::default(),
            refused_links: Noise::default(),
            stopping: AtomicBool::new(false),
            hurried: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            next_number: AtomicU64::new(0),
            losses: AtomicU64::new(0),
            down_until_ns: AtomicU64::new(0),
            connections: Mutex::default(),
            links: Mutex::default(),
            closed: Mutex::default(),
            leased: Mutex::default(),
        }
    }

    /// What has been counted so far.
    pub(super) fn counts(&self) -> AgentCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        let guard = self.guard.counters().unwrap_or_else(|error| {
            tracing::debug!(%error, "the packet programs' counters could not be read");
            GuardCounters::default()
        });
        AgentCounts {
            connections: self.open() as u64,
            taken: of(&counters.taken),
            refused: of(&counters.refused),
            returned: of(&counters.returned),
            kept: of(&counters.kept),
            cancelled: of(&counters.cancelled),
            requests: of(&counters.requests),
            content_bytes: of(&counters.content_bytes),
            links: of(&counters.links),
            refused_links: of(&counters.refused_links),
            packets_injected: of(&counters.injected),
            packets_emitted: of(&counters.emitted),
            packets_dropped: of(&counters.dropped) + guard.ring_full + guard.too_long,
            syns_returned: guard.syn_returned,
            strays: of(&counters.strays),
            fenced: guard.fenced_unknown + guard.fenced_late,
        }
    }

    /// A link was refused: strangers can cause this as often as they like.
    pub(super) fn refused_link(&self, source: IpAddr, why: &str) {
        count(&self.counters.refused_links, 1);
        if let Some(left_out) = self.refused_links.admits(Instant::now()) {
            tracing::warn!(%source, not_logged = left_out, "a link was refused: {why}");
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Refuses new connections; ends idle ones at once and others after the request under way.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        let connections: Vec<_> = locked(&self.connections).values().cloned().collect();
        connections.iter().for_each(|connection| connection.close());
    }

    /// Ends requests under way at once.
    pub(super) fn hurry(&self) {
        self.hurried.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_hurried(&self) -> bool {
        self.hurried.load(Ordering::Relaxed)
    }

    /// Ends the threads.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Cuts off all remaining connections.
    pub(super) fn cut_all(&self) {
        let connections: Vec<_> = locked(&self.connections).values().cloned().collect();
        connections.iter().for_each(|connection| connection.cut(Cut::Reset));
    }

    /// Number of connections.
    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Held while links begin or end, and connections go to other links: so "all was offered" is true. The first lock of all.
    pub(super) fn succession(&self) -> MutexGuard<'_, ()> {
        locked(&self.succession)
    }

    /// Reserves room for one more connection, if there is any.
    pub(super) fn room(self: &Arc<Self>) -> Option<Room> {
        let most = self.config.max_connections;
        let room = |open: usize| (open < most).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        Some(Room(Arc::clone(self)))
    }

    /// The server behind the agent refused a connection: none is taken over for a moment.
    pub(super) fn server_failed(&self) {
        const PAUSE_NS: u64 = 500_000_000;
        self.down_until_ns.store(now_ns().saturating_add(PAUSE_NS), Ordering::Relaxed);
    }

    pub(super) fn server_is_down(&self) -> bool {
        let until_ns = self.down_until_ns.load(Ordering::Relaxed);
        until_ns > 0 && now_ns() < until_ns
    }

    pub(super) fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn enter(&self, connection: &Arc<Connection>) {
        locked(&self.connections).insert(connection.number, Arc::clone(connection));
    }

    pub(super) fn forget(&self, connection: &Connection) {
        locked(&self.connections).remove(&connection.number);
    }

    /// Connections of a front-end.
    pub(super) fn connections_of(&self, front_end: &FrontEnd) -> Vec<Arc<Connection>> {
        self.connections_with(|connection| *connection.front_end == *front_end)
    }

    /// Connections of all front-ends of this name.
    pub(super) fn connections_of_name(&self, name: &str) -> Vec<Arc<Connection>> {
        self.connections_with(|connection| connection.front_end.name == name)
    }

    fn connections_with(&self, holds: impl Fn(&Connection) -> bool) -> Vec<Arc<Connection>> {
        locked(&self.connections).values().filter(|connection| holds(connection)).cloned().collect()
    }

    /// How many links have been lost. After each there may be connections to offer for adoption.
    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    /// Notes a lost link, whose connections have no front-end now.
    pub(super) fn link_lost(&self) {
        self.losses.fetch_add(1, Ordering::Release);
    }

    /// A front-end that opens a link waits no longer for its links that are silent or of a process that is gone.
    pub(super) fn give_up_silent(&self, new: &FrontEndLink<Connection>) {
        let links = self.links();
        links.iter().filter(|link| link.is_of_same_process(new)).for_each(|link| link.doubt());
        links.iter().filter(|link| link.is_of_other_process(new)).for_each(|link| link.supersede());
    }

    pub(super) fn enter_link(&self, link: &Arc<FrontEndLink<Connection>>) {
        locked(&self.links).insert(link.number, Arc::clone(link));
    }

    pub(super) fn forget_link(&self, link: &FrontEndLink<Connection>) {
        locked(&self.links).remove(&link.number);
    }

    /// All links, in the order in which they were opened.
    pub(super) fn links(&self) -> Vec<Arc<FrontEndLink<Connection>>> {
        locked(&self.links).values().cloned().collect()
    }

    /// Handles a held packet.
    pub(super) fn held(&self, packet: HeldPacket) {
        match self.flows.held(packet, now_ns()) {
            PacketFate::Inject(packet) => self.inject(&packet),
            PacketFate::Emit(packet) => self.emit(&packet),
            PacketFate::Kept => {}
            PacketFate::Dropped => count(&self.counters.dropped, 1),
        }
    }

    pub(super) fn inject(&self, packet: &HeldPacket) {
        match self.guard.inject(packet) {
            Ok(()) => count(&self.counters.injected, 1),
            Err(error) => {
                tracing::debug!(%error, flow = ?packet.flow, "a held packet was not injected");
                count(&self.counters.dropped, 1);
            }
        }
    }

    /// Sends a packet back to its sender.
    pub(super) fn emit(&self, packet: &HeldPacket) {
        // The source of the Ethernet header.
        let Some(sender) = packet.frame.get(6..12).and_then(|mac| mac.try_into().ok()) else { return };
        match self.guard.emit(packet, sender) {
            Ok(()) => count(&self.counters.emitted, 1),
            Err(error) => {
                tracing::debug!(%error, flow = ?packet.flow, "a held packet was not sent on");
                count(&self.counters.dropped, 1);
            }
        }
    }

    /// Drops packets that waited in vain and reports their flows on every link, because only one worker knows
    /// each flow.
    pub(super) fn sweep_held(&self) {
        let strays = self.flows.sweep(now_ns());
        if strays.is_empty() {
            return;
        }
        count(&self.counters.strays, strays.len() as u64);
        let links = self.links();
        for link in &links {
            strays.iter().for_each(|&flow| link.push(&FromAgent::Stray { flow }));
        }
    }

    /// A connection was closed by both sides: its kernel may only repeat a lost acknowledgment.
    pub(super) fn closed(&self, connection: &Connection) {
        locked(&self.closed).push_back((now_ns(), connection.flow, connection.number));
    }

    /// Ends the leases of connections that both sides have closed.
    pub(super) fn sweep_closed(&self) {
        const QUIET_AFTER_NS: u64 = 3_000_000_000;
        let now_ns = now_ns();
        let due = |(at_ns, ..): &(u64, Flow, u64)| now_ns.saturating_sub(*at_ns) > QUIET_AFTER_NS;
        loop {
            let next = {
                let mut closed = locked(&self.closed);
                if closed.front().is_some_and(due) { closed.pop_front() } else { None }
            };
            let Some((_, flow, number)) = next else { return };
            self.release(&flow, number);
        }
    }

    /// Ends the leases of connections that ended otherwise and whose last packet left long ago.
    pub(super) fn sweep_leases(&self) {
        /// The kernel retransmits and probes windows with growing pauses of up to 120 s. The second one: when leases are scarce.
        const SILENT_FOR_NS: u64 = 130_000_000_000;
        const SILENT_FOR_AT_LEAST_NS: u64 = 10_000_000_000;
        let now_ns = now_ns();
        let mut count = 0;
        let mut over: Vec<(u64, Flow)> = Vec::new();
        let visited = self.guard.for_each_lease(|flow, lease| {
            count += 1;
            let silent_ns = now_ns.saturating_sub(lease.last_sent_ns);
            if silent_ns > SILENT_FOR_AT_LEAST_NS {
                over.push((silent_ns, flow));
            }
        });
        let limit_ns = if count > LEASES / 2 { SILENT_FOR_AT_LEAST_NS } else { SILENT_FOR_NS };
        over.retain(|(silent_ns, _)| *silent_ns > limit_ns);
        if let Err(error) = visited {
            tracing::warn!(%error, "leases could not be looked through");
        }
        for (_, flow) in over {
            self.release_if_over(&flow);
        }
    }

    /// Gives the connection a lease until this time (ns of `CLOCK_MONOTONIC`).
    pub(super) fn lease(&self, connection: &Connection, until_ns: u64) -> Result<(), DatapathError> {
        let mut leased = locked(&self.leased);
        self.guard.lease(&connection.flow, until_ns)?;
        leased.insert(connection.flow, connection.number);
        Ok(())
    }

    /// Makes the connection's lease endless, if it has one.
    pub(super) fn confirm(&self, connection: &Connection) -> Result<(), DatapathError> {
        let leased = locked(&self.leased);
        if leased.get(&connection.flow) == Some(&connection.number) {
            self.guard.confirm(&connection.flow)?;
        }
        Ok(())
    }

    /// Ends the lease of this flow, unless it belongs to a connection with another number.
    pub(super) fn release(&self, flow: &Flow, number: u64) {
        let mut leased = locked(&self.leased);
        if leased.get(flow) == Some(&number) {
            leased.remove(flow);
            self.end_lease(flow);
        }
    }

    /// The same, unless its connection is here.
    fn release_if_over(&self, flow: &Flow) {
        let mut leased = locked(&self.leased);
        let here = leased.get(flow).is_some_and(|number| locked(&self.connections).contains_key(number));
        if !here {
            leased.remove(flow);
            self.end_lease(flow);
        }
    }

    fn end_lease(&self, flow: &Flow) {
        if let Err(error) = self.guard.release(flow) {
            tracing::error!(%error, ?flow, "a lease could not be ended");
        }
    }
}
