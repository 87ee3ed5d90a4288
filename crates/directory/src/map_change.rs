//! What is in a map of services, and how that changes.

use std::sync::Arc;

use plimsoll_wire::ServiceKey;

use crate::offer::ServiceOffer;

/// A replica in the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// The name of the node that offers it.
    pub node: String,
    /// What it offers.
    pub offer: ServiceOffer,
}

/// Names a replica: the partition and the node that offers it.
pub type ReplicaId = (ServiceKey, String);

/// Why a replica has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveReason {
    /// Its node said so, or the directory did.
    Goodbye,
    /// It was not heard of within the time to live.
    Expired,
}

/// A change of the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MapChange {
    /// A replica has come.
    Joined(Arc<Replica>),
    /// A replica is there, with something else than before.
    Changed(Arc<Replica>),
    /// A replica has gone.
    Left(Arc<Replica>, LeaveReason),
}
