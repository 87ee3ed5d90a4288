//! A node of Socket Cloning: answers clients that connect to it, or has the node that has the document answer on the client's own
//! connection. `docs/mechanisms/clone.md` describes it.
//!
//! Each thread has connections, and a link to each other node for the clones that it asks for. `original` leads a connection from
//! request to request; `mapping` says which node answers; `cloning` has a clone made by way of a `peer_link`, waits for the end of
//! its answer, and brings the original up to there. `made` is the other side: it makes clones that come by a `server_link`, and has
//! them answer. `originals` and `clones` know the connections that it is
//! about. `frames` is what both kinds of links have in common.

mod clones;
mod cloning;
mod config;
mod counters;
pub(super) mod frames;
mod made;
mod mapping;
mod node;
mod original;
mod originals;
mod peer_link;
mod server_link;
mod shared;
mod threads;

pub use config::{CloneConfig, ClonePeer};
pub use counters::CloneStats;
pub use node::{CloneNode, PreparedCloneNode};
