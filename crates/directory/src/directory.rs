//! A node's part in the directory: it publishes, subscribes, or both.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use plimsoll_wire::{Key, ServiceKey, ServiceNameError, SourceRates, check_service_name};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::announcement::{AnnouncementKey, Announcer, LEAST_TTL, MOST_TTL};
use crate::drop_reason::{AnnouncementCounts, DropReason};
use crate::etcd::{EtcdSettings, EtcdTransport};
use crate::map::{LeaveReason, Liveness, MapChange, Replica, ServiceMap};
use crate::map_bounds::MapBounds;
use crate::multicast::{MulticastError, MulticastSettings, MulticastTransport};
use crate::offer::{MOST_OFFERS, OfferError, ServiceOffer};
use crate::scope::ServiceScope;
use crate::transport::{
    AnnouncementIntake, DirectoryTransport, PublishedOffers, TransportEvent, TransportLink, now,
};

/// Announcements that one sender may make in a second, and at once.
const ANNOUNCEMENTS_PER_S: u32 = 2000;

/// What transports have told and the map has not taken yet.
const PENDING_EVENTS: usize = 256;
/// A node that lives is heard within this time. Twice that, or the time to live, is waited for the first one.
const LEAST_PATIENCE: Duration = Duration::from_secs(3);
/// How long a node that leaves waits for its goodbye to be sent.
const GOODBYE_WAIT: Duration = Duration::from_secs(2);

const NO_NODE: &str = "no node was heard since the start; compare group, port and network interface";
const NO_ENDPOINT: &str = "no endpoint of etcd has answered since the start; see that one listens there";

/// How announcements travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportSettings {
    /// From node to node, by IP multicast.
    Multicast(MulticastSettings),
    /// By an etcd cluster.
    Etcd(EtcdSettings),
}

/// How a node takes part.
#[derive(Debug, Clone)]
pub struct DirectorySettings {
    /// The key that all nodes share.
    pub key: Key,
    /// How announcements travel.
    pub transport: TransportSettings,
    /// The name of this node; none: it only listens.
    pub node: Option<String>,
    /// How long what this node says counts, and the longest time that what others say counts, which is 3 s or more.
    pub ttl: Duration,
    /// The only partitions that are of interest; none: all.
    pub only: Option<ServiceScope>,
}

/// Why a node cannot take part in the directory.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// A node has no usable name.
    #[error(transparent)]
    Name(#[from] ServiceNameError),
    /// A replica cannot be offered.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// More is offered than one node may.
    #[error("{0} replicas are published; one node offers {MOST_OFFERS} at most")]
    TooManyOffers(usize),
    /// The time to live is out of its range.
    #[error("a time to live of {}; give {least} to {} s", SecondsShown(*ttl), MOST_TTL.as_secs())]
    Ttl {
        /// What was given.
        ttl: Duration,
        /// The least that this transport can keep, in words.
        least: &'static str,
    },
    /// The multicast group is none.
    #[error("{0}")]
    Group(String),
    /// The transport cannot be used.
    #[error("{0}")]
    Transport(String),
}

struct SecondsShown(Duration);

impl std::fmt::Display for SecondsShown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} s", self.0.as_secs_f64())
    }
}

/// What is known of the directory at one time.
#[derive(Debug, Clone, Default)]
pub struct DirectoryView {
    /// All replicas, by partition and node.
    pub replicas: Vec<Arc<Replica>>,
    /// Why the directory is away, while it is: the replicas are the last that it told.
    pub away: Option<String>,
    /// Whether the directory has told all that it knew. Nodes that tell of themselves may always follow.
    pub is_complete: bool,
}

impl DirectoryView {
    /// The replicas of a partition.
    pub fn of<'a>(&'a self, key: &'a ServiceKey) -> impl Iterator<Item = &'a Arc<Replica>> {
        self.replicas.iter().filter(move |replica| replica.offer.key == *key)
    }
}

/// A node's part in the directory. Dropping it ends it without a goodbye.
#[derive(Debug)]
pub struct ServiceDirectory {
    published: watch::Sender<PublishedOffers>,
    is_publisher: bool,
    view: watch::Receiver<Arc<DirectoryView>>,
    counts: Arc<AnnouncementCounts>,
    transport: Option<JoinHandle<()>>,
    map: JoinHandle<()>,
}

impl ServiceDirectory {
    /// Takes part, on the runtime that this is called on.
    ///
    /// # Errors
    /// When a setting is wrong, or the network cannot be used.
    pub fn start(settings: DirectorySettings) -> Result<Self, DirectoryError> {
        let least = match &settings.transport {
            TransportSettings::Multicast(_) => (LEAST_TTL, "0.4"),
            TransportSettings::Etcd(_) => (crate::etcd::LEAST_TTL, "3"),
        };
        if !(least.0..=MOST_TTL).contains(&settings.ttl) {
            return Err(DirectoryError::Ttl { ttl: settings.ttl, least: least.1 });
        }
        if let Some(node) = &settings.node {
            check_service_name(node)?;
        }
        let mut bounds = MapBounds::of_listener(settings.ttl);
        let transport: Box<dyn DirectoryTransport> = match &settings.transport {
            TransportSettings::Multicast(multicast) => {
                let opened = MulticastTransport::open(multicast);
                Box::new(opened.map_err(|error| match error {
                    MulticastError::Group(_) => DirectoryError::Group(error.to_string()),
                    _ => DirectoryError::Transport(error.to_string()),
                })?)
            }
            TransportSettings::Etcd(etcd) => {
                bounds.freshness = crate::etcd::FRESHNESS;
                bounds.least_settling = crate::etcd::LEAST_SETTLING;
                Box::new(EtcdTransport::new(etcd.clone(), settings.only.clone()))
            }
        };
        Self::start_on(transport, settings, bounds)
    }

    /// The same over a transport of the caller's.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn start_on(
        transport: Box<dyn DirectoryTransport>,
        settings: DirectorySettings,
        bounds: MapBounds,
    ) -> Result<Self, DirectoryError> {
        let DirectorySettings { key, node, ttl, only, transport: kind } = settings;
        let silence = match kind {
            TransportSettings::Multicast(_) => NO_NODE,
            TransportSettings::Etcd(_) => NO_ENDPOINT,
        };
        let random = |error| DirectoryError::Transport(format!("no random numbers: {error}"));
        let seed = u64::from_le_bytes(plimsoll_wire::random().map_err(random)?);
        let rates = SourceRates::new(ANNOUNCEMENTS_PER_S, ANNOUNCEMENTS_PER_S, seed);
        let (key, counts) = (AnnouncementKey::of(&key), Arc::<AnnouncementCounts>::default());
        let (events, heard) = mpsc::channel(PENDING_EVENTS);
        let (published, wanted) = watch::channel(PublishedOffers::default());
        let announcer = node.clone().map(|node| Announcer::new(key.clone(), node, boot(), ttl));
        let is_publisher = announcer.is_some();
        let hearing = AnnouncementIntake::new(key, Arc::clone(&counts), rates, events);
        let link = TransportLink { published: wanted, announcer, hearing };
        let (shown, view) = watch::channel(Arc::default());
        let patience = ttl.max(LEAST_PATIENCE) * 2;
        let keeper = MapKeeper {
            map: ServiceMap::new(bounds, node, only),
            counts: Arc::clone(&counts),
            away: None,
            unheard: None,
            look_at: Instant::now() + patience,
            patience,
            silence,
            is_complete: false,
            shown,
        };
        let map = tokio::spawn(keeper.keep(heard));
        let transport = Some(tokio::spawn(transport.carry(link)));
        Ok(Self { published, is_publisher, view, counts, transport, map })
    }

    /// Publishes these from now on, instead of what was published before.
    ///
    /// # Errors
    /// When one of them cannot be offered; then all stays as it was.
    pub fn publish(&self, offers: &[ServiceOffer]) -> Result<(), DirectoryError> {
        if !self.is_publisher && !offers.is_empty() {
            return Err(DirectoryError::Transport("a node without a name publishes nothing".to_owned()));
        }
        if offers.len() > MOST_OFFERS {
            return Err(DirectoryError::TooManyOffers(offers.len()));
        }
        offers.iter().try_for_each(ServiceOffer::check)?;
        self.published.send_modify(|published| published.offers = offers.into());
        Ok(())
    }

    /// What is known, now and whenever it changes.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<DirectoryView>> {
        self.view.clone()
    }

    /// What is known now.
    #[must_use]
    pub fn view(&self) -> Arc<DirectoryView> {
        Arc::clone(&self.view.borrow())
    }

    /// How many announcements were taken and dropped.
    #[must_use]
    pub fn counts(&self) -> &Arc<AnnouncementCounts> {
        &self.counts
    }

    /// Says goodbye and ends, in at most two seconds.
    pub async fn leave(mut self) {
        self.published.send_modify(|published| published.leaves = true);
        if let Some(mut transport) = self.transport.take()
            && tokio::time::timeout(GOODBYE_WAIT, &mut transport).await.is_err()
        {
            transport.abort();
        }
    }
}

impl Drop for ServiceDirectory {
    fn drop(&mut self) {
        self.map.abort();
        if let Some(transport) = &self.transport {
            transport.abort();
        }
    }
}

/// When this process began to publish: later than any earlier process of the node, unless the clock was set back.
fn boot() -> u64 {
    let unix = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(unix.as_micros()).unwrap_or(u64::MAX)
}

/// Keeps the map.
struct MapKeeper {
    map: ServiceMap,
    counts: Arc<AnnouncementCounts>,
    /// Why the transport cannot reach the directory.
    away: Option<String>,
    /// Why no valid announcement has come since the start, for too long.
    unheard: Option<&'static str>,
    /// When it is next looked whether one has come, and how long that takes each time.
    look_at: Instant,
    patience: Duration,
    /// What to say where nothing was heard at all.
    silence: &'static str,
    /// The directory has listed what it has.
    is_complete: bool,
    shown: watch::Sender<Arc<DirectoryView>>,
}

impl MapKeeper {
    async fn keep(mut self, mut heard: mpsc::Receiver<TransportEvent>) {
        loop {
            let expiry = self.map.next_expiry();
            let expired = async {
                match expiry {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            let mut changes = tokio::select! {
                event = heard.recv() => match event {
                    Some(event) => self.take(event),
                    None => break,
                },
                () = expired => self.map.expire(now().at),
                () = tokio::time::sleep_until(self.look_at.into()), if self.counts.accepted() == 0 => {
                    self.look_for_anyone();
                    Vec::new()
                }
            };
            // What has come together is shown together.
            for _ in 0..PENDING_EVENTS {
                let Ok(event) = heard.try_recv() else { break };
                changes.extend(self.take(event));
            }
            self.show(&changes);
        }
    }

    /// Finds out why nobody valid was heard since the start: a wrong key must not look like an empty directory.
    fn look_for_anyone(&mut self) {
        self.look_at = Instant::now() + self.patience;
        let dropped = |reason| self.counts.dropped(reason) > 0;
        let why = if dropped(DropReason::Forged) {
            "no announcement that came was made with the key of this node; compare the key files"
        } else if dropped(DropReason::Stale) {
            "all announcements that came were too old or from the future; compare the clocks"
        } else if self.is_complete {
            // There is nothing to be heard.
            self.unheard = None;
            return;
        } else {
            self.silence
        };
        if self.unheard.replace(why) != Some(why) {
            tracing::warn!("the directory of services tells nothing: {why}");
        }
    }

    fn take(&mut self, event: TransportEvent) -> Vec<MapChange> {
        let time = now();
        let (announcement, liveness) = match event {
            TransportEvent::Repeated(announcement) => (announcement, Liveness::Repeated),
            TransportEvent::RepeatedHere(announcement) => (announcement, Liveness::RepeatedHere),
            TransportEvent::Leased(announcement) => (announcement, Liveness::Leased),
            TransportEvent::Listed(listed) => {
                self.away = None;
                self.is_complete = true;
                self.map.listed(&listed, time.at);
                return Vec::new();
            }
            TransportEvent::Withdrawn(id) => return self.map.withdrawn(&id, time.at).into_iter().collect(),
            TransportEvent::Away(why) => {
                self.away = Some(why);
                return Vec::new();
            }
        };
        let (outcome, changes) = self.map.hear(announcement, liveness, time);
        self.counts.count(&outcome);
        for node in self.map.take_doubled() {
            tracing::warn!(
                "two processes are the node {node}: only the one that was started last counts; give each a name of its own. (If there is one, its clock was set back: it counts a minute later.)"
            );
        }
        if outcome.is_ok() {
            self.unheard = None;
        }
        if outcome == Err(DropReason::Full) {
            tracing::debug!("the map of services is full");
        }
        changes
    }

    /// Tells log and subscribers what is new.
    fn show(&self, changes: &[MapChange]) {
        let silent = || "nothing is heard of any node".to_owned();
        let unheard = || self.unheard.map(str::to_owned);
        let away = self.away.clone().or_else(|| self.map.is_silent().then(silent)).or_else(unheard);
        let (was_away, was_complete) = {
            let shown = self.shown.borrow();
            (shown.away.clone(), shown.is_complete)
        };
        if changes.is_empty() && away == was_away && self.is_complete == was_complete {
            return;
        }
        for change in changes {
            tell(change);
        }
        match (&was_away, &away) {
            // It was said with what to do about it.
            (None, Some(why)) if self.unheard == Some(&**why) => {}
            (None, Some(why)) => {
                tracing::warn!("the directory of services is away: {why}; its last map stays in use");
            }
            (Some(_), None) => tracing::info!("the directory of services is back"),
            _ => {}
        }
        let replicas = self.map.replicas().cloned().collect();
        self.shown.send_replace(Arc::new(DirectoryView { replicas, away, is_complete: self.is_complete }));
    }
}

fn tell(change: &MapChange) {
    let (what, replica) = match change {
        MapChange::Joined(replica) => ("is there", replica),
        MapChange::Changed(replica) => ("has changed", replica),
        MapChange::Left(replica, LeaveReason::Goodbye) => ("has left", replica),
        MapChange::Left(replica, LeaveReason::Expired) => ("was not heard of in time", replica),
    };
    let Replica { node, offer } = &**replica;
    tracing::debug!(%node, service = %offer.key, address = %offer.address, "a replica {what}");
}
