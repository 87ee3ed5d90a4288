//! A network on one machine: clients, a front-end and back-ends, each in a network namespace of its own, joined by a
//! switch.
//!
//! Mechanisms that move packets and connections between machines need machines. A [`Lab`] gives each node what it would
//! have as one: a network stack with an interface `eth0`, `/run` and `/sys` of its own, and there a BPF file system,
//! so that what is pinned on one node is not seen on another. It needs root, `ip`, and
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
//! Namespaces live as long as a process or a socket is in them. A node is held by a small shell process that waits for
//! the end of a pipe from the lab's process. When that ends, be it by [`Lab`]'s drop, an error or `SIGKILL`, the holder
//! kills whatever runs in its node, and ends; with it go the namespace, its interfaces, mounts and pinned objects. No
//! name is ever given to a namespace and no file is written outside.

mod commands;
mod config;
mod cpus;
mod error;
mod holder;
mod lab;
mod link;
mod meter;
mod node;
mod others;
mod privileges;
mod process;
mod rules;
mod traffic;

pub use config::{LabConfig, MOST_BACKENDS, MOST_CLIENTS, Rate};
pub use cpus::CpuPlan;
pub use error::LabError;
pub use lab::Lab;
pub use link::{Conditions, Link};
pub use meter::{CpuMeter, CpuUse};
pub use node::{Entry, Node, NodeHandle, enter};
pub use others::cpu_time_of_others;
pub use privileges::check_privileges;
pub use process::{Capture, Process};
pub use traffic::{Counters, Traffic};
