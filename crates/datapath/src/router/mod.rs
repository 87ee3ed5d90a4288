//! The packet router of Socket Cloning: what the client of a cloned connection says goes on to the clone.

mod inherited;
mod layout;

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use self::layout::{CLONE_ENTRY_BYTES, CLONES};
pub use self::layout::{CloneEntry, RouterEvent};
use crate::Flow;
use crate::agent_places::{detach_leftovers, router_place};
use crate::attach::FilterPlace;
use crate::clock::now_ns;
use crate::counters::RouterCounters;
use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::guard::check_alone;
use crate::layout::{MAX_VIPS, Mac, NextHop, turn, turn_here};
use crate::loader::{Aligned, LoadPlan, load};
use crate::neighbor::way;
use crate::pins::Pins;
use crate::privileges::RunUser;
use crate::ring::{HeldPacket, HeldRing};
use crate::tcp::{TcpState, wrong_numbers};
use crate::trial::{ProgramTrial, try_frame};
use crate::{flow_table, frame, inject, netlink, run};

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/router.bpf.o")));

const PORTS: &str = "plimsoll_ports";
const NODES: &str = "plimsoll_nodes";
const HELD: &str = "plimsoll_held";
const COUNTS: &str = "plimsoll_counts";

/// The configuration of a packet router.
#[derive(Debug, Clone)]
pub struct PacketRouterConfig {
    /// Name of the node, 1 to 64 letters, digits, `-` and `_`.
    pub instance: String,
    /// The interface at which packets of clients and of other nodes arrive.
    pub interface: String,
    /// The addresses of the listeners. Only their ports count.
    pub vips: Vec<SocketAddr>,
    /// The most connections that are cloned at a time. Each takes some 150 bytes of kernel memory, allocated at start.
    pub clones: u32,
    /// Memory for held packets that are not yet read; a power of two, whole pages.
    pub ring_bytes: u32,
}

/// Where an answer ends, compared with what its client has acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEnd {
    /// Not there yet: [`RouterEvent::Acknowledged`] will tell.
    Ahead,
    /// All is acknowledged.
    Reached,
    /// More is acknowledged than was sent.
    Exceeded,
    /// There is no such flow.
    Unknown,
}

/// The packet program at a node's interface and its maps.
///
/// Dropping it leaves program and table at their places: what the client acknowledges goes on to the clones. [`PacketRouter::detach`]
/// ends that. The next [`PacketRouter::open`] goes on with the [inherited](PacketRouter::take_inherited) connections.
#[derive(Debug)]
pub struct PacketRouter {
    pins: Pins,
    clones: MapHandle,
    nodes: MapHandle,
    counts: MapHandle,
    route: OwnedFd,
    lead: OwnedFd,
    expect: OwnedFd,
    receive: OwnedFd,
    emit: OwnedFd,
    place: FilterPlace,
    inherited: Vec<Flow>,
}

impl PacketRouter {
    /// Loads the program and attaches it, in place of that of an earlier process of this name, or of its guard. What it reports can be read from
    /// the ring. `user` is the one that this process is to become, if any.
    ///
    /// # Errors
    /// No privileges, no such interface, an instance of that name that is alive ([`DatapathError::Busy`]), the guard of another
    /// one with one of the addresses ([`DatapathError::Taken`]), a kernel that is too old, a table of an earlier process that cannot be read,
    /// or a configuration out of bounds.
    pub fn open(
        config: &PacketRouterConfig,
        user: Option<&RunUser>,
    ) -> Result<(Self, HeldRing<RouterEvent>), DatapathError> {
        if config.clones == 0 {
            return Err(DatapathError::Invalid(
                "a packet router needs room for 1 connection at least".to_owned(),
            ));
        }
        let links = netlink::links()?;
        let link = netlink::named(&links, &config.interface)?;
        link.check_ethernet()?;
        let pins = Pins::open(&config.instance, user)?;
        check_alone(&pins, &links, &config.vips).inspect_err(|_| pins.remove_empty())?;
        let sizes = [(CLONES, config.clones), (HELD, config.ring_bytes)];
        let plan = LoadPlan { object: &OBJECT.0, pinned: &[CLONES], sizes: &sizes, beside: None };
        let mut loaded = load(&plan, Some(&pins))?;
        flow_table::watch_ports(&loaded.take_map(PORTS)?, &config.vips)?;
        let ring = HeldRing::new(loaded.take_map(HELD)?)?;
        let mut router = Self {
            clones: loaded.take_map(CLONES)?,
            nodes: loaded.take_map(NODES)?,
            counts: loaded.take_map(COUNTS)?,
            route: loaded.take_program("plimsoll_route")?,
            lead: loaded.take_program("plimsoll_lead")?,
            expect: loaded.take_program("plimsoll_expect")?,
            receive: loaded.take_program("plimsoll_receive")?,
            emit: loaded.take_program("plimsoll_emit")?,
            place: router_place(&config.instance, link.index),
            pins,
            inherited: Vec::new(),
        };
        router.place.attach(router.route.as_fd())?;
        // A guard that was killed would hold what is for this node, and let nothing out.
        detach_leftovers(&config.instance, &links, &[router.place], router.route.as_fd())?;
        router.pins.keep_only(&[CLONES]);
        router.pins.remove_other_versions();
        router.inherited = inherited::take_over(&router.clones)?;
        Ok((router, ring))
    }

    /// The connections that an earlier process of this name had entered when it was killed, unordered; none when called again. Their sockets
    /// have died with it, without a word if they were frozen, so their clients may wait. They stay entered.
    pub fn take_inherited(&mut self) -> Vec<Flow> {
        std::mem::take(&mut self.inherited)
    }

    /// From now on, what comes from these MAC addresses for a connection that this machine does not have is dropped.
    ///
    /// # Errors
    /// More than 256 of them, or the kernel's.
    pub fn set_nodes(&self, nodes: &[Mac]) -> Result<(), DatapathError> {
        if nodes.len() > MAX_VIPS {
            return Err(DatapathError::Invalid(format!("{} other nodes: 256 at most", nodes.len())));
        }
        let failed = |error| DatapathError::of_bpf("cannot set the other nodes", BPF_CAPABILITIES, &error);
        let keys: Vec<_> = nodes.iter().map(layout::node_key).collect();
        let old: Vec<Vec<u8>> = self.nodes.keys().take(MAX_VIPS).collect();
        for gone in old.iter().filter(|old| !keys.iter().any(|key| key == old.as_slice())) {
            self.nodes.delete(gone).map_err(failed)?;
        }
        for key in &keys {
            self.nodes.update(key, &1_u32.to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
        }
        Ok(())
    }

    /// From now on packets of `flow` are held.
    ///
    /// # Errors
    /// [`DatapathError::Full`], or the kernel's.
    pub fn hold(&self, flow: &Flow) -> Result<(), DatapathError> {
        self.enter(flow, &[0; CLONE_ENTRY_BYTES])
    }

    /// The connection, whose packets are held, is frozen in this state: from now on its packets tell how far its client has come.
    ///
    /// # Errors
    /// As [`PacketRouter::hold`].
    pub fn number(&self, state: &TcpState) -> Result<(), DatapathError> {
        self.enter(&state.flow, &layout::numbered(state, now_ns()))
    }

    fn enter(&self, flow: &Flow, entry: &[u8; CLONE_ENTRY_BYTES]) -> Result<(), DatapathError> {
        let table = "the table of cloned connections";
        flow_table::enter(&self.clones, flow, entry, table, "cannot enter a cloned connection")
    }

    /// From now on what the client acknowledges goes to the clone, and what it sends is held. False when there is no such flow.
    ///
    /// # Errors
    /// [`DatapathError::Invalid`] for a MAC address that is none of a machine, or the kernel's.
    pub fn lead(&self, flow: &Flow, next_hop: &NextHop) -> Result<bool, DatapathError> {
        next_hop.check()?;
        Self::run(&self.lead, &mut turn(flow, next_hop, 0)).map(|verdict| verdict == 0)
    }

    /// From now on all packets of `flow` go to the clone, which keeps the connection; with `closing` it has ended it, and a SYN
    /// begins another one, for this machine. False when there is no such flow.
    ///
    /// # Errors
    /// As [`PacketRouter::lead`].
    pub fn lead_all(&self, flow: &Flow, next_hop: &NextHop, closing: bool) -> Result<bool, DatapathError> {
        next_hop.check()?;
        Self::run(&self.lead, &mut layout::turn_all(flow, next_hop, closing)).map(|verdict| verdict == 0)
    }

    /// From now on all packets of `flow` are held. False when there is no such flow.
    ///
    /// # Errors
    /// The kernel's.
    pub fn lead_here(&self, flow: &Flow) -> Result<bool, DatapathError> {
        Self::run(&self.lead, &mut turn_here(flow)).map(|verdict| verdict == 0)
    }

    /// Notes the number after the answer's last byte.
    ///
    /// # Errors
    /// The kernel's.
    pub fn expect(&self, flow: &Flow, end: u32) -> Result<AnswerEnd, DatapathError> {
        Ok(match Self::run(&self.expect, &mut layout::expected(flow, end))? {
            0 => AnswerEnd::Ahead,
            2 => AnswerEnd::Reached,
            3 => AnswerEnd::Exceeded,
            _ => AnswerEnd::Unknown,
        })
    }

    fn run(program: &OwnedFd, context: &mut [u8]) -> Result<u32, DatapathError> {
        let input = run::RunInput { context: Some(context), ..Default::default() };
        let output = run::run(program.as_fd(), input).map_err(|error| {
            DatapathError::of("cannot change a cloned connection's entry", BPF_CAPABILITIES, error)
        })?;
        Ok(output.verdict)
    }

    /// What is known of a flow.
    ///
    /// # Errors
    /// The kernel's.
    pub fn get(&self, flow: &Flow) -> Result<Option<CloneEntry>, DatapathError> {
        let mut bytes = [0; CLONE_ENTRY_BYTES];
        let found = self.clones.lookup_into(&flow.key(), &mut bytes, MapFlags::ANY).map_err(|error| {
            DatapathError::of_bpf("cannot look a cloned connection up", BPF_CAPABILITIES, &error)
        })?;
        Ok(found.then(|| CloneEntry::from_bytes(&bytes)))
    }

    /// From now on packets of `flow` are for this machine's kernel. False when it was not entered (any more).
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove(&self, flow: &Flow) -> Result<bool, DatapathError> {
        flow_table::remove(&self.clones, flow, "cannot remove a cloned connection")
    }

    /// Like [`Self::remove`]; what was known of it at the last moment, `None` when it was not entered (any more).
    ///
    /// # Errors
    /// The kernel's.
    pub fn take(&self, flow: &Flow) -> Result<Option<CloneEntry>, DatapathError> {
        let mut bytes = [0; CLONE_ENTRY_BYTES];
        let found = self.clones.lookup_into_and_delete(&flow.key(), &mut bytes).map_err(|error| {
            DatapathError::of_bpf("cannot remove a cloned connection", BPF_CAPABILITIES, &error)
        })?;
        Ok(found.then(|| CloneEntry::from_bytes(&bytes)))
    }

    /// Flows that are entered.
    #[must_use]
    pub fn entered(&self) -> usize {
        self.clones.keys().count()
    }

    /// Injects a held packet into the stack as if its interface had just received it. While its flow is entered, it is held
    /// again.
    ///
    /// # Errors
    /// [`DatapathError::Invalid`] for a packet whose checksum is wrong, and the kernel's.
    pub fn inject(&self, packet: &HeldPacket) -> Result<(), DatapathError> {
        let frame = frame::with_checksum(&packet.frame)?;
        inject::receive(self.receive.as_fd(), packet.ifindex, &frame)
    }

    /// Sends what a held packet acknowledges on to the clone, and that it resets the connection; what it brings besides is left
    /// out, and stays here. Whether it is of [the client's stream](HeldPacket::is_of_stream).
    ///
    /// # Errors
    /// [`DatapathError::Invalid`] for a packet whose checksum is wrong, and the kernel's.
    pub fn send_on(&self, packet: &HeldPacket, next_hop: &NextHop) -> Result<bool, DatapathError> {
        let of_stream = packet.is_of_stream();
        let mut frame = if of_stream {
            frame::acknowledgment(&packet.frame)?
        } else {
            frame::with_checksum(&packet.frame)?
        };
        frame::set_macs(&mut frame, next_hop.mac, next_hop.own_mac);
        inject::send(self.emit.as_fd(), next_hop.ifindex, &frame)?;
        Ok(of_stream)
    }

    /// Has the client of a connection that no kernel has any more tell its sequence numbers: it gets an acknowledgment with wrong ones,
    /// which it answers by its right ones (RFC 9293, section 3.10.7.4), but not more often than twice a second. This machine's kernel
    /// answers these by a RST with the very number that the client expects. Other than by [`tcp::ask_numbers`](crate::tcp::ask_numbers),
    /// there is no socket meanwhile that an answer could meet. `salt` is another one at each attempt: wrong numbers may be right by chance.
    ///
    /// # Errors
    /// As [`neighbor`](crate::neighbor) where the MAC address on the way to the client is not known, and the kernel's.
    pub fn ask_numbers(&self, flow: &Flow, salt: u32) -> Result<(), DatapathError> {
        let next_hop = way(flow.client.ip(), Duration::ZERO)?.next_hop;
        let (seq, ack) = wrong_numbers(salt);
        let mut frame = frame::acknowledgment_to(flow, seq, ack);
        frame::set_macs(&mut frame, next_hop.mac, next_hop.own_mac);
        inject::send(self.emit.as_fd(), next_hop.ifindex, &frame)
    }

    /// Sends a held packet on to the clone as it is.
    ///
    /// # Errors
    /// As [`PacketRouter::send_on`].
    pub fn pass_on(&self, packet: &HeldPacket, next_hop: &NextHop) -> Result<(), DatapathError> {
        let mut frame = frame::with_checksum(&packet.frame)?;
        frame::set_macs(&mut frame, next_hop.mac, next_hop.own_mac);
        inject::send(self.emit.as_fd(), next_hop.ifindex, &frame)
    }

    /// The program's counters.
    ///
    /// # Errors
    /// The kernel's.
    pub fn counters(&self) -> Result<RouterCounters, DatapathError> {
        RouterCounters::read(&self.counts)
    }

    /// Runs the program on `frame`, `repeat` times, as if it had arrived for this host; nothing is sent. Maps change as they
    /// would. For tests and measurements.
    ///
    /// # Errors
    /// The kernel's.
    pub fn try_frame(&self, frame: &[u8], repeat: u32) -> Result<ProgramTrial, DatapathError> {
        try_frame(self.route.as_fd(), frame, repeat)
    }

    /// Leaves nothing behind in the kernel; a clsact qdisc stays that others have made or use.
    ///
    /// # Errors
    /// The kernel's.
    pub fn detach(self) -> Result<(), DatapathError> {
        let result = self.place.detach(self.route.as_fd());
        self.pins.remove();
        result
    }
}

impl HeldPacket {
    /// Whether it has bytes, or an end (FIN or RST), of what the client sends.
    #[must_use]
    pub fn is_of_stream(&self) -> bool {
        frame::is_of_stream(&self.frame)
    }

    /// The bytes that it brings, if they begin at this number, and it brings nothing else: no FIN, SYN, RST or urgent data. It has
    /// to acknowledge up to `ack`, or at most a window less, and its checksum to be right.
    #[must_use]
    pub fn data_at(&self, seq: u32, ack: u32, window_bytes: u32) -> Option<&[u8]> {
        frame::data_at(&self.frame, seq, ack, window_bytes)
    }

    /// What it acknowledges, unless it resets the connection.
    #[must_use]
    pub fn acknowledged(&self) -> Option<u32> {
        frame::acknowledged(&self.frame)
    }

    /// Its sequence number, if it resets the connection.
    #[must_use]
    pub fn reset_seq(&self) -> Option<u32> {
        frame::reset_seq(&self.frame)
    }
}
