//! What a policy that shares its state has seen goes to all other nodes, and the sum over all comes back to it: AdaptLoad's two-level
//! form. It goes by the links by which clones are asked for.

use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use plimsoll_exchange::{Sizes, SizesSeen};
use plimsoll_wire::cloning::ToClone;
use tokio::time::{MissedTickBehavior, interval};

use super::config::CloneConfig;
use super::peer_link::PeerLink;
use super::polls::nanos;
use super::shared::CloneShared;

/// What other nodes have told.
pub(super) struct Sharing {
    began: Instant,
    /// Random for each process.
    instance: u64,
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

    fn heard(&self) -> MutexGuard<'_, Vec<SizesSeen>> {
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

/// Tells and adds up, again and again, if the policy shares anything.
pub(super) async fn share(shared: Arc<CloneShared>, links: Rc<Vec<Rc<PeerLink>>>) {
    if !shared.config.policy.spec.capabilities.can_share_state() {
        return;
    }
    let mut rounds = interval(shared.config.share_period);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut number = 0;
    loop {
        rounds.tick().await;
        let Some((cluster, load)) = shared.mapping.seen() else { return };
        number += 1;
        let instance = shared.sharing.instance;
        for link in links.iter() {
            link.tell(&ToClone::Sizes { instance, number, cluster, load: load.clone() });
        }
        let now_ns = nanos(shared.sharing.began.elapsed());
        let keep_ns = nanos(shared.config.share_keep);
        let sum = SizesSeen::sum(&load, shared.sharing.heard().iter(), now_ns, keep_ns);
        shared.mapping.share(&sum);
    }
}
