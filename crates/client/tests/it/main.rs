//! The client library against servers in this process.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod budget;
mod calls;
mod choices;
mod cluster;
mod directory;
mod tower_contract;
mod worker_pool;
