//! What is known of the other front-ends, and what they are told.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_config::{PeerConfig, PeersConfig};

use crate::metrics::SharedCounter;
use plimsoll_exchange::{Sizes, SizesSeen};

/// What is known of a peer.
#[derive(Debug, Default)]
pub(super) struct Peer {
    pub(super) told: SizesSeen,
    /// Exchanges that this one began, by how they ended.
    ok: SharedCounter,
    failed: SharedCounter,
    /// Why the last one failed, if it did: only a change is logged.
    failing: Option<String>,
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
    pub(super) config: PeersConfig,
    began: Instant,
    /// Random for each process.
    pub(super) instance: u64,
    /// Where the others connect.
    pub(crate) address: SocketAddr,
    pub(super) listener: Mutex<Option<TcpListener>>,
    told: Mutex<Arc<Sizes>>,
    known: Mutex<BTreeMap<String, Peer>>,
    /// Exchanges begun by others that came to nothing.
    pub(crate) refused: SharedCounter,
}

impl Peers {
    /// Those of the configuration; `listener` is where they connect.
    ///
    /// # Errors
    /// When the system gives no random number, or no address.
    pub(crate) fn new(config: PeersConfig, listener: TcpListener) -> io::Result<Self> {
        let known = config.others.iter().map(|peer| (peer.name.clone(), Peer::default())).collect();
        Ok(Self {
            began: Instant::now(),
            instance: u64::from_le_bytes(plimsoll_wire::random()?),
            address: listener.local_addr()?,
            listener: Mutex::new(Some(listener)),
            told: Mutex::default(),
            known: Mutex::new(known),
            refused: SharedCounter::default(),
            config,
        })
    }

    /// The back-end on this machine.
    pub(crate) fn local(&self) -> &str {
        &self.config.local
    }

    /// What the others are told now.
    pub(super) fn told(&self) -> Arc<Sizes> {
        Arc::clone(&self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on the others are told this.
    pub(super) fn tell(&self, cluster: u64, load: Vec<(u64, u64)>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        *told = Arc::new(Sizes { instance: self.instance, number: told.number + 1, cluster, load });
    }

    /// A peer has told this; what overtook it stays.
    pub(super) fn heard(&self, name: &str, sizes: Sizes) {
        let mut known = self.known();
        let Some(peer) = known.get_mut(name) else { return };
        peer.told.hear(sizes, self.now_ns());
    }

    /// The time, for ages.
    fn now_ns(&self) -> u64 {
        nanos(self.began.elapsed())
    }

    /// Everything that counts: what the others are told, and what each of them told within `keep`. Sums of whole numbers
    /// are the same in whatever order.
    pub(super) fn sum(&self) -> Vec<(u64, u64)> {
        let known = self.known();
        let told = known.values().map(|peer| &peer.told);
        SizesSeen::sum(&self.told().load, told, self.now_ns(), nanos(self.config.keep))
    }

    /// What there is to tell of each peer, by name.
    pub(crate) fn states(&self) -> Vec<PeerState> {
        let (cluster, now_ns) = (self.told().cluster, self.now_ns());
        let state = |(name, peer): (&String, &Peer)| {
            let told = peer.told.last(now_ns);
            PeerState {
                name: name.clone(),
                ok: peer.ok.get(),
                failed: peer.failed.get(),
                age: told.map(|(_, age_ns)| Duration::from_nanos(age_ns)),
                agrees: told.is_some_and(|(sizes, _)| sizes.cluster == cluster),
            }
        };
        self.known().iter().map(state).collect()
    }

    /// An exchange that this one began has ended.
    pub(super) fn asked(&self, peer: &PeerConfig, result: &io::Result<()>) {
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

    pub(super) fn known(&self) -> MutexGuard<'_, BTreeMap<String, Peer>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
