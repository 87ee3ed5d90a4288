//! The data path over the real kernel, in network namespaces. These tests need root.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod extended;
mod flows;
mod forwarder;
mod guard;
mod hold;
mod live;
mod network;
mod packet;
mod router;
mod shim;
mod shim_closes;
mod shim_limit;
mod shim_names;
mod shim_node;
mod shim_server;
mod switch;
mod switch_beginnings;
mod switch_model;
mod switch_mutants;
mod switch_tunnel;
mod switch_vlan;
mod switch_ways;
mod tcp;
mod tcp_clone;
mod tcp_cost;
mod tcp_transfer;
mod tcp_world;
