//! What all workers share of the mechanism.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_config::{Config, Mechanism};
use plimsoll_datapath::{Flow, FlowEntry, Forwarder, ForwarderConfig, NextHop};
use plimsoll_policy::BackendId;
use plimsoll_wire::Key;

use super::registry::Registry;
use crate::metrics::{Counter, FINE_BUCKETS_US, Histogram};

/// How long a flow that another process left, and that its client has ended, waits for an agent to claim it.
const ENDED_IDLE: Duration = Duration::from_secs(5);

/// What happened, in all workers.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Connections sent on after an agent gave them back.
    pub(crate) handed_on: Counter,
    /// Taken over by an agent.
    pub(crate) taken: Counter,
    /// Refused by an agent, and served here.
    pub(crate) refused: Counter,
    /// Not answered in time by an agent, and served here.
    pub(crate) timed_out: Counter,
    /// Chosen for handing off, but such that they could not travel, or no room for them: served here.
    pub(crate) kept: Counter,
    /// Further requests that stayed with the back-end that had the connection.
    pub(crate) stayed: Counter,
    /// Adopted from an agent that had them before this front-end, or its link, began.
    pub(crate) adopted: Counter,
    /// Lost with their agent, or because they could not be taken back.
    pub(crate) lost: Counter,
    /// Clients reset.
    pub(crate) reset: Counter,
    /// Flows that led to an agent that did not have them.
    pub(crate) strays: Counter,
    /// From telling the agent to its answer.
    pub(crate) take_over: Histogram,
}

impl Counts {
    fn new() -> Self {
        Self { take_over: Histogram::with(&FINE_BUCKETS_US), ..Self::default() }
    }
}

/// The forwarder and what goes with it.
pub(crate) struct System {
    pub(crate) forwarder: Forwarder,
    pub(crate) name: String,
    pub(crate) instance: u64,
    pub(crate) key: Key,
    pub(crate) counts: Counts,
    registry: Mutex<Registry>,
    flows: AtomicU32,
    links: AtomicU32,
    most_flows: u32,
    origin: Instant,
}

impl System {
    /// Loads the packet programs, if the configuration asks for handing off.
    ///
    /// # Errors
    /// Why this system does not allow it, in words; not if the configuration allows proxying instead.
    pub(crate) fn start(config: &Config) -> Result<Option<Arc<Self>>, String> {
        let (Mechanism::Handoff, Some(handoff)) = (config.mechanism, &config.handoff) else {
            return Ok(None);
        };
        let vips: Vec<SocketAddr> = config.listeners.iter().map(|l| l.address).collect();
        let wanted = ForwarderConfig {
            instance: handoff.name.clone(),
            interfaces: handoff.interfaces.clone(),
            vips,
            flows: handoff.flows,
        };
        let started = Forwarder::open(&wanted).map_err(|e| e.to_string()).and_then(|forwarder| {
            let instance = plimsoll_wire::random().map_err(|e| e.to_string())?;
            Ok(Self {
                forwarder,
                name: handoff.name.clone(),
                instance: u64::from_le_bytes(instance),
                key: handoff.key.clone(),
                counts: Counts::new(),
                registry: Mutex::default(),
                flows: AtomicU32::new(0),
                links: AtomicU32::new(0),
                most_flows: handoff.flows,
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

    /// What all workers know of flows. Nothing is waited for while this is held.
    pub(super) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This front-end's clock in nanoseconds.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// What the forwarder keeps beside a flow: which process of this front-end led it, and to which back-end.
    fn mark(&self, backend: BackendId) -> u32 {
        (self.instance as u32) << 16 | (backend.index() as u32 & 0xffff)
    }

    /// Whether a mark was made by this process.
    fn is_ours(&self, mark: u32) -> bool {
        mark >> 16 == self.instance as u32 & 0xffff
    }

    /// Room for another flow; false when there is none.
    pub(super) fn take_flow(&self) -> bool {
        let more = |flows: u32| (flows < self.most_flows).then_some(flows + 1);
        self.flows.try_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// A flow more, whether there is room or not.
    pub(super) fn add_flow(&self) {
        self.flows.fetch_add(1, Ordering::Relaxed);
    }

    /// A flow less.
    pub(super) fn free_flow(&self) {
        let less = |flows: u32| flows.checked_sub(1);
        // None less than none: an adopted flow that two workers forgot.
        let _ = self.flows.try_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Packets to these addresses are looked at from now on.
    pub(crate) fn watch(&self, listeners: &[SocketAddr]) {
        if let Err(error) = self.forwarder.watch(listeners) {
            tracing::error!(%error, "packets to changed listeners are not forwarded");
        }
    }

    /// Takes the packet programs out of the system: every connection is over, or has to be.
    pub(crate) fn clear(&self) {
        if let Err(error) = self.forwarder.clear_and_detach() {
            tracing::warn!(%error, "the packet programs could not be taken out of the system");
        }
    }

    /// A link came up, or went down.
    pub(super) fn count_link(&self, up: bool) {
        if up {
            self.links.fetch_add(1, Ordering::Relaxed);
        } else {
            self.links.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Links to agents that are up, over all workers.
    pub(crate) fn links(&self) -> u32 {
        self.links.load(Ordering::Relaxed)
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

    /// A flow leads to this front-end again.
    pub(super) fn unlead(&self, flow: &Flow) {
        if let Err(error) = self.forwarder.remove(flow) {
            tracing::warn!(%error, client = %flow.client, "a connection cannot be led back");
        }
    }

    /// The connection of a flow is over: its client may begin another one.
    pub(super) fn end(&self, flow: &Flow) {
        if let Err(error) = self.forwarder.end(flow) {
            tracing::warn!(%error, client = %flow.client, "a connection that is over cannot be marked");
        }
    }

    /// A flow leads to this front-end again, unless its client has sent something lately: false then.
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

    /// Whether a flow leads to this machine because another process of this front-end led it there.
    pub(super) fn is_left_over(&self, flow: &Flow, to: Option<NextHop>) -> bool {
        let (entry, to) = (self.entry(flow), to.map(|hop| hop.mac));
        entry.is_some_and(|entry| Some(entry.next_hop.mac) == to && !self.is_ours(entry.agent))
    }

    /// Whether the client of a flow has sent something lately.
    pub(super) fn is_busy(&self, flow: &Flow, quiet: Duration) -> bool {
        let Some(entry) = self.entry(flow) else { return false };
        let silent_ns = plimsoll_datapath::now_ns().saturating_sub(entry.last_seen_ns);
        !entry.rst && u128::from(silent_ns) < quiet.as_nanos()
    }

    /// Forgets flows that another process of this front-end left and that no agent has claimed, once their clients have
    /// been silent for this long.
    pub(crate) fn sweep(&self, idle: Duration) {
        let now_ns = plimsoll_datapath::now_ns();
        let mut gone = Vec::new();
        let listed = self.forwarder.for_each(|flow, entry| {
            let silent_ns = now_ns.saturating_sub(entry.last_seen_ns);
            // Its client has ended it, and agents have had time to claim it: it may have been over before this process began.
            let idle = if entry.fin || entry.rst { idle.min(ENDED_IDLE) } else { idle };
            if !self.is_ours(entry.agent) && u128::from(silent_ns) >= idle.as_nanos() {
                gone.push((flow, entry));
            }
        });
        if let Err(error) = listed {
            tracing::warn!(%error, "the flows cannot be listed");
        }
        for (flow, entry) in gone {
            self.unlead(&flow);
            if let (false, Some(ack), Some(end)) = (entry.rst, entry.last_ack, entry.last_seq_end) {
                // Its back-end may be gone as well; its client hears of it, if it is still there.
                drop(plimsoll_datapath::tcp::reset(&flow, ack, end));
            }
        }
    }
}
