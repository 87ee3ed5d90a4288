//! What other nodes have told of what their policies have seen.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_exchange::{Sizes, SizesSeen};

use super::config::CloneConfig;

/// What other nodes have told.
pub(super) struct Sharing {
    pub(super) began: Instant,
    /// Random for each process.
    pub(super) instance: u64,
    /// By peer.
    heard: Mutex<Vec<SizesSeen>>,
}

impl Sharing {
    /// Nothing was told yet.
    pub(super) fn new(config: &CloneConfig) -> Self {
        // The key separates nodes already: this only tells one process from the next.
        let instance = plimsoll_wire::random().map_or(0, u64::from_le_bytes);
        let heard = config.peers.iter().map(|_| SizesSeen::default()).collect();
        Self { began: Instant::now(), instance, heard: Mutex::new(heard) }
    }

    pub(super) fn heard(&self) -> MutexGuard<'_, Vec<SizesSeen>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A peer has told this.
    pub(super) fn hear(&self, peer: usize, sizes: Sizes) {
        let now_ns = nanos(self.began.elapsed());
        if let Some(seen) = self.heard().get_mut(peer) {
            seen.hear(sizes, now_ns);
        }
    }

    /// Peers that have told something lately.
    pub(super) fn fresh(&self, config: &CloneConfig) -> usize {
        let (now_ns, keep_ns) = (nanos(self.began.elapsed()), nanos(config.share_keep));
        self.heard().iter().filter(|seen| seen.last(now_ns).is_some_and(|(_, age)| age <= keep_ns)).count()
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
