//! A network on one machine: clients, a front-end and back-ends, each in a network namespace of its own, joined by a
//! switch.
//!
//! Mechanisms that move packets and connections between machines need several machines. A [`Lab`] gives each
//! node what a machine has: a network stack with an interface `eth0`, its own `/run` and `/sys`, and its own
//! BPF file system, so that objects pinned on one node are invisible on another. It needs root, `ip`, and
//! `nsenter` and `unshare` of util-linux 2.38 or later.
//!
//! ```no_run
//! use plimsoll_lab::{Lab, LabConfig, Node};
//!
//! # fn main() -> Result<(), plimsoll_lab::LabError> {
//! let lab = Lab::build(&LabConfig { backends: 3, ..LabConfig::default() })?;
//! let front_end = lab.node(Node::FrontEnd)?;
//! let _answering = front_end.spawn(front_end.command("plimsoll").args(["balance", "-c", "plimsoll.toml"]))?;
//! let address = lab.virtual_address();
//! let opened = lab.node(Node::Client)?.run(|| std::net::TcpStream::connect((address, 80)))?;
//! lab.link(Node::Backend(1))?.down()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Nothing stays
//!
//! Namespaces live as long as a process or a socket is in them. A small shell process holds each node and
//! waits for the end of a pipe from the lab's process. When the pipe ends, whether by [`Lab`]'s drop, an
//! error or `SIGKILL`, the holder kills everything in its node and ends; namespace, interfaces, mounts and
//! pinned objects vanish with it. Namespaces have no names, and no file is written outside.

mod cable;
mod commands;
mod conditions;
mod config;
mod cpu_limit;
mod cpus;
mod delivery;
mod emulator;
mod error;
mod holder;
mod lab;
mod link;
mod link_forwarder;
mod link_statistics;
mod meter;
mod node;
mod node_handle;
mod others;
mod privileges;
mod process;
mod rate;
mod rules;
mod splice;
mod tap;
mod traffic;

pub use conditions::{Conditions, LinkDelay};
pub use config::{LabConfig, MOST_BACKENDS, MOST_CLIENTS};
pub use cpu_limit::CpuLimit;
pub use cpus::CpuPlan;
pub use delivery::{DELIVERIES_ONE_AND_MANY, Deliverer, Delivery, KernelSetting, ungroup};
pub use error::LabError;
pub use lab::Lab;
pub use link::NodeLink;
pub use link_statistics::{DirectionStatistics, LinkStatistics, TimeQuantiles};
pub use meter::{CpuMeter, CpuUse};
pub use node::Node;
pub use node_handle::{NamespaceEntry, NodeHandle, enter};
pub use others::cpu_time_of_others;
pub use privileges::check_privileges;
pub use process::{Capture, Process};
pub use rate::Rate;
pub use traffic::{InterfaceCounters, Traffic};
