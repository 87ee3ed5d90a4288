//! The end of switches' tunnels at a back-end: packets that come in one are taken out of it, and go on up as if they had come by
//! themselves.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use plimsoll_wire::ipv6_mapped;

use crate::attach::{AttachPoint, FilterPlace};
use crate::counters;
use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::loader::{Aligned, LoadPlan, Loaded, load};
use crate::netlink;

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/tunnel_end.bpf.o")));

const PROGRAM: &str = "plimsoll_dec";
const SOURCES: &str = "tunnel_sources";
const COUNTS: &str = "tunnel_counts";
/// Priority of the filter: before those of ours that look into packets.
const PRIORITY: u32 = 70;
/// Most switches that send to a back-end.
const MOST_SOURCES: usize = 256;

/// What the end of tunnels has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TunnelCounters {
    /// Packets taken out of a tunnel; merged ones count once.
    pub taken: u64,
    /// Packets in a tunnel from somebody else than a switch. They are left as they are.
    pub unknown: u64,
    /// Packets that could not be taken out. They are dropped.
    pub failed: u64,
}

/// The program at an interface. Dropping it leaves it there, so that connections go on.
#[derive(Debug)]
pub struct TunnelEnd {
    place: FilterPlace,
    program: OwnedFd,
    counts: MapHandle,
}

impl TunnelEnd {
    /// Takes packets out of tunnels from now on that `switches` send to `interface`, in place of an earlier process of this
    /// `instance`.
    ///
    /// # Errors
    /// No privileges, no such interface or none of Ethernet, more than 256 switches.
    pub fn attach(instance: &str, interface: &str, switches: &[IpAddr]) -> Result<Self, DatapathError> {
        if switches.len() > MOST_SOURCES {
            return Err(DatapathError::Full { what: "the list of switches", capacity: MOST_SOURCES as u32 });
        }
        let place = place(instance, interface)?;
        let mut loaded = load_programs()?;
        let sources = loaded.take_map(SOURCES)?;
        for switch in switches {
            let key = ipv6_mapped(switch.to_canonical()).octets();
            sources
                .update(&key, &1_u32.to_ne_bytes(), MapFlags::ANY)
                .map_err(|error| DatapathError::of_bpf("cannot note a switch", BPF_CAPABILITIES, &error))?;
        }
        let program = loaded.take_program(PROGRAM)?;
        place.attach(program.as_fd())?;
        Ok(Self { place, program, counts: loaded.take_map(COUNTS)? })
    }

    /// What was counted since it was attached.
    ///
    /// # Errors
    /// The kernel's.
    pub fn counters(&self) -> Result<TunnelCounters, DatapathError> {
        let [taken, unknown, failed] = counters::read(&self.counts)?;
        Ok(TunnelCounters { taken, unknown, failed })
    }

    /// Takes the program away.
    ///
    /// # Errors
    /// The kernel's.
    pub fn detach(&self) -> Result<(), DatapathError> {
        self.place.detach(self.program.as_fd())
    }

    /// Takes away what a process of this `instance` has left at `interface`.
    ///
    /// # Errors
    /// No privileges, or no such interface or none of Ethernet.
    pub fn remove(instance: &str, interface: &str) -> Result<(), DatapathError> {
        let program = load_programs()?.take_program(PROGRAM)?;
        place(instance, interface)?.detach(program.as_fd())
    }
}

fn place(instance: &str, interface: &str) -> Result<FilterPlace, DatapathError> {
    let ifindex = netlink::ethernet_index(interface)?;
    Ok(FilterPlace::new(instance, ifindex, AttachPoint::Ingress, PRIORITY))
}

fn load_programs() -> Result<Loaded, DatapathError> {
    load(&LoadPlan { object: &OBJECT.0, pinned: &[], sizes: &[], beside: None }, None)
}
