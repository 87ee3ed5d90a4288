//! What a policy that shares its state has seen goes to all other nodes, and the sum over all comes back to it: AdaptLoad's two-level
//! form. It goes by the links by which clones are asked for.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_exchange::SizesSeen;
use plimsoll_wire::cloning::ToClone;
use tokio::time::{MissedTickBehavior, interval};

use super::heard_sizes::nanos;
use super::peer_link::PeerLink;
use super::shared::CloneShared;

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
