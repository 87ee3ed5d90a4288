//! What `/metrics` tells of front-ends beside this one.

use std::fmt::Error;

use super::snapshot::Snapshot;
use crate::peers::Peers;
use plimsoll_observe::exposition::Out;

/// Everything that is counted of exchanges, and where requests were answered.
pub(super) fn encode(peers: &Peers, snapshot: &Snapshot, out: &mut Out<'_>) -> Result<(), Error> {
    let answered = |here: bool| -> u64 {
        let those = snapshot.backends.iter().filter(|b| (*b.backend.name == *peers.local()) == here);
        those.map(|b| (0..5).map(|i| b.sum(|c| &c.answers[i])).sum::<u64>()).sum()
    };
    out.counters(
        "plimsoll_peers_requests",
        "Responses by whether the back-end on this machine or another one answered",
        || [([("answered", "here")], answered(true)), ([("answered", "elsewhere")], answered(false))],
    )?;
    out.counter(
        "plimsoll_peers_exchanges_refused",
        "Exchanges begun by others that came to nothing",
        peers.refused.get(),
    )?;
    let states = peers.states();
    out.counters("plimsoll_peer_exchanges", "Exchanges begun here, by how they ended", || {
        states.iter().flat_map(|peer| {
            let labels = |outcome| [("peer", &*peer.name), ("outcome", outcome)];
            [(labels("ok"), peer.ok), (labels("failed"), peer.failed)]
        })
    })?;
    out.gauges("plimsoll_peer_age_seconds", "Time since the peer told what it has seen", || {
        states.iter().filter_map(|peer| Some(([("peer", &*peer.name)], peer.age?.as_secs_f64())))
    })?;
    out.gauges(
        "plimsoll_peer_agrees",
        "1 when the peer takes the same back-ends, with the same weights, for those that take requests",
        || states.iter().map(|peer| ([("peer", &*peer.name)], u64::from(peer.agrees))),
    )
}
