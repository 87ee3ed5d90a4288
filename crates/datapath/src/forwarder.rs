//! The front-end's side: forwards packets of handed-off connections to their back-ends.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::attach::{AttachPoint, FilterPlace};
use crate::clock::now_ns;
use crate::counters::ForwarderCounters;
use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::layout::{self, FLOW_ENTRY_BYTES, FlowEntry, NextHop, flow_at};
use crate::loader::{Aligned, LoadPlan, load};
use crate::netlink;
use crate::pins::Pins;
use crate::privileges::RunUser;
use crate::tcp::TcpState;
use crate::trial::{ProgramTrial, try_frame};
use crate::{Flow, batch, flow_table, run};

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/forwarder.bpf.o")));

const PORTS: &str = "plimsoll_ports";
const FLOWS: &str = "plimsoll_flows";
const COUNTS: &str = "plimsoll_counts";
const HOLD: &str = "plimsoll_hold";
const PROGRAM: &str = "plimsoll_fwd";
const TURN: &str = "plimsoll_turn";
const WINDOWS: &str = "plimsoll_windows";
const END: &str = "plimsoll_end";
const FORGET: &str = "plimsoll_forget";
/// Priority of the filter: early, yet with room before it.
const PRIORITY: u32 = 80;

/// The configuration of a forwarder.
#[derive(Debug, Clone)]
pub struct ForwarderConfig {
    /// Name of the front-end, 1 to 64 letters, digits, `-` and `_`. Two forwarders or guards on one machine need two names,
    /// in whatever network namespaces they are.
    pub instance: String,
    /// Interfaces at which packets of clients arrive. One with VLANs does not see their packets: name the VLANs'.
    pub interfaces: Vec<String>,
    /// Addresses of the listeners. Only their ports count.
    pub vips: Vec<SocketAddr>,
    /// The most flows that back-ends may have at a time. Each takes some 160 bytes of kernel memory,
    /// allocated at start.
    pub flows: u32,
}

/// The packet program at the front-end's interfaces and its maps.
///
/// Dropping it leaves everything as it is: packets go on being forwarded, and the next [`Forwarder::open`] finds the
/// flows. [`Forwarder::clear_and_detach`] ends that.
#[derive(Debug)]
pub struct Forwarder {
    pins: Pins,
    flows: MapHandle,
    ports: MapHandle,
    counts: MapHandle,
    hold: MapHandle,
    program: OwnedFd,
    turn: OwnedFd,
    windows: OwnedFd,
    end: OwnedFd,
    forget: OwnedFd,
    places: Vec<FilterPlace>,
}

impl Forwarder {
    /// Loads the program with the maps that an earlier instance left, and attaches it in place of that instance's.
    ///
    /// # Errors
    /// No privileges, no such interface, an instance of that name that is alive ([`DatapathError::Busy`]), or a kernel
    /// that is too old.
    pub fn open(config: &ForwarderConfig) -> Result<Self, DatapathError> {
        Self::open_for(config, None)
    }

    /// As [`Forwarder::open`], for a process of root that is to become `user`, who can take over and remove what it pins.
    ///
    /// # Errors
    /// As [`Forwarder::open`].
    pub fn open_for(config: &ForwarderConfig, user: Option<&RunUser>) -> Result<Self, DatapathError> {
        if config.flows == 0 {
            return Err(DatapathError::Invalid("a forwarder needs room for 1 flow at least".to_owned()));
        }
        let pins = Pins::open(&config.instance, user)?;
        let sizes = [(FLOWS, config.flows)];
        let plan =
            LoadPlan { object: &OBJECT.0, pinned: &[FLOWS, PORTS, COUNTS], sizes: &sizes, beside: None };
        let mut loaded = load(&plan, Some(&pins))?;
        let mut forwarder = Self {
            pins,
            flows: loaded.take_map(FLOWS)?,
            ports: loaded.take_map(PORTS)?,
            counts: loaded.take_map(COUNTS)?,
            hold: loaded.take_map(HOLD)?,
            program: loaded.take_program(PROGRAM)?,
            turn: loaded.take_program(TURN)?,
            windows: loaded.take_program(WINDOWS)?,
            end: loaded.take_program(END)?,
            forget: loaded.take_program(FORGET)?,
            places: Vec::new(),
        };
        forwarder.watch(&config.vips)?;
        forwarder.attach(&config.interfaces)?;
        forwarder.pins.remove_other_versions();
        Ok(forwarder)
    }

    fn attach(&mut self, interfaces: &[String]) -> Result<(), DatapathError> {
        let place =
            |index: u32| FilterPlace::new(self.pins.instance(), index, AttachPoint::Ingress, PRIORITY);
        let links = netlink::links()?;
        let mut places = Vec::with_capacity(interfaces.len());
        for name in interfaces {
            let link = netlink::named(&links, name)?;
            link.check_ethernet()?;
            places.push(place(link.index));
        }
        for place in &places {
            place.attach(self.program.as_fd())?;
        }
        // What an earlier instance with other interfaces left.
        for other in links.iter().map(|link| place(link.index)).filter(|other| !places.contains(other)) {
            other.detach(self.program.as_fd())?;
        }
        self.places = places;
        Ok(())
    }

    /// Watches only these VIPs' ports. For listeners that change at run time.
    ///
    /// # Errors
    /// The kernel's.
    pub fn watch(&self, vips: &[SocketAddr]) -> Result<(), DatapathError> {
        flow_table::watch_ports(&self.ports, vips)
    }

    /// Whether packets of connections that neither this machine's kernel nor an entry knows are dropped from now on, where the
    /// kernel would answer that there is no such connection. TCP repeats them. Packets that open a connection pass. At first
    /// nothing is dropped.
    ///
    /// # Errors
    /// The kernel's.
    pub fn hold(&self, holds: bool) -> Result<(), DatapathError> {
        let value = u32::from(holds).to_ne_bytes();
        self.hold.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY).map_err(|error| {
            DatapathError::of_bpf("cannot hold packets of unknown connections", BPF_CAPABILITIES, &error)
        })
    }

    /// From now on packets of `flow` go to `next_hop`. `agent` is the caller's number for who has it. An entry that is
    /// there already is replaced, and what was known of the client forgotten.
    ///
    /// # Errors
    /// [`DatapathError::Full`]; [`DatapathError::Invalid`] for a MAC address that is none of a machine.
    pub fn insert(&self, flow: &Flow, next_hop: &NextHop, agent: u32) -> Result<(), DatapathError> {
        next_hop.check()?;
        let entry = layout::new_flow_entry(next_hop, agent, now_ns());
        flow_table::enter(&self.flows, flow, &entry, "the table of flows", "cannot enter a flow")
    }

    /// As [`Forwarder::insert`] for a flow that another agent has had: what is known of the client is kept. False when
    /// there is no such flow (any more).
    ///
    /// # Errors
    /// As [`Forwarder::insert`].
    pub fn redirect(&self, flow: &Flow, next_hop: &NextHop, agent: u32) -> Result<bool, DatapathError> {
        next_hop.check()?;
        let mut turn = layout::turn(flow, next_hop, agent);
        Self::run(&self.turn, &mut turn, "cannot lead a flow elsewhere")
    }

    /// From now on packets of `flow` are for this machine, as after [`Forwarder::remove`], but the flow stays entered: whoever
    /// opens the forwarder next finds it, should this process die before the connection is safe. False when there is no such
    /// flow (any more).
    ///
    /// # Errors
    /// The kernel's.
    pub fn lead_here(&self, flow: &Flow) -> Result<bool, DatapathError> {
        Self::run(&self.turn, &mut layout::turn_here(flow), "cannot lead a flow to this machine")
    }

    /// From now on only packets with numbers within this connection's windows tell anything about its client: others are sent
    /// on, but may be forged. Without windows, those of a new flow are any up to 2^30 away from the first. False when there is no
    /// such flow (any more).
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_windows(&self, state: &TcpState) -> Result<bool, DatapathError> {
        Self::run(&self.windows, &mut layout::windows(state), "cannot set the windows of a flow")
    }

    /// The agent has said that the connection is over: its client may begin another one from the same port, whose first
    /// packet ends the flow. Until then no packet does, as anyone can forge one. False when there is no such flow (any
    /// more).
    ///
    /// # Errors
    /// The kernel's.
    pub fn end(&self, flow: &Flow) -> Result<bool, DatapathError> {
        Self::run(&self.end, &mut layout::ended(flow, Duration::ZERO), "cannot end a flow")
    }

    /// As [`Forwarder::remove`], but not while the client has sent something within `quiet`, unless that was a RST: false
    /// then.
    ///
    /// # Errors
    /// The kernel's.
    pub fn forget(&self, flow: &Flow, quiet: Duration) -> Result<bool, DatapathError> {
        Self::run(&self.forget, &mut layout::ended(flow, quiet), "cannot forget a flow")
    }

    /// Runs the program on this context. Returns whether it returned 0.
    fn run(program: &OwnedFd, context: &mut [u8], what: &'static str) -> Result<bool, DatapathError> {
        let input = run::RunInput { context: Some(context), ..Default::default() };
        let output = run::run(program.as_fd(), input)
            .map_err(|error| DatapathError::of(what, BPF_CAPABILITIES, error))?;
        Ok(output.verdict == 0)
    }

    /// What is known of a flow.
    ///
    /// # Errors
    /// The kernel's.
    pub fn get(&self, flow: &Flow) -> Result<Option<FlowEntry>, DatapathError> {
        let mut bytes = [0; FLOW_ENTRY_BYTES];
        let found = self
            .flows
            .lookup_into(&flow.key(), &mut bytes, MapFlags::ANY)
            .map_err(|error| DatapathError::of_bpf("cannot look a flow up", BPF_CAPABILITIES, &error))?;
        Ok(found.then(|| FlowEntry::from_bytes(&bytes)))
    }

    /// From now on packets of `flow` are for this machine. False when it was not entered (any more).
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove(&self, flow: &Flow) -> Result<bool, DatapathError> {
        flow_table::remove(&self.flows, flow, "cannot remove a flow")
    }

    /// Calls `visit` for each flow, reading some thousand per system call. Flows that come or go meanwhile
    /// may be left out.
    ///
    /// # Errors
    /// The kernel's.
    pub fn for_each(&self, mut visit: impl FnMut(Flow, FlowEntry)) -> Result<(), DatapathError> {
        let visit = |key: &[u8], value: &[u8]| {
            if let Some(flow) = flow_at(key, 0) {
                visit(flow, FlowEntry::from_bytes(value));
            }
        };
        batch::for_each(&self.flows, visit)
            .map_err(|error| DatapathError::of("cannot list the flows", BPF_CAPABILITIES, error))
    }

    /// The program's counters.
    ///
    /// # Errors
    /// The kernel's.
    pub fn counters(&self) -> Result<ForwarderCounters, DatapathError> {
        ForwarderCounters::read(&self.counts)
    }

    /// The most flows at a time.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.flows.max_entries()
    }

    /// Runs the program on `frame`, `repeat` times, as if it had arrived for this host; nothing is sent. Maps change as
    /// they would. For tests and measurements.
    ///
    /// # Errors
    /// The kernel's.
    pub fn try_frame(&self, frame: &[u8], repeat: u32) -> Result<ProgramTrial, DatapathError> {
        try_frame(self.program.as_fd(), frame, repeat)
    }

    /// Forgets all flows and leaves nothing behind in the kernel; a clsact qdisc stays that others have made or use. For an
    /// end that is intended, when no back-end has a connection any more.
    ///
    /// # Errors
    /// The kernel's. What could be removed is removed.
    pub fn clear_and_detach(&self) -> Result<(), DatapathError> {
        let mut result = Ok(());
        for place in &self.places {
            result = result.and(place.detach(self.program.as_fd()));
        }
        self.pins.remove();
        result
    }
}

/// Loads the program and attaches it to interface `ifindex` for good, to check that the system allows it.
pub(crate) fn try_out(ifindex: u32) -> Result<(), DatapathError> {
    let mut loaded = load(&LoadPlan { object: &OBJECT.0, pinned: &[], sizes: &[], beside: None }, None)?;
    FilterPlace::new("check", ifindex, AttachPoint::Ingress, PRIORITY)
        .attach(loaded.take_program(PROGRAM)?.as_fd())
}

/// Loads the programs and attaches them nowhere, to check that this process may.
pub(crate) fn try_load() -> Result<(), DatapathError> {
    load(&LoadPlan { object: &OBJECT.0, pinned: &[], sizes: &[], beside: None }, None).map(drop)
}

impl NextHop {
    pub(crate) fn check(&self) -> Result<(), DatapathError> {
        let bad = |mac: &layout::Mac| mac[0] & 1 != 0 || *mac == [0; 6];
        if self.ifindex == 0 || bad(&self.mac) || bad(&self.own_mac) || self.mac == self.own_mac {
            return Err(DatapathError::Invalid(format!(
                "packets cannot be sent on to {self:?}: it takes an interface and the MAC addresses of two machines"
            )));
        }
        Ok(())
    }
}
