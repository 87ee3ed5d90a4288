//! Tests over real sockets on loopback.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod cluster;
mod failures;
mod load;
