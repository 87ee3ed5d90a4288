//! Kernel features beyond ordinary sockets. This is the only crate with `unsafe`.
//!
//! - [`tcp`]: moves established TCP connections from one kernel to another (`TCP_REPAIR`).
//! - [`shim`]: lets unmodified servers serve such connections.
//! - [`Forwarder`]: on the front-end, forwards packets of handed-off connections to their back-ends.
//! - [`Guard`]: on a back-end, holds packets that come before their socket, and lets nothing out without a lease.
//! - [`PacketRouter`]: on a node of Socket Cloning, sends on what the client says to a clone, and keeps the rest.
//! - [`switch::Switch`]: distributes connections at layer 4 and forwards every packet of theirs.
//! - [`tap::PacketTap`]: copies what passes at an interface, and changes nothing.
//! - [`HeldStore`]: where the agent keeps held packets until their socket is there.
//! - [`accept_queue`]: connections that wait to be accepted.
//! - [`neighbor`]: the MAC address of another machine.
//! - [`Vip`]: a virtual address on a back-end. [`AddressWatch`]: whether this machine has an address.
//! - [`ProgramAllocator`]: the memory of the program, in huge pages where that is worth it.
//! - [`privileges`]: gives away what a process does not need any more.
//! - [`system`]: checks whether a machine meets the requirements.

#![cfg(target_os = "linux")]
#![deny(clippy::undocumented_unsafe_blocks)]

mod accept_queue;
mod address_watch;
mod agent_places;
mod allocator;
mod attach;
mod batch;
mod clock;
mod counters;
mod error;
mod filters;
mod flow_table;
mod forwarder;
mod frame;
#[doc(hidden)]
pub mod fuzz;
mod guard;
mod held;
mod inject;
mod layout;
mod loader;
mod neighbor;
mod netlink;
mod pin_home;
mod pins;
pub mod privileges;
mod ring;
mod router;
mod run;
pub mod shim;
pub mod switch;
mod sysctl;
pub mod system;
pub mod tap;
pub mod tcp;
mod trial;
mod tunnel_end;
mod vip;
mod vlan_end;

pub use accept_queue::accept_queue;
pub use address_watch::AddressWatch;
pub use allocator::{ProgramAllocator, refuse_unasked_huge_pages};
pub use clock::now_ns;
pub use counters::{ForwarderCounters, GuardCounters, RouterCounters};
pub use error::DatapathError;
pub use forwarder::{Forwarder, ForwarderConfig};
pub use guard::{Guard, GuardConfig};
pub use held::{HeldLimits, HeldStore};
pub use layout::{FlowEntry, LeaseEntry, Mac, NextHop};
pub use neighbor::{Way, neighbor, source_to, way};
pub use ring::{FromRecord, HeldPacket, HeldRing};
pub use router::{AnswerEnd, CloneEntry, PacketRouter, PacketRouterConfig, RouterEvent};
pub use trial::{PacketVerdict, ProgramTrial};
pub use tunnel_end::{TunnelCounters, TunnelEnd};
pub use vip::Vip;
pub use vlan_end::{VlanCounters, VlanEnd};

// The types of `plimsoll-wire` in the signatures here.
pub use plimsoll_wire::{FLOW_KEY_BYTES, Flow};
