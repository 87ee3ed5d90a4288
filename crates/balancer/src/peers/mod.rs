//! Front-ends beside one another, each on the machine of a back-end: they tell one another the sizes that they have seen,
//! and set boundaries from the sum, so that all set the same.
//!
//! Source: AdaptLoad, section 5: in a two-level scheme the histogram is "built and maintained by the servers of the
//! cluster, provided they periodically communicate with each other".

mod exchange;
mod message;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_config::{PeerConfig, PeersConfig};
use plimsoll_policy::{ClusterView, TargetId};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::dispatch::Dispatch;
use crate::metrics::Counter;
use exchange::MOST_TIME;
use message::Sizes;

/// Exchanges at once that others have begun; further ones wait.
const CONNECTIONS: usize = 64;
/// How long is waited when the system has no connection to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What is known of a peer.
#[derive(Debug, Default)]
struct Peer {
    told: Option<Told>,
    /// Exchanges that this one began, by how they ended.
    ok: Counter,
    failed: Counter,
    /// Why the last one failed, if it did: only a change is logged.
    failing: Option<String>,
}

/// What a peer told last.
#[derive(Debug)]
struct Told {
    sizes: Sizes,
    at: Instant,
}

/// What metrics tell of a peer.
pub(crate) struct PeerState {
    pub(crate) name: String,
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    /// Time since it told something; `None` when it never has.
    pub(crate) age: Option<Duration>,
    /// Whether it takes the same back-ends, with the same weights, for those that take requests.
    pub(crate) agrees: bool,
}

/// The other front-ends, and what this one tells them.
pub(crate) struct Peers {
    config: PeersConfig,
    /// Random for each process.
    instance: u64,
    /// Where the others connect.
    pub(crate) address: SocketAddr,
    listener: Mutex<Option<TcpListener>>,
    told: Mutex<Arc<Sizes>>,
    known: Mutex<BTreeMap<String, Peer>>,
    /// Exchanges begun by others that came to nothing.
    pub(crate) refused: Counter,
}

impl Peers {
    /// Those of the configuration; `listener` is where they connect.
    ///
    /// # Errors
    /// When the system gives no random number, or no address.
    pub(crate) fn new(config: PeersConfig, listener: TcpListener) -> io::Result<Self> {
        let known = config.others.iter().map(|peer| (peer.name.clone(), Peer::default())).collect();
        Ok(Self {
            instance: u64::from_le_bytes(plimsoll_wire::random()?),
            address: listener.local_addr()?,
            listener: Mutex::new(Some(listener)),
            told: Mutex::default(),
            known: Mutex::new(known),
            refused: Counter::default(),
            config,
        })
    }

    /// The back-end on this machine.
    pub(crate) fn local(&self) -> &str {
        &self.config.local
    }

    /// What the others are told now.
    fn told(&self) -> Arc<Sizes> {
        Arc::clone(&self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on the others are told this.
    fn tell(&self, cluster: u64, load: Vec<(u64, u64)>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        *told = Arc::new(Sizes { instance: self.instance, number: told.number + 1, cluster, load });
    }

    /// A peer has told this; what overtook it stays.
    fn heard(&self, name: &str, sizes: Sizes) {
        let mut known = self.known();
        let Some(peer) = known.get_mut(name) else { return };
        // A process that was started anew counts from the beginning.
        let later = |old: &Sizes| old.instance != sizes.instance || old.number <= sizes.number;
        if peer.told.as_ref().is_none_or(|told| later(&told.sizes)) {
            peer.told = Some(Told { sizes, at: Instant::now() });
        }
    }

    /// Everything that counts: what the others are told, and what each of them told within `keep`. Sums of whole numbers
    /// are the same in whatever order.
    fn sum(&self) -> Vec<(u64, u64)> {
        let mut sum: BTreeMap<u64, u64> = self.told().load.iter().copied().collect();
        for told in self.known().values().filter_map(|peer| peer.told.as_ref()) {
            if told.at.elapsed() <= self.config.keep {
                for &(size_bytes, bytes) in &told.sizes.load {
                    let all = sum.entry(size_bytes).or_default();
                    *all = all.saturating_add(bytes);
                }
            }
        }
        sum.into_iter().collect()
    }

    /// What there is to tell of each peer, by name.
    pub(crate) fn states(&self) -> Vec<PeerState> {
        let cluster = self.told().cluster;
        let state = |(name, peer): (&String, &Peer)| PeerState {
            name: name.clone(),
            ok: peer.ok.get(),
            failed: peer.failed.get(),
            age: peer.told.as_ref().map(|told| told.at.elapsed()),
            agrees: peer.told.as_ref().is_some_and(|told| told.sizes.cluster == cluster),
        };
        self.known().iter().map(state).collect()
    }

    /// An exchange that this one began has ended.
    fn asked(&self, peer: &PeerConfig, result: &io::Result<()>) {
        let mut known = self.known();
        let Some(state) = known.get_mut(&peer.name) else { return };
        match result {
            Ok(()) => {
                state.ok.add(1);
                if state.failing.take().is_some() {
                    tracing::info!(peer = peer.name, "the front-end answers again");
                }
            }
            Err(error) => {
                state.failed.add(1);
                let error = error.to_string();
                if state.failing.as_ref() != Some(&error) {
                    tracing::warn!(
                        peer = peer.name,
                        error,
                        "a front-end beside this one does not answer as it should"
                    );
                    state.failing = Some(error);
                }
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Peer>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a front-end takes for the cluster, as a number.
fn cluster(view: &ClusterView) -> u64 {
    let mut back_ends: Vec<(u64, u32)> =
        view.eligible_ids().map(|b| (view.key(b), view.weight(b).steps())).collect();
    back_ends.sort_unstable();
    let bytes: Vec<u8> = back_ends
        .iter()
        .flat_map(|(key, steps)| key.to_le_bytes().into_iter().chain(steps.to_le_bytes()))
        .collect();
    TargetId::from_key(&bytes).0
}

/// Tells the others, hears them, and sets the boundaries, again and again.
pub(crate) async fn run(dispatch: Arc<Dispatch>, peers: Arc<Peers>) {
    let listener = peers.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut tasks = JoinSet::new();
    if let Some(listener) = listener {
        tasks.spawn(serve(Arc::clone(&peers), listener));
    }
    let mut interval = tokio::time::interval(peers.config.period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        round(&dispatch, &peers).await;
    }
}

async fn round(dispatch: &Arc<Dispatch>, peers: &Arc<Peers>) {
    let seen = dispatch.inspect(|i| i.policy.seen().map(|load| (cluster(i.view), load)));
    // A reload may have brought another policy.
    let Some((cluster, load)) = seen else { return };
    peers.tell(cluster, load);
    let time = peers.config.period.clamp(Duration::from_millis(200), MOST_TIME);
    let mut asking = JoinSet::new();
    for peer in peers.config.others.clone() {
        let peers = Arc::clone(peers);
        asking.spawn(async move {
            let asked = tokio::time::timeout(time, exchange::ask(&peers, &peer)).await;
            let result = asked.unwrap_or_else(|_| Err(io::Error::other("it takes too long to answer")));
            peers.asked(&peer, &result);
        });
    }
    while asking.join_next().await.is_some() {}
    dispatch.share(&peers.sum());
}

/// Answers those that connect.
async fn serve(peers: Arc<Peers>, socket: TcpListener) {
    let listener = match tokio::net::TcpListener::from_std(socket) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "cannot listen for other front-ends");
            return;
        }
    };
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, from)) => {
                let peers = Arc::clone(&peers);
                drop(tokio::spawn(async move {
                    let answered = tokio::time::timeout(MOST_TIME, exchange::answer(&peers, stream)).await;
                    let result = answered.unwrap_or_else(|_| Err(io::Error::other("it takes too long")));
                    if let Err(error) = result {
                        peers.refused.add(1);
                        tracing::debug!(%from, %error, "an exchange with another front-end came to nothing");
                    }
                    drop(place);
                }));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of another front-end");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
