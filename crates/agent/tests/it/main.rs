//! Integration tests of the agent.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod caching;
mod clone;
mod handoff;
mod links;
mod load;
