//! Nodes that meet by real sockets and a real etcd.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;
mod etcd;
mod forgery;
mod multicast;
