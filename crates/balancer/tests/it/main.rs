//! Tests of the front-end with real sockets: what arrives at the back-end, and what the client sees.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

/// As the `plimsoll` command has it: what connections hold is measured here.
#[global_allocator]
static ALLOCATOR: plimsoll_datapath::ProgramAllocator = plimsoll_datapath::ProgramAllocator;

mod admin;
mod admission;
mod bodies;
mod broken;
mod chunked_uploads;
mod closing_soon;
mod common;
mod compression;
mod connections;
mod doubt;
mod ejection;
mod failures;
mod few_places;
mod fields;
mod http2;
mod mutations;
mod odd_responses;
mod proxy_protocol;
mod requests;
mod resources;
mod responses;
mod routes;
mod slow_clients;
mod sticky;
mod stopping;
mod tls;
mod told_hits;
mod unix_sockets;
