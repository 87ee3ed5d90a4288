//! Integration tests of the lab, on real namespaces. They need root.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod cleanup;
mod common;
mod emulated;
mod faults;
mod network;
mod nodes;
