//! Announcements by etcd: each replica is a key with a lease that its node extends; subscribers watch the keys.
//!
//! etcd says who may write; the MAC in each value says who has written it. Whoever can write to etcd without our key can make
//! replicas leave, and no more.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use etcd_client::{
    Client, ConnectOptions, Event, EventType, GetOptions, KeyValue, LeaseKeepAliveStream, LeaseKeeper,
    PutOptions, SortOrder, SortTarget, WatchOptions,
};
use plimsoll_wire::ServiceKey;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::announcement::{Announcement, Announcer, Said};
use crate::drop_reason::DropReason;
use crate::map::ReplicaId;
use crate::offer::ServiceOffer;
use crate::scope::ServiceScope;
use crate::transport::{
    AnnouncementIntake, DirectoryTransport, PublishedOffers, TransportEvent, TransportLink, jitter, now,
};

/// etcd's leases last whole seconds, at least two, and end up to a second late.
pub(crate) const LEAST_TTL: Duration = Duration::from_secs(3);
/// How often a value is written anew, so that its time stays fresh.
const REFRESH: Duration = Duration::from_secs(60);
/// How old a value may be: two refreshes, and clocks that differ.
pub(crate) const FRESHNESS: Duration = Duration::from_secs(150);
/// How long a call to etcd may take.
const CALL: Duration = Duration::from_secs(2);
/// How often a silent connection is tried.
const PING: Duration = Duration::from_secs(1);
/// The pause before the next attempt after a failure; a lease outlives several.
const RETRY: Duration = Duration::from_millis(400);
/// How long nodes are given to publish again to an etcd that is back: one attempt may find it before it has a leader, and wait for its
/// answer in vain; the next one connects, is granted a lease, and puts.
pub(crate) const LEAST_SETTLING: Duration = Duration::from_secs(6);
/// Keys that are read at once.
const PAGE: i64 = 1000;
/// Keys that are read at most; the map has no room for more.
const MOST_KEYS: usize = 16_384;

/// Where etcd is, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdSettings {
    /// Its members, such as `http://10.0.0.5:2379`.
    pub endpoints: Vec<String>,
    /// What all keys begin with.
    pub prefix: String,
}

impl EtcdSettings {
    /// What keys begin with unless something else is chosen.
    pub const DEFAULT_PREFIX: &'static str = "/plimsoll/services";

    /// With the usual prefix.
    #[must_use]
    pub fn new(endpoints: Vec<String>) -> Self {
        Self { endpoints, prefix: Self::DEFAULT_PREFIX.to_owned() }
    }

    /// The key of a replica.
    pub(crate) fn key(&self, offered: &ServiceKey, node: &str) -> String {
        format!("{}/{}/{}/{node}", self.prefix, offered.service, offered.partition)
    }

    /// The replica of a key.
    pub(crate) fn id(&self, key: &[u8]) -> Option<ReplicaId> {
        let rest = std::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?.strip_prefix('/')?;
        let mut parts = rest.split('/');
        let (service, partition, node) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        Some((ServiceKey::new(service, partition).ok()?, node.to_owned()))
    }
}

/// Why something cannot be done with etcd now.
#[derive(Debug, thiserror::Error)]
enum EtcdFailure {
    #[error("etcd does not answer within {} s", CALL.as_secs())]
    Late,
    #[error("{}", plain(.0))]
    Call(#[from] etcd_client::Error),
    #[error("etcd has ended the {0}")]
    Ended(&'static str),
}

/// A failed call in a sentence: the cause is behind layers that say nothing more.
fn plain(error: &etcd_client::Error) -> String {
    use etcd_client::Error::{GRpcStatus, TransportError};
    use std::error::Error;
    let mut cause: &dyn Error = match error {
        TransportError(error) => error,
        GRpcStatus(status) if status.source().is_none() => {
            return format!("etcd refuses: {}", status.message());
        }
        GRpcStatus(status) => status,
        _ => return format!("etcd: {error}"),
    };
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    format!("etcd cannot be reached: {cause}")
}

/// Waits for a call's answer, but not for long.
async fn call<T>(answer: impl Future<Output = Result<T, etcd_client::Error>>) -> Result<T, EtcdFailure> {
    timeout(CALL, answer).await.map_or(Err(EtcdFailure::Late), |answer| answer.map_err(EtcdFailure::Call))
}

/// A node's connections to etcd.
#[derive(Debug, Clone)]
pub struct EtcdTransport {
    settings: EtcdSettings,
    only: Option<ServiceScope>,
}

impl EtcdTransport {
    /// Connects once it carries; etcd may be away meanwhile.
    #[must_use]
    pub fn new(settings: EtcdSettings, only: Option<ServiceScope>) -> Self {
        Self { settings, only }
    }

    async fn connect(&self) -> Result<Client, EtcdFailure> {
        let options = ConnectOptions::new()
            .with_connect_timeout(CALL)
            .with_keep_alive(PING, CALL)
            .with_keep_alive_while_idle(true)
            .with_require_leader(true);
        call(Client::connect(&self.settings.endpoints, Some(options))).await
    }
}

impl DirectoryTransport for EtcdTransport {
    fn carry(self: Box<Self>, link: TransportLink) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let TransportLink { published, announcer, hearing } = link;
            tokio::select! {
                () = say(&self, published, announcer) => {}
                () = hear(&self, hearing) => {}
            }
        })
    }
}

/// Publishes what this node offers, until it has left.
async fn say(
    transport: &EtcdTransport,
    mut published: watch::Receiver<PublishedOffers>,
    announcer: Option<Announcer>,
) {
    let wants = |published: &PublishedOffers| published.leaves || !published.offers.is_empty();
    let Some(mut announcer) = announcer else {
        // It only listens; whoever started it ends it.
        while !published.borrow_and_update().leaves && published.changed().await.is_ok() {}
        return;
    };
    let mut failing = false;
    loop {
        // Neither lease nor connection for nothing.
        if published.wait_for(wants).await.is_err() || published.borrow_and_update().leaves {
            return;
        }
        let Err(failure) = Lease::hold(transport, &mut published, &mut announcer, &mut failing).await else {
            return;
        };
        if !std::mem::replace(&mut failing, true) {
            tracing::warn!("cannot publish: {failure}; it is tried again");
        }
        sleep(RETRY.mul_f64(jitter())).await;
    }
}

/// A lease, and the keys that live by it.
struct Lease<'a> {
    transport: &'a EtcdTransport,
    client: Client,
    id: i64,
    keeper: LeaseKeeper,
    kept: LeaseKeepAliveStream,
    /// What was put, by key.
    keys: BTreeSet<String>,
}

impl Lease<'_> {
    /// Publishes under a lease until the node leaves, or etcd fails.
    async fn hold(
        transport: &EtcdTransport,
        published: &mut watch::Receiver<PublishedOffers>,
        announcer: &mut Announcer,
        failing: &mut bool,
    ) -> Result<(), EtcdFailure> {
        let mut client = transport.connect().await?;
        // It may end a second late.
        let seconds = announcer.ttl().as_secs().saturating_sub(1).max(2);
        let granted = call(client.lease_grant(i64::try_from(seconds).unwrap_or(i64::MAX), None)).await?;
        let id = granted.id();
        let (keeper, kept) = call(client.lease_keep_alive(id)).await?;
        let mut lease = Lease { transport, client, id, keeper, kept, keys: BTreeSet::new() };
        let pause = Duration::from_secs(seconds) / 4;
        let mut refresh_at = Instant::now();
        loop {
            let changed = published.has_changed().unwrap_or(false);
            let PublishedOffers { offers, leaves } = published.borrow_and_update().clone();
            if leaves {
                return call(lease.client.lease_revoke(id)).await.map(drop);
            }
            if changed || Instant::now() >= refresh_at {
                lease.put(&offers, announcer).await?;
                if std::mem::take(failing) {
                    tracing::info!("published again");
                }
                refresh_at = Instant::now() + REFRESH;
            }
            tokio::select! {
                () = sleep(pause) => lease.extend().await?,
                // Its owner is gone without a goodbye.
                changed = published.changed() => match changed {
                    Ok(()) => published.mark_changed(),
                    Err(_) => return Ok(()),
                },
            }
        }
    }

    /// Has etcd know exactly these of this node.
    async fn put(&mut self, offers: &[ServiceOffer], announcer: &mut Announcer) -> Result<(), EtcdFailure> {
        let mut keys = BTreeSet::new();
        for offer in offers {
            let key = self.transport.settings.key(&offer.key, announcer.node());
            let value = announcer.seal(Said::Offers(vec![offer.clone()]), now().unix_ms);
            let options = PutOptions::new().with_lease(self.id);
            call(self.client.put(key.clone(), value, Some(options))).await?;
            keys.insert(key);
        }
        for gone in self.keys.difference(&keys) {
            call(self.client.delete(gone.clone(), None)).await?;
        }
        self.keys = keys;
        Ok(())
    }

    async fn extend(&mut self) -> Result<(), EtcdFailure> {
        call(self.keeper.keep_alive()).await?;
        match call(self.kept.message()).await? {
            Some(answer) if answer.ttl() > 0 => Ok(()),
            _ => Err(EtcdFailure::Ended("lease")),
        }
    }
}

/// Passes on what etcd has, and what becomes of it.
async fn hear(transport: &EtcdTransport, hearing: AnnouncementIntake) {
    loop {
        let Err(failure) = watch_keys(transport, &hearing).await else { return };
        if !hearing.tell(TransportEvent::Away(failure.to_string())).await {
            return;
        }
        sleep(RETRY.mul_f64(jitter())).await;
    }
}

/// Lists the keys and watches them from there on. It ends when nobody listens, or etcd fails.
async fn watch_keys(transport: &EtcdTransport, hearing: &AnnouncementIntake) -> Result<(), EtcdFailure> {
    let settings = &transport.settings;
    let under = match &transport.only {
        Some(only) => only.under(&settings.prefix),
        None => format!("{}/", settings.prefix),
    };
    let mut client = transport.connect().await?;
    let Some(revision) = list_keys(&mut client, settings, &under, hearing).await? else { return Ok(()) };
    let options = WatchOptions::new().with_prefix().with_start_revision(revision + 1);
    let mut watched = call(client.watch(under, Some(options))).await?;
    loop {
        // A connection over which nothing comes is tried by pings.
        let Some(message) = watched.message().await? else { return Err(EtcdFailure::Ended("watch")) };
        if message.canceled() {
            // What it would have told has been compacted, or etcd has lost its leader.
            return Err(EtcdFailure::Ended("watch"));
        }
        for event in message.events() {
            if let Some(event) = event_of(settings, event, hearing)
                && !hearing.tell(event).await
            {
                return Ok(());
            }
        }
    }
}

/// Tells all keys; returns the revision at which they were so, or nothing when nobody listens.
async fn list_keys(
    client: &mut Client,
    settings: &EtcdSettings,
    under: &str,
    hearing: &AnnouncementIntake,
) -> Result<Option<i64>, EtcdFailure> {
    let mut listed = BTreeSet::new();
    let (mut from, mut revision, mut read) = (under.as_bytes().to_vec(), 0, 0);
    // Behind all keys that begin with `under`: it ends with a slash, and `0` follows that.
    let end = format!("{}0", under.trim_end_matches('/'));
    loop {
        let options = GetOptions::new()
            .with_range(end.as_bytes())
            .with_limit(PAGE)
            .with_revision(revision)
            .with_sort(SortTarget::Key, SortOrder::Ascend);
        let page = call(client.get(from, Some(options))).await?;
        if revision == 0 {
            revision = page.header().map_or(0, etcd_client::ResponseHeader::revision);
        }
        for kv in page.kvs() {
            let Some((id, announcement)) = replica_of(settings, kv, hearing) else { continue };
            listed.insert(id);
            if !hearing.tell(TransportEvent::Leased(announcement)).await {
                return Ok(None);
            }
        }
        read += page.kvs().len();
        match page.kvs().last() {
            Some(last) if page.more() && read < MOST_KEYS => from = [last.key(), &[0]].concat(),
            _ => break,
        }
    }
    Ok(hearing.tell(TransportEvent::Listed(listed)).await.then_some(revision))
}

fn event_of(settings: &EtcdSettings, event: &Event, hearing: &AnnouncementIntake) -> Option<TransportEvent> {
    let kv = event.kv()?;
    match event.event_type() {
        EventType::Put => {
            replica_of(settings, kv, hearing).map(|(_, announcement)| TransportEvent::Leased(announcement))
        }
        EventType::Delete => settings.id(kv.key()).map(TransportEvent::Withdrawn),
    }
}

/// What a key and its value say; nothing, and counted, where one of them is not what a node has written.
fn replica_of(
    settings: &EtcdSettings,
    kv: &KeyValue,
    hearing: &AnnouncementIntake,
) -> Option<(ReplicaId, Announcement)> {
    let announcement = hearing.open(kv.value())?;
    let id = settings.id(kv.key());
    // A value counts only where it was put.
    let is_there = |(key, node): &ReplicaId| {
        let one = match &announcement.said {
            Said::Offers(offers) => offers.len() == 1 && offers[0].key == *key,
            Said::Goodbye => false,
        };
        one && announcement.node == *node
    };
    let Some(id) = id.filter(is_there) else {
        hearing.dropped(DropReason::Malformed);
        return None;
    };
    Some((id, announcement))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_a_replica_and_nothing_else_does() {
        let settings = EtcdSettings::new(vec!["http://127.0.0.1:2379".to_owned()]);
        let key: ServiceKey = "image-store/1".parse().unwrap();
        let written = settings.key(&key, "node-1");
        assert_eq!(written, "/plimsoll/services/image-store/1/node-1");
        assert_eq!(settings.id(written.as_bytes()), Some((key, "node-1".to_owned())));
        for other in
            ["", "/plimsoll/services", "/plimsoll/services/a/b", "/plimsoll/services/a/b/c/d", "/other/a/b/c"]
        {
            assert_eq!(settings.id(other.as_bytes()), None, "{other}");
        }
        assert_eq!(settings.id(b"/plimsoll/services/a/b/\xff"), None);
    }
}
