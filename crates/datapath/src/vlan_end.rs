//! A machine in a VLAN whose kernel knows none: the tag is taken off what arrives at an interface, and put on what leaves.

use std::os::fd::{AsFd, OwnedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::attach::{AttachPoint, FilterPlace};
use crate::counters;
use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::loader::{Aligned, LoadPlan, Loaded, load};
use crate::netlink;
use crate::switch::FrameTag;

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/vlan_end.bpf.o")));

const OFF: &str = "plimsoll_vin";
const ON: &str = "plimsoll_vout";
const NUMBER: &str = "vlan_number";
const COUNTS: &str = "vlan_counts";
/// Priority of the filter that takes tags off: before all others of ours.
const FIRST: u32 = 60;
/// Of the one that puts them on: after all others.
const LAST: u32 = 60_000;

/// What the end of a VLAN has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VlanCounters {
    /// Frames whose tag was taken off; merged ones count once.
    pub taken: u64,
    /// Frames that got the tag; merged ones count once.
    pub put: u64,
    /// Frames that arrived with another tag or none. They are left as they are.
    pub others: u64,
    /// Frames whose tag could not be changed. They are dropped.
    pub failed: u64,
}

/// The programs at an interface. Dropping it leaves them there, so that connections go on.
#[derive(Debug)]
pub struct VlanEnd {
    counts: MapHandle,
}

impl VlanEnd {
    /// Puts `interface` into the VLAN of this number, in place of an earlier process of this `instance`.
    ///
    /// # Errors
    /// No privileges, no such interface or none of Ethernet, or a number that is not from 1 to 4094.
    pub fn attach(instance: &str, interface: &str, number: u16) -> Result<Self, DatapathError> {
        if !(1..=FrameTag::MOST).contains(&number) {
            let text = format!("{number} is no VLAN: they have numbers from 1 to {}", FrameTag::MOST);
            return Err(DatapathError::Invalid(text));
        }
        let [arriving, leaving] = places(instance, interface)?;
        let mut loaded = load_programs()?;
        let noted = loaded.take_map(NUMBER)?.update(
            &0_u32.to_ne_bytes(),
            &u32::from(number).to_ne_bytes(),
            MapFlags::ANY,
        );
        noted.map_err(|error| DatapathError::of_bpf("cannot note the VLAN", BPF_CAPABILITIES, &error))?;
        let [off, on] = programs(&mut loaded)?;
        leaving.attach(on.as_fd())?;
        arriving.attach(off.as_fd())?;
        Ok(Self { counts: loaded.take_map(COUNTS)? })
    }

    /// What was counted since it was attached.
    ///
    /// # Errors
    /// The kernel's.
    pub fn counters(&self) -> Result<VlanCounters, DatapathError> {
        let [taken, put, others, failed] = counters::read(&self.counts)?;
        Ok(VlanCounters { taken, put, others, failed })
    }

    /// Takes away what a process of this `instance` has left at `interface`.
    ///
    /// # Errors
    /// No privileges, or no such interface or none of Ethernet.
    pub fn remove(instance: &str, interface: &str) -> Result<(), DatapathError> {
        let [off, on] = programs(&mut load_programs()?)?;
        let [arriving, leaving] = places(instance, interface)?;
        arriving.detach(off.as_fd()).and(leaving.detach(on.as_fd()))
    }
}

fn places(instance: &str, interface: &str) -> Result<[FilterPlace; 2], DatapathError> {
    let ifindex = netlink::ethernet_index(interface)?;
    let place = |point, priority| FilterPlace::new(instance, ifindex, point, priority);
    Ok([place(AttachPoint::Ingress, FIRST), place(AttachPoint::Egress, LAST)])
}

fn programs(loaded: &mut Loaded) -> Result<[OwnedFd; 2], DatapathError> {
    Ok([loaded.take_program(OFF)?, loaded.take_program(ON)?])
}

fn load_programs() -> Result<Loaded, DatapathError> {
    load(&LoadPlan { object: &OBJECT.0, pinned: &[], sizes: &[], beside: None }, None)
}
