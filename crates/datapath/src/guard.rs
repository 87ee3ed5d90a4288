//! The back-end's side: holds packets that come before their socket, and lets no packet out without a lease.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};

use crate::agent_places::{detach_leftovers, guard_places};
use crate::attach::FilterPlace;
use crate::clock::now_ns;
use crate::counters::GuardCounters;
use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::layout::{self, LEASE_BYTES, LeaseEntry, MAX_VIPS, Mac, flow_at};
use crate::loader::{Aligned, LoadPlan, load};
use crate::netlink::NetworkInterface;
use crate::pins::Pins;
use crate::privileges::RunUser;
use crate::ring::{HeldPacket, HeldRing};
use crate::trial::{ProgramTrial, try_frame};
use crate::{Flow, batch, flow_table, frame, inject, netlink};

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/guard.bpf.o")));

const VIPS: &str = "plimsoll_vips";
const LEASES: &str = "plimsoll_leases";
const HELD: &str = "plimsoll_held";
const COUNTS: &str = "plimsoll_counts";
/// The maps that outlive the process.
const PINNED: [&str; 4] = [VIPS, LEASES, HELD, COUNTS];
/// A ring must be a power of two and whole pages.
const RING_BYTES: std::ops::RangeInclusive<u32> = 64 * 1024..=1 << 28;

/// The configuration of a guard.
#[derive(Debug, Clone)]
pub struct GuardConfig {
    /// Name of the agent, 1 to 64 letters, digits, `-` and `_`. Two forwarders or guards on one machine need two names, in
    /// whatever network namespaces they are.
    pub instance: String,
    /// The interface at which packets from front-ends arrive and answers to clients leave.
    pub interface: String,
    /// The virtual addresses, with ports. At most 256.
    pub vips: Vec<SocketAddr>,
    /// The most leases at a time. Each takes some 100 bytes of kernel memory, allocated at start.
    pub leases: u32,
    /// Memory for held packets that are not yet read; a power of two from 64 KiB to 256 MiB. 1 MiB is plenty.
    pub ring_bytes: u32,
}

/// The packet programs at the back-end's interface and their maps.
///
/// Dropping it leaves everything as it is, as with [`crate::Forwarder`]: leases go on and packets are still held.
#[derive(Debug)]
pub struct Guard {
    pins: Pins,
    vips: MapHandle,
    leases: MapHandle,
    counts: MapHandle,
    inbound: OwnedFd,
    outbound: OwnedFd,
    receive: OwnedFd,
    emit: OwnedFd,
    ifindex: u32,
    own_mac: Mac,
    places: [FilterPlace; 2],
}

impl Guard {
    /// Loads the programs with the maps that an earlier instance left, and attaches them in place of that instance's.
    /// Packets that are held can be read from the ring.
    ///
    /// # Errors
    /// No privileges, no such interface, an instance of that name that is alive ([`DatapathError::Busy`]), another one with
    /// one of the addresses ([`DatapathError::Taken`]), a kernel that is too old, or a configuration out of bounds.
    pub fn open(config: &GuardConfig) -> Result<(Self, HeldRing), DatapathError> {
        Self::open_for(config, None)
    }

    /// As [`Guard::open`], for a process of root that is to become `user`, who can take over and remove what it pins.
    ///
    /// # Errors
    /// As [`Guard::open`].
    pub fn open_for(config: &GuardConfig, user: Option<&RunUser>) -> Result<(Self, HeldRing), DatapathError> {
        check(config)?;
        let links = netlink::links()?;
        let link = netlink::named(&links, &config.interface)?;
        let own_mac = link.check_ethernet()?;
        let pins = Pins::open(&config.instance, user)?;
        check_alone(&pins, &links, &config.vips).inspect_err(|_| pins.remove_empty())?;
        let sizes = [(LEASES, config.leases), (HELD, config.ring_bytes)];
        let plan = LoadPlan { object: &OBJECT.0, pinned: &PINNED, sizes: &sizes, beside: None };
        let mut loaded = load(&plan, Some(&pins))?;
        let guard = Self {
            vips: loaded.take_map(VIPS)?,
            leases: loaded.take_map(LEASES)?,
            counts: loaded.take_map(COUNTS)?,
            inbound: loaded.take_program("plimsoll_in")?,
            outbound: loaded.take_program("plimsoll_out")?,
            receive: loaded.take_program("plimsoll_receive")?,
            emit: loaded.take_program("plimsoll_emit")?,
            ifindex: link.index,
            own_mac,
            places: guard_places(&config.instance, link.index),
            pins,
        };
        let ring = HeldRing::new(loaded.take_map(HELD)?)?;
        guard.set_vips(&config.vips)?;
        // Attach the outbound program first: a packet that is let in may be answered at once.
        guard.places[1].attach(guard.outbound.as_fd())?;
        guard.places[0].attach(guard.inbound.as_fd())?;
        detach_leftovers(&config.instance, &links, &guard.places, guard.inbound.as_fd())?;
        guard.pins.keep_only(&PINNED);
        guard.pins.remove_other_versions();
        Ok((guard, ring))
    }

    /// Guards `vips` and no others: for virtual addresses that change at run time.
    ///
    /// # Errors
    /// Too many, one that is unspecified, or the kernel's.
    pub fn set_vips(&self, vips: &[SocketAddr]) -> Result<(), DatapathError> {
        check_vips(vips)?;
        let failed =
            |error| DatapathError::of_bpf("cannot set the virtual addresses", BPF_CAPABILITIES, &error);
        let mut keys: Vec<_> =
            vips.iter().flat_map(|vip| [vip.port(), 0].map(|port| layout::vip_key(vip.ip(), port))).collect();
        keys.sort_unstable();
        keys.dedup();
        let old: Vec<Vec<u8>> = self.vips.keys().take(2 * MAX_VIPS).collect();
        for gone in old.iter().filter(|old| !keys.iter().any(|key| key == old.as_slice())) {
            self.vips.delete(gone).map_err(failed)?;
        }
        for key in &keys {
            self.vips.update(key, &1_u32.to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
        }
        Ok(())
    }

    /// Lets packets of `flow` out until `until_ns` (see [`crate::now_ns`]). Replaces an existing lease.
    ///
    /// # Errors
    /// [`DatapathError::Full`], or the kernel's.
    pub fn lease(&self, flow: &Flow, until_ns: u64) -> Result<(), DatapathError> {
        self.enter(flow, until_ns, MapFlags::ANY).map_err(|error| match error.kind() {
            ErrorKind::TooBig => {
                DatapathError::Full { what: "the table of leases", capacity: self.leases.max_entries() }
            }
            _ => DatapathError::of_bpf("cannot enter a lease", BPF_CAPABILITIES, &error),
        })
    }

    /// Makes the lease of `flow` endless. False when there is none.
    ///
    /// # Errors
    /// The kernel's.
    pub fn confirm(&self, flow: &Flow) -> Result<bool, DatapathError> {
        match self.enter(flow, u64::MAX, MapFlags::EXIST) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(DatapathError::of_bpf("cannot confirm a lease", BPF_CAPABILITIES, &error)),
        }
    }

    fn enter(&self, flow: &Flow, until_ns: u64, flags: MapFlags) -> libbpf_rs::Result<()> {
        let lease = LeaseEntry { until_ns, last_sent_ns: now_ns() };
        self.leases.update(&flow.key(), &lease.to_bytes(), flags)
    }

    /// Lets no more packets of `flow` out. False when there was no lease.
    ///
    /// The kernel sends on a connection for some time after its socket is closed: queued data, and FINs. So
    /// release a connection that was given back at once, but a closed one only when nothing has been sent for
    /// a minute, see [`Guard::for_each_lease`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn release(&self, flow: &Flow) -> Result<bool, DatapathError> {
        flow_table::remove(&self.leases, flow, "cannot release a lease")
    }

    /// The lease of a flow.
    ///
    /// # Errors
    /// The kernel's.
    pub fn get(&self, flow: &Flow) -> Result<Option<LeaseEntry>, DatapathError> {
        let mut bytes = [0; LEASE_BYTES];
        let found = self
            .leases
            .lookup_into(&flow.key(), &mut bytes, MapFlags::ANY)
            .map_err(|error| DatapathError::of_bpf("cannot look a lease up", BPF_CAPABILITIES, &error))?;
        Ok(found.then(|| LeaseEntry::from_bytes(&bytes)))
    }

    /// Calls `visit` for each lease, reading some thousand per system call. Leases that come or go meanwhile
    /// may be left out.
    ///
    /// # Errors
    /// The kernel's.
    pub fn for_each_lease(&self, mut visit: impl FnMut(Flow, LeaseEntry)) -> Result<(), DatapathError> {
        let visit = |key: &[u8], value: &[u8]| {
            if let Some(flow) = flow_at(key, 0) {
                visit(flow, LeaseEntry::from_bytes(value));
            }
        };
        batch::for_each(&self.leases, visit)
            .map_err(|error| DatapathError::of("cannot list the leases", BPF_CAPABILITIES, error))
    }

    /// Injects a held packet into the stack as if its interface had just received it. It passes the guard
    /// again, which holds it again without a socket, so inject only once the flow's socket exists.
    ///
    /// # Errors
    /// [`DatapathError::Invalid`] for a packet whose checksum is wrong, and the kernel's.
    pub fn inject(&self, packet: &HeldPacket) -> Result<(), DatapathError> {
        let frame = frame::with_checksum(&packet.frame)?;
        inject::receive(self.receive.as_fd(), packet.ifindex, &frame)
    }

    /// Sends a held packet out of the guard's interface to `to_mac`, that of the front-end.
    ///
    /// # Errors
    /// [`DatapathError::Invalid`] for a packet whose checksum is wrong, and the kernel's.
    pub fn emit(&self, packet: &HeldPacket, to_mac: Mac) -> Result<(), DatapathError> {
        let mut frame = frame::with_checksum(&packet.frame)?;
        frame::set_macs(&mut frame, to_mac, self.own_mac);
        inject::send(self.emit.as_fd(), self.ifindex, &frame)
    }

    /// The programs' counters.
    ///
    /// # Errors
    /// The kernel's.
    pub fn counters(&self) -> Result<GuardCounters, DatapathError> {
        GuardCounters::read(&self.counts)
    }

    /// Runs the inbound program on `frame`, `repeat` times, as if it had arrived for this host. Packets without a socket
    /// are held, as they would be. For tests and measurements.
    ///
    /// # Errors
    /// The kernel's.
    pub fn try_inbound(&self, frame: &[u8], repeat: u32) -> Result<ProgramTrial, DatapathError> {
        try_frame(self.inbound.as_fd(), frame, repeat)
    }

    /// Runs the outbound program on `frame`, `repeat` times; nothing is sent. For tests and measurements.
    ///
    /// # Errors
    /// The kernel's.
    pub fn try_outbound(&self, frame: &[u8], repeat: u32) -> Result<ProgramTrial, DatapathError> {
        try_frame(self.outbound.as_fd(), frame, repeat)
    }

    /// Forgets all leases and leaves nothing behind in the kernel; a clsact qdisc stays that others have made or use. For an
    /// end that is intended, when no connection is left: without the guard the kernel resets those that have no socket.
    ///
    /// # Errors
    /// The kernel's. What could be removed is removed.
    pub fn clear_and_detach(self) -> Result<(), DatapathError> {
        let result = self.places[0].detach(self.inbound.as_fd());
        let result = result.and(self.places[1].detach(self.outbound.as_fd()));
        self.pins.remove();
        result
    }
}

/// Loads the programs and attaches them to interface `ifindex` for good, to check that the system allows it.
pub(crate) fn try_out(ifindex: u32) -> Result<(), DatapathError> {
    let mut loaded = load(&LoadPlan { object: &OBJECT.0, pinned: &[], sizes: &[], beside: None }, None)?;
    let [arrival, departure] = guard_places("check", ifindex);
    departure.attach(loaded.take_program("plimsoll_out")?.as_fd())?;
    arrival.attach(loaded.take_program("plimsoll_in")?.as_fd())
}

/// Loads the programs and attaches them nowhere, to check that this process may.
pub(crate) fn try_load() -> Result<(), DatapathError> {
    load(&LoadPlan { object: &OBJECT.0, pinned: &[], sizes: &[], beside: None }, None).map(drop)
}

fn check(config: &GuardConfig) -> Result<(), DatapathError> {
    if config.leases == 0 {
        return Err(DatapathError::Invalid("a guard needs room for 1 lease at least".to_owned()));
    }
    if !config.ring_bytes.is_power_of_two() || !RING_BYTES.contains(&config.ring_bytes) {
        return Err(DatapathError::Invalid(format!(
            "the ring of held packets cannot have {} bytes: a power of two from {} to {}",
            config.ring_bytes,
            RING_BYTES.start(),
            RING_BYTES.end()
        )));
    }
    check_vips(&config.vips)
}

/// Refuses an agent beside a guard with the same virtual address, which would drop what the agent lets out; the first to end would
/// remove the address from both. The remains of a killed guard do the same harm. Packet routers drop nothing that they do not know, and do
/// not pin their addresses, by which they could be found.
pub(crate) fn check_alone(
    pins: &Pins,
    links: &[NetworkInterface],
    vips: &[SocketAddr],
) -> Result<(), DatapathError> {
    for other in pins.others() {
        let Ok(theirs) = MapHandle::from_pinned_path(other.path(VIPS)) else { continue };
        let is_theirs = |vip: &&SocketAddr| {
            theirs.lookup(&layout::vip_key(vip.ip(), 0), MapFlags::ANY).is_ok_and(|found| found.is_some())
        };
        let Some(shared) = vips.iter().find(is_theirs) else { continue };
        // An instance without an interface here is in another network namespace and does no harm.
        let is_there = |link: &&NetworkInterface| {
            guard_places(&other.instance, link.index).iter().any(FilterPlace::is_ours)
        };
        let Some(link) = links.iter().find(is_there) else { continue };
        let remedy = if other.is_alive() {
            "stop that one, or have one agent serve all that clients ask for at this address".to_owned()
        } else {
            format!(
                "its process has not ended in good order; start the agent with the name {}, which takes over \
                     what is left",
                other.instance
            )
        };
        let (address, interface, instance) = (shared.ip(), link.name.clone(), other.instance);
        return Err(DatapathError::Taken { address, instance, interface, remedy });
    }
    Ok(())
}

fn check_vips(vips: &[SocketAddr]) -> Result<(), DatapathError> {
    if vips.len() > MAX_VIPS {
        return Err(DatapathError::Invalid(format!("{} virtual addresses: {MAX_VIPS} at most", vips.len())));
    }
    match vips.iter().find(|vip| vip.ip().to_canonical().is_unspecified() || vip.port() == 0) {
        Some(vip) => Err(DatapathError::Invalid(format!(
            "{vip} is no virtual address: name the address and the port that clients connect to"
        ))),
        None => Ok(()),
    }
}
