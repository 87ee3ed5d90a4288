//! What front-ends, agents and peers exchange: the identity and state of TCP connections, messages, frames, keys. It reads
//! no clock, and does no input or output apart from the loader of keys ([`Key::load`]) and the system's random numbers
//! ([`random`]). It does not depend on eBPF; `plimsoll-datapath` takes these types to the kernel.
//!
//! - [`Flow`]: the identity of a connection; [`TcpState`]: the state that another kernel needs to continue
//!   it.
//! - [`message`]: the messages between front-end and agent.
//! - [`cloning`]: the messages of Socket Cloning between nodes.
//! - [`caching`]: the messages of cooperative caching between nodes.
//! - [`codec`]: the encoding of messages.
//! - [`session`]: mutual authentication ([`session::FrontEndHandshake`], [`session::AgentHandshake`]), and
//!   frames that no third party can forge, repeat, reorder or drop ([`session::FrameWriter`],
//!   [`session::FrameReader`]).
//! - [`ServiceKey`]: the name of a service's partition.
//! - [`MulticastInterface`]: which network interface a group is reached by.
//! - [`lease`]: the front-end's bounds on an agent's clock.
//! - [`load`]: what back-ends have to do: inquiries, announcements, the load index.
//!
//! The wire format and the states of both sides stand in `docs/mechanisms/handoff.md`.

pub mod caching;
pub mod cloning;
pub mod codec;
mod flow;
#[doc(hidden)]
pub mod fuzz;
mod key;
pub mod lease;
pub mod load;
pub mod message;
mod multicast_interface;
mod service;
pub mod session;
mod source_rates;
mod tcp_state;

pub use flow::{FLOW_KEY_BYTES, Flow, ipv6_mapped};
pub use key::{Key, KeyError, random};
pub use multicast_interface::{MulticastInterface, interfaces_text, needs_interface};
pub use service::{ServiceKey, ServiceNameError, check_service_name};
pub use source_rates::SourceRates;
pub use tcp_state::{STATE_OVERHEAD_BYTES, STATE_VERSION, StateError, TcpState, Window};
