//! The layer-4 switch: a packet program at the interface where clients' packets arrive sends each of them on to a back-end on
//! the same Ethernet segment, by MAC addresses alone. Back-ends answer past the switch.
//!
//! The first packet of a connection takes the next of the choices that user space has put into the ring of its CPU
//! ([`ChoiceRings`]); where there is none, a consistent hash decides ([`Switch::set_table`]). What begins and ends comes back by
//! [`ConnEvents`], the first bytes of what clients send by [`Samples`]. Program and tables stay when the process ends, however it
//! ends, and the next process of that name takes them over.

mod backend_entry;
mod choices;
mod counters;
mod events;
mod layout;
mod places;
mod tables;
mod taken_services;
mod tunnel;
mod xdp;

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::layout::NextHop;
use crate::loader::{Aligned, LoadPlan, MovedMap, load};
use crate::netlink::{LOOPBACK, NetworkInterface};
use crate::pins::Pins;
use crate::privileges::RunUser;
use crate::trial::{ProgramTrial, forward_frames, try_frame};

pub use backend_entry::FrameTag;
pub use choices::ChoiceRings;
pub use counters::{BackendCounters, SwitchCounters};
pub use events::{ConnEvents, Samples};
pub use layout::{
    ConnChange, ConnEntry, ConnEvent, ConnHolder, ConnTable, PacketSample, PreparedChoice, SwitchConn,
    Transport,
};
pub use places::SwitchHook;
use places::SwitchPlaces;
pub use taken_services::{SwitchProcess, TakenService, taken_services};
pub use tunnel::{Tunnel, TunnelKind};

static TC_OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/switch_tc.bpf.o")));
static XDP_OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/switch_xdp.bpf.o")));

const SERVICES: &str = "switch_services";
const BACKENDS: &str = "switch_backends";
const TUNNELS: &str = "switch_tunnels";
const TABLE: &str = "switch_table";
const CHOICES: &str = "switch_choices";
const CONNS: &str = "switch_conns";
const OPENING: &str = "switch_opening";
const HASHED: &str = "switch_hashed";
const SYNS: &str = "switch_syns";
const FRAGMENTS: &str = "switch_fragments";
const EVENTS: &str = "switch_events";
const SAMPLES: &str = "switch_samples";
const SETTINGS: &str = "switch_settings";
const INTERFACES: &str = "switch_interfaces";
const COUNTS: &str = "switch_counts";
const SHARES: &str = "switch_shares";
const TC_PROGRAM: &str = "plimsoll_swt";
const XDP_PROGRAM: &str = "plimsoll_swx";
/// All that outlives the process. Events are among them: those of an earlier process that nobody has read are no news, and the
/// next process reads the tables first.
const PINNED: [&str; 15] = [
    SERVICES, BACKENDS, TUNNELS, TABLE, CHOICES, CONNS, OPENING, HASHED, SYNS, FRAGMENTS, EVENTS, SAMPLES,
    SETTINGS, COUNTS, SHARES,
];

/// Most back-ends of a switch.
pub const MOST_BACKENDS: usize = 4096;
/// Most addresses with a port that it distributes connections to.
pub const MOST_SERVICES: usize = 256;
/// Slots of the table of the consistent hash; a prime number.
pub const TABLE_SLOTS: usize = 65_537;
/// Most choices that a CPU can have in its ring.
pub const MOST_CHOICES: usize = choices::MOST_CHOICES;
/// Most bytes of a packet that are sampled.
pub const MOST_SAMPLE_BYTES: u32 = layout::SAMPLE_BYTES as u32;

/// The configuration of a switch.
#[derive(Debug, Clone)]
pub struct SwitchConfig {
    /// Its name, 1 to 64 letters, digits, `-` and `_`, which no other switch, forwarder or guard of this machine has.
    pub instance: String,
    /// Interfaces at which packets of clients arrive.
    pub interfaces: Vec<String>,
    /// How the program is attached to them.
    pub hook: SwitchHook,
    /// Most established connections. Each takes some 200 bytes of kernel memory, allocated at start.
    pub connections: u32,
    /// Most connections of which only first packets have come.
    pub opening: u32,
    /// Bytes of each packet with data that are sampled; 0 for none.
    pub sample_bytes: u32,
}

/// The packet program at the interfaces, and its maps. Dropping it leaves everything as it is.
#[derive(Debug)]
pub struct Switch {
    pins: Pins,
    services: MapHandle,
    backends: MapHandle,
    tunnels: MapHandle,
    table: MapHandle,
    choices: MapHandle,
    conns: MapHandle,
    opening: MapHandle,
    hashed: MapHandle,
    events: MapHandle,
    samples: MapHandle,
    settings: MapHandle,
    counts: MapHandle,
    shares: MapHandle,
    interfaces: MapHandle,
    /// By either hook; what differs is how it is called.
    tc: OwnedFd,
    xdp: OwnedFd,
    places: SwitchPlaces,
}

fn failed(what: &str) -> impl Fn(libbpf_rs::Error) -> DatapathError + '_ {
    move |error| DatapathError::of_bpf(what, BPF_CAPABILITIES, &error)
}

impl Switch {
    /// Loads the program with the maps that an earlier process left, and attaches it in place of that process's. `user` is the
    /// one that this process is to become, who can then take over and remove what is pinned.
    ///
    /// # Errors
    /// No privileges, no such interface, an instance of that name that is alive ([`DatapathError::Busy`]), or a kernel that is
    /// too old.
    pub fn open_for(config: &SwitchConfig, user: Option<&RunUser>) -> Result<Self, DatapathError> {
        if config.connections == 0 || config.opening == 0 {
            return Err(DatapathError::Invalid("a switch needs room for 1 connection at least".to_owned()));
        }
        let pins = Pins::open(&config.instance, user)?;
        let cpus = libbpf_rs::num_possible_cpus()
            .map_err(|error| DatapathError::of_bpf("cannot count the CPUs", BPF_CAPABILITIES, &error))?;
        let cpus = u32::try_from(cpus).unwrap_or(1);
        let sizes = [
            (CONNS, config.connections),
            (HASHED, config.connections),
            (OPENING, config.opening),
            (CHOICES, cpus),
        ];
        let plan = LoadPlan { object: &TC_OBJECT.0, pinned: &PINNED, sizes: &sizes, beside: None };
        let mut loaded = load(&plan, Some(&pins))?;
        let plan = LoadPlan { object: &XDP_OBJECT.0, beside: Some(&loaded), ..plan };
        let mut of_xdp = load(&plan, Some(&pins))?;
        let moved = loaded.take_moved();
        let mut switch = Self {
            services: loaded.take_map(SERVICES)?,
            backends: loaded.take_map(BACKENDS)?,
            tunnels: loaded.take_map(TUNNELS)?,
            table: loaded.take_map(TABLE)?,
            choices: loaded.take_map(CHOICES)?,
            conns: loaded.take_map(CONNS)?,
            opening: loaded.take_map(OPENING)?,
            hashed: loaded.take_map(HASHED)?,
            events: loaded.take_map(EVENTS)?,
            samples: loaded.take_map(SAMPLES)?,
            settings: loaded.take_map(SETTINGS)?,
            counts: loaded.take_map(COUNTS)?,
            shares: loaded.take_map(SHARES)?,
            interfaces: of_xdp.take_map(INTERFACES)?,
            tc: loaded.take_program(TC_PROGRAM)?,
            xdp: of_xdp.take_program(XDP_PROGRAM)?,
            places: SwitchPlaces::default(),
            pins,
        };
        switch.set_sample_bytes(config.sample_bytes)?;
        let links = SwitchPlaces::links(&config.interfaces)?;
        switch.note_interfaces(&links)?;
        let programs = (switch.tc.as_fd(), switch.xdp.as_fd(), id_of(&switch.services)?);
        switch.places = SwitchPlaces::attach(switch.pins.instance(), &links, config.hook, programs)?;
        moved.iter().try_for_each(MovedMap::catch_up)?;
        switch.pins.remove_other_versions();
        Ok(switch)
    }

    /// Notes where packets arrive, and last the interface at which programs are tried out.
    fn note_interfaces(&self, links: &[NetworkInterface]) -> Result<(), DatapathError> {
        let arrivals = links.iter().map(|link| (link.index, link.mac.unwrap_or_default(), link.is_virtual));
        let entry = layout::interfaces(arrivals.chain([(LOOPBACK, [0; 6], false)]));
        let entry = entry.ok_or_else(|| {
            let text = format!("a switch has at most {} interfaces", layout::MOST_INTERFACES - 1);
            DatapathError::Invalid(text)
        })?;
        let noted = self.interfaces.update(&0_u32.to_ne_bytes(), &entry, MapFlags::ANY);
        noted.map_err(failed("cannot note the interfaces"))
    }

    /// How the program is attached to each interface, for people: `eth0 by tc`.
    #[must_use]
    pub fn attached(&self) -> Vec<String> {
        self.places.describe()
    }

    /// Distributes connections to these addresses, and to no others.
    ///
    /// # Errors
    /// More than [`MOST_SERVICES`], or the kernel's.
    pub fn set_services(&self, services: &[(SocketAddr, Transport)]) -> Result<(), DatapathError> {
        if services.len() > MOST_SERVICES {
            return Err(DatapathError::Full {
                what: "the table of services",
                capacity: MOST_SERVICES as u32,
            });
        }
        let what = "cannot set the services";
        let wanted: Vec<_> =
            services.iter().map(|&(address, transport)| layout::service(address, transport)).collect();
        let old: Vec<Vec<u8>> = self.services.keys().collect();
        for key in old.iter().filter(|key| !wanted.iter().any(|wanted| wanted[..] == key[..])) {
            self.services.delete(key).map_err(failed(what))?;
        }
        for key in &wanted {
            self.services.update(key, &0_u32.to_ne_bytes(), MapFlags::ANY).map_err(failed(what))?;
        }
        Ok(())
    }

    /// From now on packets for `holder` go to `next_hop`; without one, clients of its connections are reset by this machine's
    /// kernel once they send something. `key`, which is not 0, is what a later process knows the back-end by.
    ///
    /// # Errors
    /// [`DatapathError::Invalid`] for an index that is too large or a MAC address that is none of a machine.
    pub fn set_backend(
        &self,
        holder: ConnHolder,
        key: u64,
        next_hop: Option<&NextHop>,
    ) -> Result<(), DatapathError> {
        self.set_tagged_backend(holder, key, next_hop, FrameTag::Kept)
    }

    /// The same, and its frames have this VLAN tag. With [`FrameTag::Kept`] packets in tunnels have none, as they leave the segment.
    ///
    /// # Errors
    /// As of [`Switch::set_backend`], and [`DatapathError::Invalid`] for a VLAN that cannot be.
    pub fn set_tagged_backend(
        &self,
        holder: ConnHolder,
        key: u64,
        next_hop: Option<&NextHop>,
        tag: FrameTag,
    ) -> Result<(), DatapathError> {
        if let FrameTag::Vlan(number) = tag
            && !(1..=FrameTag::MOST).contains(&number)
        {
            let text = format!("{number} is no VLAN: they have numbers from 1 to {}", FrameTag::MOST);
            return Err(DatapathError::Invalid(text));
        }
        if usize::from(holder.backend) >= MOST_BACKENDS {
            let text = format!("a switch has at most {MOST_BACKENDS} back-ends at a time");
            return Err(DatapathError::Invalid(text));
        }
        next_hop.map_or(Ok(()), NextHop::check)?;
        let index = u32::from(holder.backend).to_ne_bytes();
        let tunnel = self.tunnels.lookup(&index, MapFlags::ANY).map_err(failed("cannot read a tunnel"))?;
        let by_tunnel = tunnel.is_some_and(|bytes| bytes.iter().any(|&byte| byte != 0));
        let entry = backend_entry::backend(holder, key, next_hop, (tag, by_tunnel));
        self.backends.update(&index, &entry, MapFlags::ANY).map_err(failed("cannot set a back-end"))
    }

    /// Who has an index, or had it last, with its key; those of earlier processes, too.
    ///
    /// # Errors
    /// The kernel's.
    pub fn known_backends(&self) -> Result<Vec<(ConnHolder, u64)>, DatapathError> {
        let mut known = Vec::new();
        for index in 0..MOST_BACKENDS as u32 {
            let found = self.backends.lookup(&index.to_ne_bytes(), MapFlags::ANY);
            let found = found.map_err(failed("cannot read the back-ends"))?;
            known.extend(found.and_then(|bytes| backend_entry::backend_known(&bytes)));
        }
        Ok(known)
    }

    /// Sets the table of the consistent hash: for each of the [`TABLE_SLOTS`] slots the index of a back-end, or `None`.
    ///
    /// # Errors
    /// The kernel's; [`DatapathError::Invalid`] for a table of another length.
    pub fn set_table(&self, table: &[Option<u16>]) -> Result<(), DatapathError> {
        if table.len() != TABLE_SLOTS {
            let text = format!("the table has {} slots, and is to have {TABLE_SLOTS}", table.len());
            return Err(DatapathError::Invalid(text));
        }
        let keys: Vec<u8> = (0..TABLE_SLOTS as u32).flat_map(u32::to_ne_bytes).collect();
        let word = |slot: &Option<u16>| slot.map_or(0, |index| u32::from(index) + 1).to_ne_bytes();
        let values: Vec<u8> = table.iter().flat_map(word).collect();
        let updated =
            self.table.update_batch(&keys, &values, TABLE_SLOTS as u32, MapFlags::ANY, MapFlags::ANY);
        updated.map_err(failed("cannot set the table of the hash"))
    }

    /// Samples this many bytes of each packet with data; 0 for none.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_sample_bytes(&self, bytes: u32) -> Result<(), DatapathError> {
        let mut settings = [0; 8];
        settings[..4].copy_from_slice(&bytes.min(MOST_SAMPLE_BYTES).to_ne_bytes());
        let updated = self.settings.update(&0_u32.to_ne_bytes(), &settings, MapFlags::ANY);
        updated.map_err(failed("cannot set what is sampled"))
    }

    /// The rings of choices. There is one user of them at a time.
    ///
    /// # Errors
    /// The kernel's.
    pub fn choices(&self) -> Result<ChoiceRings, DatapathError> {
        ChoiceRings::new(duplicate(&self.choices)?)
    }

    /// The reader of events, for the calling thread. There is one at a time.
    ///
    /// # Errors
    /// The kernel's.
    pub fn events(&self) -> Result<ConnEvents, DatapathError> {
        ConnEvents::new(&self.events)
    }

    /// The reader of samples, for the calling thread. There is one at a time.
    ///
    /// # Errors
    /// The kernel's.
    pub fn samples(&self) -> Result<Samples, DatapathError> {
        Samples::new(&self.samples)
    }

    /// The program's counters.
    ///
    /// # Errors
    /// The kernel's.
    pub fn counters(&self) -> Result<SwitchCounters, DatapathError> {
        SwitchCounters::read(&self.counts, 0)
    }

    /// What was counted of the back-ends that have had this index.
    ///
    /// # Errors
    /// The kernel's.
    pub fn backend_counters(&self, backend: u16) -> Result<BackendCounters, DatapathError> {
        BackendCounters::read(&self.shares, backend.into())
    }

    /// Runs the program on `frame`, `repeat` times, as if it had arrived for this host, by XDP or by tc; nothing is sent. Maps
    /// change as they would. For tests and measurements.
    ///
    /// # Errors
    /// The kernel's.
    pub fn try_frame(
        &self,
        hook: SwitchHook,
        frame: &[u8],
        repeat: u32,
    ) -> Result<ProgramTrial, DatapathError> {
        match hook {
            SwitchHook::Xdp => try_frame(self.xdp.as_fd(), frame, repeat).map(ProgramTrial::of_xdp),
            SwitchHook::Auto | SwitchHook::Tc => try_frame(self.tc.as_fd(), frame, repeat),
        }
    }

    /// Sends `frame` through the program of XDP `count` times as if it had arrived at interface `ifindex`, and on to the back-end. The
    /// mean time of one, in which the kernel at the other end of a virtual cable takes it in, too. The kernel uses the frames' memory
    /// again without writing them anew: the back-end's MAC address has to be that of the interface. For measurements.
    ///
    /// # Errors
    /// The kernel's: the interface must have an XDP program in its driver.
    pub fn forward_frames(&self, ifindex: u32, frame: &[u8], count: u32) -> Result<Duration, DatapathError> {
        forward_frames(self.xdp.as_fd(), ifindex, frame, count)
    }

    /// Forgets all connections and leaves nothing behind in the kernel. For an end that is intended.
    ///
    /// # Errors
    /// The kernel's. What could be removed is removed.
    pub fn clear_and_detach(&self) -> Result<(), DatapathError> {
        let result = self.places.detach(self.tc.as_fd(), self.xdp.as_fd());
        self.pins.remove();
        result
    }
}

/// The kernel's number of a map.
fn id_of(map: &MapHandle) -> Result<u32, DatapathError> {
    let info = map.info().map_err(failed("cannot look at a map"))?;
    Ok(info.info.id)
}

fn duplicate(map: &MapHandle) -> Result<MapHandle, DatapathError> {
    MapHandle::try_from(map).map_err(failed("cannot keep a map"))
}
