//! The mechanism's state that all workers share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_config::{Config, ListenerProtocol, MechanismKind};
use plimsoll_datapath::privileges::RunUser;
use plimsoll_datapath::tcp::TcpState;
use plimsoll_datapath::{Flow, FlowEntry, Forwarder, ForwarderConfig, NextHop, tcp};
use plimsoll_policy::BackendId;
use plimsoll_wire::Key;

use super::numbers::{Expected, Told};
use super::offers::Offers;
use super::registry::Registry;
use super::repeats::Repeats;
use super::shared_role::SharedRole;
use crate::mechanism::carry::{FlowPhase, FlowState};
use crate::metrics::{FINE_BUCKETS_US, Histogram, SharedCounter};

/// Counts over all workers.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Connections sent on after an agent gave them back.
    pub(crate) handed_on: SharedCounter,
    /// Taken over by an agent.
    pub(crate) taken: SharedCounter,
    /// Refused by an agent, and served here.
    pub(crate) refused: SharedCounter,
    /// Not answered in time by an agent, and served here.
    pub(crate) timed_out: SharedCounter,
    /// Chosen for handoff but not portable, or without room: served here.
    pub(crate) kept: SharedCounter,
    /// Further requests that stayed with the back-end that had the connection.
    pub(crate) stayed: SharedCounter,
    /// Adopted from an agent that had them before this front-end, or its link, began.
    pub(crate) adopted: SharedCounter,
    /// Lost with their agent, or because they could not be taken back.
    pub(crate) lost: SharedCounter,
    /// Clients reset.
    pub(crate) reset: SharedCounter,
    /// Flows that led to an agent that did not have them.
    pub(crate) strays: SharedCounter,
    /// From telling the agent to its answer.
    pub(crate) take_over: Histogram,
}

impl Counts {
    fn new() -> Self {
        Self { take_over: Histogram::with(&FINE_BUCKETS_US), ..Self::default() }
    }
}

/// The forwarder, key and counters.
pub(crate) struct System {
    pub(crate) forwarder: Forwarder,
    pub(crate) name: String,
    pub(crate) instance: u64,
    pub(crate) key: Key,
    pub(crate) counts: Counts,
    pub(super) offers: Offers,
    /// Where several front-ends share the virtual address.
    pub(super) failover: Option<SharedRole>,
    /// What marks the flows of this process, since it became active last.
    pub(super) mark: AtomicU32,
    registry: Mutex<Registry>,
    pub(super) repeats: Repeats,
    pub(super) flows: AtomicU32,
    /// Links that are up, by the name of their back-end.
    links: Mutex<BTreeMap<Arc<str>, u32>>,
    most_flows: u32,
    /// Whether requests are handed off only where that pays.
    pub(super) chooses: bool,
    /// For each worker, the share of responses of middle size that it hands off for want of CPU time, in millionths.
    pub(super) relief: Vec<AtomicU32>,
    origin: Instant,
}

impl System {
    /// Loads the packet programs, if the configuration asks for handing off, for a process that is to become `user`.
    ///
    /// # Errors
    /// Why this system does not allow it, in words; not if the configuration allows proxying instead.
    pub(crate) fn start(config: &Config, user: Option<&RunUser>) -> Result<Option<Arc<Self>>, String> {
        let Some(handoff) = config.handoff.as_ref().filter(|_| config.mechanism.hands_off()) else {
            return Ok(None);
        };
        let vips: Vec<SocketAddr> = config.listeners.iter().map(|l| l.address).collect();
        let wanted = ForwarderConfig {
            instance: handoff.name.clone(),
            interfaces: handoff.interfaces.clone(),
            vips,
            flows: handoff.flows,
        };
        // What moves connections is loaded now: later nobody could say so if the kernel refused it.
        let prepared = tcp::prepare().map_err(|e| {
            format!("cannot load what freezes connections: {e}. This needs CAP_BPF: run as root, or grant it")
        });
        let opened = || Forwarder::open_for(&wanted, user).map_err(|e| e.to_string());
        let started = prepared.and_then(|()| opened()).and_then(|forwarder| {
            let instance = new_instance(&forwarder)?;
            let failover = config.failover.as_ref().map(|config| SharedRole::new(config, instance));
            if failover.is_some() {
                // Until it is known whether this machine has the address.
                forwarder.hold(true).map_err(|e| e.to_string())?;
            }
            Ok(Self {
                forwarder,
                name: handoff.name.clone(),
                instance,
                offers: Offers::new(config.workers),
                key: handoff.key.clone(),
                counts: Counts::new(),
                failover,
                mark: AtomicU32::new(instance as u32 & 0xffff),
                registry: Mutex::default(),
                repeats: Repeats::default(),
                flows: AtomicU32::new(0),
                links: Mutex::default(),
                most_flows: handoff.flows,
                chooses: config.mechanism == MechanismKind::Auto,
                relief: (0..config.workers).map(|_| AtomicU32::new(0)).collect(),
                origin: Instant::now(),
            })
        });
        match started {
            Ok(system) => Ok(Some(Arc::new(system))),
            Err(why) if handoff.fallback => {
                tracing::warn!(why, "connections cannot be handed off here; every request is proxied");
                Ok(None)
            }
            Err(why) => Err(why),
        }
    }

    /// The flows of all workers. Do not block while holding this.
    pub(super) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This front-end's clock in nanoseconds.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// What the forwarder keeps beside a flow: which process of this front-end led it, and to which back-end.
    fn mark(&self, backend: BackendId) -> u32 {
        self.mark.load(Ordering::Relaxed) << 16 | (backend.index() as u32 & 0xffff)
    }

    /// Whether a mark was made by this process, since it became active last.
    pub(super) fn is_ours(&self, mark: u32) -> bool {
        mark >> 16 == self.mark.load(Ordering::Relaxed)
    }

    /// Whether agents do as this front-end says: not while another one has the virtual address.
    pub(super) fn is_active(&self) -> bool {
        self.failover.as_ref().is_none_or(|failover| failover.role().is_active())
    }

    /// Whether packets of unknown connections are dropped.
    pub(super) fn hold(&self, holds: bool) {
        if let Err(error) = self.forwarder.hold(holds) {
            tracing::error!(%error, holds, "packets of unknown connections are treated as before");
        }
    }

    /// Increments the flow count. Returns false, and changes nothing, if there is no room.
    pub(super) fn take_flow(&self) -> bool {
        let more = |flows: u32| (flows < self.most_flows).then_some(flows + 1);
        self.flows.try_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Increments the flow count, ignoring the limit.
    pub(super) fn add_flow(&self) {
        self.flows.fetch_add(1, Ordering::Relaxed);
    }

    /// Decrements the flow count.
    pub(super) fn free_flow(&self) {
        let less = |flows: u32| flows.checked_sub(1);
        // Stays at 0: two workers may both forget an adopted flow.
        let _ = self.flows.try_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Watches packets to these addresses.
    pub(crate) fn watch(&self, listeners: &[SocketAddr]) {
        if let Err(error) = self.forwarder.watch(listeners) {
            tracing::error!(%error, "packets to changed listeners are not forwarded");
        }
    }

    /// Removes the packet programs; no connection may be left. Where another front-end takes the connections over, the programs
    /// stay while there are any, and forward packets until the address has moved.
    pub(crate) fn clear(&self) {
        let mut flows = 0;
        if self.failover.is_some()
            && self.forwarder.for_each(|_, entry| flows += u32::from(!entry.over)).is_ok()
            && flows > 0
        {
            tracing::info!(flows, "the packet programs stay, as back-ends have connections");
            return;
        }
        if let Err(error) = self.forwarder.clear_and_detach() {
            tracing::warn!(%error, "the packet programs could not be taken out of the system");
        }
    }

    /// Counts a link that came up, or went down.
    pub(super) fn count_link(&self, backend: &Arc<str>, up: bool) {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let count = links.entry(Arc::clone(backend)).or_default();
        *count = if up { *count + 1 } else { count.saturating_sub(1) };
    }

    /// Links to agents that are up, over all workers, by the name of their back-end. Those of a back-end that had one once are
    /// there.
    pub(crate) fn links(&self) -> BTreeMap<Arc<str>, u32> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Flows that lead to back-ends now.
    pub(crate) fn flows(&self) -> u32 {
        self.flows.load(Ordering::Relaxed)
    }

    /// Leads a flow to a back-end, and begins to watch it.
    pub(super) fn lead_anew(&self, flow: &Flow, hop: &NextHop, backend: BackendId) -> bool {
        let led = self.forwarder.insert(flow, hop, self.mark(backend));
        led.inspect_err(
            |error| tracing::warn!(%error, client = %flow.client, "a connection cannot be forwarded"),
        )
        .is_ok()
    }

    /// From now on the forwarder believes only numbers within this connection's windows.
    pub(super) fn set_windows(&self, state: &TcpState) {
        if let Err(error) = self.forwarder.set_windows(state) {
            tracing::warn!(%error, client = %state.flow.client, "a connection's windows cannot be set");
        }
    }

    /// Leads a flow to another back-end.
    pub(super) fn lead(&self, flow: &Flow, hop: &NextHop, backend: BackendId) -> bool {
        match self.forwarder.redirect(flow, hop, self.mark(backend)) {
            Ok(true) => true,
            // The kernel had no room for it any more, or its client began anew.
            Ok(false) => self.lead_anew(flow, hop, backend),
            Err(error) => {
                tracing::warn!(%error, client = %flow.client, "a connection cannot be forwarded");
                false
            }
        }
    }

    /// Leads a flow back to this front-end.
    pub(super) fn unlead(&self, flow: &Flow) {
        if let Err(error) = self.forwarder.remove(flow) {
            tracing::warn!(%error, client = %flow.client, "a connection cannot be led back");
        }
    }

    /// Marks a flow's connection as over: its client may begin another one.
    pub(super) fn end(&self, flow: &Flow) {
        if let Err(error) = self.forwarder.end(flow) {
            tracing::warn!(%error, client = %flow.client, "a connection that is over cannot be marked");
        }
    }

    /// Leads a flow back to this front-end if its client has been quiet for so long. Returns false if it has not.
    pub(super) fn forget(&self, flow: &Flow, quiet: Duration) -> bool {
        self.forwarder.forget(flow, quiet).unwrap_or_else(|error| {
            tracing::warn!(%error, client = %flow.client, "a connection cannot be led back");
            true
        })
    }

    /// What the kernel knows of a flow that leads to a back-end.
    pub(super) fn entry(&self, flow: &Flow) -> Option<FlowEntry> {
        self.forwarder.get(flow).ok().flatten()
    }

    /// Whether the client of a flow has sent something lately.
    pub(super) fn is_busy(&self, flow: &Flow, quiet: Duration) -> bool {
        let Some(entry) = self.entry(flow) else { return false };
        let silent_ns = plimsoll_datapath::now_ns().saturating_sub(entry.last_seen_ns);
        !entry.rst && u128::from(silent_ns) < quiet.as_nanos()
    }

    /// Tells the client of a flow that its connection is over, or asks for its sequence numbers if these are unknown. `before`
    /// is what the client expected when the connection was handed off, if that is known.
    pub(super) fn reset(&self, flow: &Flow, before: Option<Expected>) -> Told {
        let entry = self.entry(flow);
        let acknowledged = entry.as_ref().and_then(|entry| entry.last_ack).or(before.map(|b| b.from_us));
        let sent = entry.as_ref().and_then(|entry| entry.last_seq_end).or(before.map(|b| b.from_client));
        let (Some(acknowledged), Some(sent)) = (acknowledged, sent) else {
            // Without an entry, nothing would note the numbers in its answer.
            return if entry.is_some() { self.ask_numbers(flow) } else { Told::Done };
        };
        // A client that expects other numbers says so, and this machine's kernel answers by a RST with those.
        self.lead_here(flow);
        self.counts.reset.add(1);
        let numbers = Expected { from_us: acknowledged, from_client: sent };
        self.repeats.add(*flow, numbers, Instant::now());
        if let Err(error) = tcp::reset(flow, acknowledged, sent) {
            tracing::warn!(%error, client = %flow.client, "a client could not be told that its connection is over");
        }
        Told::Done
    }

    /// Asks the client of a flow for its sequence numbers if these are unknown, so that it can be reset later.
    pub(super) fn learn_numbers(&self, flow: &Flow) {
        let unknown = |entry: FlowEntry| entry.last_ack.is_none() || entry.last_seq_end.is_none();
        if self.entry(flow).is_some_and(unknown) {
            self.ask_numbers(flow);
        }
    }

    /// Asks the client of a flow for its sequence numbers. Its answer passes the forwarder, which notes them.
    pub(super) fn ask_numbers(&self, flow: &Flow) -> Told {
        match tcp::ask_numbers(flow, plimsoll_datapath::now_ns() as u32) {
            Ok(()) => Told::Asked,
            Err(error) => {
                tracing::debug!(%error, client = %flow.client, "a client could not be asked");
                Told::Done
            }
        }
    }

    /// Leads packets of a flow to this machine's sockets, but keeps the flow, as its connection is not safe yet.
    pub(super) fn lead_here(&self, flow: &Flow) {
        if let Err(error) = self.forwarder.lead_here(flow) {
            tracing::warn!(%error, client = %flow.client, "a connection cannot be led back");
        }
    }

    /// Calls `visit` for each flow that leads to a back-end.
    ///
    /// # Errors
    /// Why they cannot be listed, in words.
    pub(super) fn visit_flows(&self, visit: &mut dyn FnMut(FlowState)) -> Result<(), String> {
        let now_ns = plimsoll_datapath::now_ns();
        let since = |then_ns: u64| Duration::from_nanos(now_ns.saturating_sub(then_ns));
        let listed = self.forwarder.for_each(|flow, entry| {
            let ours = self.is_ours(entry.agent);
            let phase = match &entry {
                entry if entry.over => FlowPhase::Over,
                _ if !ours => FlowPhase::LeftOver,
                entry if entry.next_hop.ifindex == 0 => FlowPhase::Returning,
                entry if entry.fin => FlowPhase::HalfClosed,
                _ => FlowPhase::Held,
            };
            visit(FlowState {
                flow,
                protocol: ListenerProtocol::Tcp,
                backend: ours.then_some((entry.agent & 0xffff) as usize),
                age: since(entry.began_ns),
                idle: since(entry.last_seen_ns),
                acknowledged_bytes: entry.acked_bytes,
                forwarded_packets: entry.packets,
                forwarded_bytes: entry.bytes,
                phase,
            });
        });
        listed.map_err(|error| error.to_string())
    }
}

/// Makes a number for this process such that no flow left by another process has a mark of that number.
pub(super) fn new_instance(forwarder: &Forwarder) -> Result<u64, String> {
    let mut marks = BTreeSet::new();
    let listed = forwarder.for_each(|_, entry| {
        marks.insert(entry.agent >> 16);
    });
    listed.map_err(|e| e.to_string())?;
    loop {
        let bytes = plimsoll_wire::random().map_err(|e| e.to_string())?;
        let instance = u64::from_le_bytes(bytes);
        // Each process settles what the ones before it left, so there are a few.
        if !marks.contains(&(instance as u32 & 0xffff)) || marks.len() > 0x8000 {
            return Ok(instance);
        }
    }
}
