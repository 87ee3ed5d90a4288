//! Service availability: who offers which partition of which service. Every node repeats what it offers, as soft state with a time
//! to live, and every node keeps the map from partitions to replicas. A node can publish, subscribe, or both.
//!
//! - [`ServiceDirectory`]: a node's part in it.
//! - [`Announcement`]: what a node says, with its MAC; [`ServiceMap`]: what follows from all that was heard. Neither knows of
//!   sockets or clocks.
//! - [`DirectoryTransport`]: what carries announcements: [`MulticastTransport`] from node to node, or [`EtcdTransport`].
//!
//! `docs/discovery.md` has the wire format and the bounds.

mod announcement;
mod directory;
mod drop_reason;
mod etcd;
#[doc(hidden)]
pub mod fuzz;
mod map;
mod map_bounds;
mod map_change;
mod multicast;
mod offer;
mod scope;
mod transport;

pub use announcement::{
    Announcement, AnnouncementKey, Announcer, LEAST_TTL, MOST_ANNOUNCEMENT_BYTES, MOST_TTL, Said,
};
pub use directory::{DirectoryError, DirectorySettings, DirectoryView, ServiceDirectory, TransportSettings};
pub use drop_reason::{AnnouncementCounts, DropReason};
pub use etcd::{EtcdSettings, EtcdTransport};
pub use map::{DirectoryTime, LeaveReason, Liveness, MapChange, Replica, ReplicaId, ServiceMap};
pub use map_bounds::MapBounds;
pub use multicast::{DEFAULT_GROUP, MulticastError, MulticastSettings, MulticastTransport};
pub use offer::{MOST_OFFERS, OfferError, ServiceOffer};
pub use scope::ServiceScope;
pub use transport::{AnnouncementIntake, DirectoryTransport, PublishedOffers, TransportEvent, TransportLink};
