//! What carries announcements between nodes, and what it is given.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use tokio::sync::{mpsc, watch};

use crate::announcement::{Announcement, AnnouncementKey, Announcer};
use crate::drop_reason::{AnnouncementCounts, DropReason};
use crate::map::{DirectoryTime, ReplicaId};
use crate::offer::ServiceOffer;
use plimsoll_wire::SourceRates;

/// Carries announcements. A further transport is a module with an impl of it, and a variant of
/// [`TransportSettings`](crate::TransportSettings).
pub trait DirectoryTransport: Send + 'static {
    /// Publishes what the link's node offers and tells what others do, until the node has left.
    fn carry(self: Box<Self>, link: TransportLink) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// What a node wants others to know.
#[derive(Debug, Clone, Default)]
pub struct PublishedOffers {
    /// What it offers.
    pub offers: Arc<[ServiceOffer]>,
    /// Whether it leaves, and says so.
    pub leaves: bool,
}

/// What a transport tells.
#[derive(Debug)]
pub enum TransportEvent {
    /// A node has said this; it repeats it while it lives.
    Repeated(Announcement),
    /// The same, of a node on this machine.
    RepeatedHere(Announcement),
    /// The directory has this; it says when that is over.
    Leased(Announcement),
    /// The directory is there and has just these, which follow or came before.
    Listed(BTreeSet<ReplicaId>),
    /// The directory has this no more.
    Withdrawn(ReplicaId),
    /// The directory cannot be reached, and why.
    Away(String),
}

/// A transport's side of the directory.
#[derive(Debug)]
pub struct TransportLink {
    /// What to publish; none: this node only listens.
    pub published: watch::Receiver<PublishedOffers>,
    /// Makes announcements.
    pub announcer: Option<Announcer>,
    /// Takes what others say.
    pub hearing: AnnouncementIntake,
}

/// Checks what others say before it is passed on.
#[derive(Debug)]
pub struct AnnouncementIntake {
    key: AnnouncementKey,
    counts: Arc<AnnouncementCounts>,
    rates: SourceRates,
    started: Instant,
    events: mpsc::Sender<TransportEvent>,
}

impl AnnouncementIntake {
    pub(crate) fn new(
        key: AnnouncementKey,
        counts: Arc<AnnouncementCounts>,
        rates: SourceRates,
        events: mpsc::Sender<TransportEvent>,
    ) -> Self {
        Self { key, counts, rates, started: Instant::now(), events }
    }

    /// Whether this sender may say something now; what it says otherwise is counted and to be dropped.
    pub fn allows(&mut self, source: IpAddr) -> bool {
        let now_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let allowed = self.rates.admits(source, now_ns);
        if !allowed {
            self.counts.count::<()>(&Err(DropReason::Rate));
        }
        allowed
    }

    /// Reads what was received. What is dropped is counted here, and the rest once the map has taken it.
    pub fn open(&self, bytes: &[u8]) -> Option<Announcement> {
        let opened = Announcement::open(bytes, &self.key);
        if opened.is_err() {
            self.counts.count(&opened);
        }
        opened.ok()
    }

    /// Counts something that is dropped.
    pub fn dropped(&self, reason: DropReason) {
        self.counts.count::<()>(&Err(reason));
    }

    /// Passes something on; false when nobody listens any more.
    pub async fn tell(&self, event: TransportEvent) -> bool {
        self.events.send(event).await.is_ok()
    }
}

/// The time now.
pub(crate) fn now() -> DirectoryTime {
    let unix = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    DirectoryTime { at: Instant::now(), unix_ms: u64::try_from(unix.as_millis()).unwrap_or(u64::MAX) }
}

/// A factor from 0.75 to 1.25 that differs from node to node and from time to time.
pub(crate) fn jitter() -> f64 {
    // Without random numbers nodes may say things at the same time, no more.
    let bytes = plimsoll_wire::random::<4>().unwrap_or_default();
    0.75 + f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX) / 2.0
}
