//! The handoff protocol between front-end and agents: messages, frames, authentication. It reads no clock, and does no
//! input or output apart from the loader of keys ([`Key::load`]) and the system's random numbers ([`random`]).
//!
//! - [`message`]: what the two tell one another.
//! - [`codec`]: messages as bytes.
//! - [`session`]: who is at the other end ([`session::FrontEndHandshake`], [`session::AgentHandshake`]), and frames that
//!   nobody else can make, repeat, reorder or leave out ([`session::FrameWriter`], [`session::FrameReader`]).
//! - [`lease`]: what the front-end knows of an agent's clock.
//!
//! The wire format and the states of both sides stand in `docs/mechanisms/handoff.md`.

pub mod codec;
mod key;
pub mod lease;
pub mod message;
pub mod session;

pub use key::{Key, KeyError, random};
