//! Integration tests of the origin, over real sockets on loopback.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod cache;
mod client;
mod emulated;
mod limits;
mod paths;
mod semantics;
mod synthetic;
