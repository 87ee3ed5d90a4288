//! The packet program and what is shown of it.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_config::{
    BackendName, Config, DirectAttach, DirectConfig, DirectVia, ListenerConfig, ListenerProtocol,
    MechanismKind, OnStop,
};
use plimsoll_datapath::privileges::RunUser;
use plimsoll_datapath::switch::{
    ConnHolder, ConnTable, Switch, SwitchConfig, SwitchHook, Transport, TunnelKind,
};
use plimsoll_policy::BackendId;
use plimsoll_switch::{BookCounts, HandshakeCounts};

use super::recording::{PassedBatch, PassedRequests};
use crate::mechanism::carry::{FlowPhase, FlowState};

/// What the loop has shown last.
#[derive(Debug, Clone, Default)]
pub(super) struct ShownConns {
    pub(super) conns: usize,
    pub(super) opening: usize,
    pub(super) prepared: usize,
    pub(super) counts: BookCounts,
    /// Who is who in the packet program. A back-end that has moved is there twice while connections of its old address go on.
    pub(super) holders: Vec<(ConnHolder, BackendId, BackendName)>,
    /// In the order of `holders`.
    pub(super) handshakes: Vec<HandshakeCounts>,
}

/// The packet program, and what is shown of its connections.
pub(crate) struct DirectSystem {
    pub(super) switch: Arc<Switch>,
    on_stop: OnStop,
    shown: Mutex<ShownConns>,
    /// Requests that were seen to pass.
    pub(super) sniffed: AtomicU64,
    /// Whether the policy wants to know of them.
    pub(super) reads_for_policy: AtomicBool,
    pub(super) recording: PassedRequests,
}

impl DirectSystem {
    /// Loads the packet program, if the configuration asks for it, for a process that is to become `user`.
    ///
    /// # Errors
    /// Why this system does not allow it, in words.
    pub(super) fn start(config: &Config, user: Option<&RunUser>) -> Result<Option<Arc<Self>>, String> {
        let Some(direct) = config.direct.as_ref().filter(|_| config.mechanism == MechanismKind::Direct)
        else {
            return Ok(None);
        };
        let switch = Switch::open_for(&wanted(direct, sample_bytes(config, false)), user)
            .map_err(|error| error.to_string())?;
        tracing::info!("packets are forwarded at {}", switch.attached().join(", "));
        let system = Self {
            switch: Arc::new(switch),
            on_stop: direct.on_stop,
            shown: Mutex::default(),
            sniffed: AtomicU64::new(0),
            reads_for_policy: AtomicBool::new(false),
            recording: PassedRequests::default(),
        };
        system.serve(&config.listeners);
        Ok(Some(Arc::new(system)))
    }

    /// Distributes connections and datagrams to these listeners.
    pub(super) fn serve(&self, listeners: &[ListenerConfig]) {
        let transport = |listener: &ListenerConfig| match listener.protocol {
            ListenerProtocol::Tcp => Transport::Tcp,
            ListenerProtocol::Udp => Transport::Udp,
        };
        let services: Vec<_> = listeners.iter().map(|l| (l.address, transport(l))).collect();
        if let Err(error) = self.switch.set_services(&services) {
            tracing::error!(%error, "connections to changed listeners are not distributed");
        }
    }

    /// Requests that have passed since that of this number, to whoever records them.
    pub(crate) fn passed_since(&self, after: u64) -> PassedBatch {
        let lost = self.switch.counters().map_or(0, |counters| counters.samples_lost);
        let mut passed = self.recording.since(after);
        passed.samples_lost = lost;
        passed
    }

    pub(super) fn show(&self, shown: ShownConns) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    pub(super) fn shown(&self) -> ShownConns {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The process ends: packets are forwarded without it, unless they are not to be.
    pub(super) fn clear(&self) {
        if self.on_stop == OnStop::Forward {
            return;
        }
        if let Err(error) = self.switch.clear_and_detach() {
            tracing::warn!(%error, "something of the packet program stays behind");
        }
    }

    pub(super) fn visit_flows(&self, visit: &mut dyn FnMut(FlowState)) -> Result<(), String> {
        let now_ns = plimsoll_datapath::now_ns();
        let since = |then_ns: u64| Duration::from_nanos(now_ns.saturating_sub(then_ns));
        let holders = self.shown().holders;
        for table in ConnTable::ALL {
            let listed = self.switch.for_each(table, |conn, entry| {
                let holder = holders.iter().find(|(holder, _, _)| *holder == entry.holder);
                let phase = match table {
                    _ if entry.rst => FlowPhase::Over,
                    _ if entry.fin => FlowPhase::HalfClosed,
                    ConnTable::Opening => FlowPhase::Opening,
                    ConnTable::Established | ConnTable::Hashed => FlowPhase::Held,
                };
                visit(FlowState {
                    flow: conn.flow,
                    protocol: match conn.transport {
                        Transport::Tcp => ListenerProtocol::Tcp,
                        Transport::Udp => ListenerProtocol::Udp,
                    },
                    backend: holder.map(|(_, backend, _)| backend.index()),
                    age: since(entry.began_ns),
                    idle: since(entry.last_seen_ns),
                    // Answers do not pass here, and acknowledgments count from a number that is not known.
                    acknowledged_bytes: 0,
                    forwarded_packets: entry.packets,
                    forwarded_bytes: entry.bytes,
                    phase,
                });
            });
            listed.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// The tunnel in which packets go, if they do.
pub(super) fn tunnel_kind(via: DirectVia) -> Option<TunnelKind> {
    match via {
        DirectVia::Ethernet => None,
        DirectVia::Ipip => Some(TunnelKind::Ipip),
        DirectVia::Gue => Some(TunnelKind::Gue),
    }
}

fn wanted(direct: &DirectConfig, sample_bytes: u32) -> SwitchConfig {
    SwitchConfig {
        instance: direct.name.clone(),
        interfaces: direct.interfaces.clone(),
        hook: match direct.attach {
            DirectAttach::Auto => SwitchHook::Auto,
            DirectAttach::Tc => SwitchHook::Tc,
            DirectAttach::Xdp => SwitchHook::Xdp,
        },
        connections: direct.connections,
        opening: direct.opening,
        sample_bytes,
    }
}

/// What is copied of each packet: nothing where neither the policy nor who records wants to know.
pub(super) fn sample_bytes(config: &Config, is_recorded: bool) -> u32 {
    let is_wanted = is_recorded || config.policy.spec.capabilities.can_sniff();
    config.direct.as_ref().filter(|_| is_wanted).map_or(0, |direct| direct.sample_bytes)
}
