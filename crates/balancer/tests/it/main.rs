//! Tests of the front-end with real sockets: what arrives at the back-end, and what the client sees.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

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
