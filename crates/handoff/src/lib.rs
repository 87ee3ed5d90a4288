//! The handoff protocol between front-end and agents: messages, frames, authentication. It does no input or output and
//! reads no clock.

pub mod message;
