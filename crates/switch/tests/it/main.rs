//! The switch between machines of a lab: real kernels and real sockets. These tests need root.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod book;
mod faults;
mod live;
mod world;
