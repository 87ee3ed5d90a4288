//! A node of Socket Cloning: answers clients that connect to it, or has the node that has the document answer on the client's own
//! connection. `docs/mechanisms/clone.md` describes it.
//!
//! Each thread has connections, and a link to each other node for the clones that it asks for. `original` leads a connection from
//! request to request; `mapping` says which node answers; `cloning` has a clone made by way of a `peer_link`, waits for the end of
//! its answer (`following`), and brings the original up to there (`going_on`), or parks it (`parked`) while the next request has no place yet. `shimmed` does the same for a server behind the shim, which gets sockets. `made` is
//! the other side: it makes clones that come by a `server_link`, and has
//! them answer. `originals` and `clones` know the connections that it is
//! about. `frames` is what both kinds of links have in common.
//!
//! Loads of other nodes come by `polls` or as `announced`, and what policies share by `sharing`. `access` is the access log, `admin` the
//! admin API; `told` runs both, and the exchange of loads, on a thread each.

/// Target of trace events by which a measurement tells how long clones take: `asked`, a request has been read; `restored`, the socket of a
/// clone is there.
pub const CLONE_TIMES: &str = "plimsoll_clone_times";

mod access;
mod admin;
mod ahead;
mod announced;
mod asks;
mod awake_time;
mod clones;
mod cloning;
mod config;
mod counters;
mod doubts;
mod following;
pub(super) mod frames;
mod fresh;
mod going_on;
mod heard_sizes;
mod keeping;
mod kept;
mod made;
mod mapping;
mod node;
mod node_closing;
mod original;
mod originals;
mod parked;
mod peer_link;
mod polls;

mod server_link;
mod shared;
mod sharing;
mod shimmed;
mod shimmed_clone;
mod threads;
mod told;
mod under_way;

pub use config::{CloneConfig, ClonePeer, NodeLoads};
pub use counters::CloneStats;
pub use node::{CloneNode, PreparedCloneNode};
