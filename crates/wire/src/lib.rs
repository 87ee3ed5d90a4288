//! What front-ends, agents and peers exchange: the identity and state of TCP connections, messages, frames, keys. It reads
//! no clock, and does no input or output apart from the loader of keys ([`Key::load`]) and the system's random numbers
//! ([`random`]). It does not depend on eBPF; `plimsoll-datapath` takes these types to the kernel.
//!
//! - [`Flow`]: which connection; [`TcpState`]: all that another kernel needs to go on with it.
//! - [`message`]: what the two tell one another.
//! - [`codec`]: messages as bytes.
//! - [`session`]: who is at the other end ([`session::FrontEndHandshake`], [`session::AgentHandshake`]), and frames that
//!   nobody else can make, repeat, reorder or leave out ([`session::FrameWriter`], [`session::FrameReader`]).
//! - [`lease`]: what the front-end knows of an agent's clock.
//!
//! The wire format and the states of both sides stand in `docs/mechanisms/handoff.md`.

pub mod codec;
mod flow;
mod key;
pub mod lease;
pub mod message;
pub mod session;
mod tcp_state;

pub use flow::{FLOW_KEY_BYTES, Flow, ipv6_mapped};
pub use key::{Key, KeyError, random};
pub use tcp_state::{STATE_OVERHEAD_BYTES, STATE_VERSION, StateError, TcpState, Window};
