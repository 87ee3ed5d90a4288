//! The switch between machines of a lab: real kernels and real sockets. These tests need root.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod book;
mod faults;
mod live;
#[path = "../../examples/ring_depths/own_core.rs"]
mod own_core;
mod world;
