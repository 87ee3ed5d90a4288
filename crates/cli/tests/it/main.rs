//! Integration tests of the command.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod advise;
mod agent_load;
mod check;
mod classify;
mod cloning;
mod common;
mod completions;
mod demo;
mod handoff;
mod hardware;
mod json;
mod lab;
mod live;
mod measure;
mod nginx;
mod origin;
mod out;
mod readme;
mod record;
mod replay;
mod reproduce;
mod rights;
mod simulate;
mod simulate_load_information;
mod simulate_said;
mod trace;
mod units;
