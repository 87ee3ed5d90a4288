//! Listens to the loads that other nodes announce: `--clone-loads broadcast`.
//!
//! An announcement counts when its boot id is known, which this node learns by asking the node at its address; so none can be passed
//! off as another node's. Nodes of which nothing was heard for an interval and a half are asked too.

use std::collections::VecDeque;
use std::net::UdpSocket as StdSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_exchange::Hearing;
use plimsoll_policy::{BackendId, LoadReport, Nanos};
use plimsoll_wire::load::{Announced, DATAGRAM_BYTES, LoadInquirer, LoadTaken};
use tokio::net::UdpSocket;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::config::NodeLoads;
use super::heard_sizes::nanos;
use super::mapping::NodePlace;
use super::polls::{LOOK, inquirer, told_at};
use super::shared::CloneShared;

/// How long an answer is waited for.
const ANSWER_NS: u64 = 500_000_000;
/// How often it looks for silent nodes, at least.
const SHORTEST_LOOK: Duration = Duration::from_millis(10);
/// Pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

struct Listener {
    shared: Arc<CloneShared>,
    asking: UdpSocket,
    began: Instant,
    inquirer: LoadInquirer,
    hearing: Hearing,
    /// Inquiries with the time at which each is given up.
    asked: VecDeque<(u64, u64)>,
}

/// Listens until the node has ended.
pub(super) async fn run(shared: Arc<CloneShared>, asking: StdSocket, group: StdSocket) {
    let NodeLoads::Broadcast { interval: mean, .. } = shared.config.loads else { return };
    let watched = inquirer(&shared.config)
        .and_then(|inquirer| Ok((inquirer, UdpSocket::from_std(asking)?, UdpSocket::from_std(group)?)));
    let (inquirer, asking, group) = match watched {
        Ok(watched) => watched,
        Err(error) => return tracing::error!(%error, "announcements of nodes are not heard"),
    };
    let mut look = interval((mean / 2).clamp(SHORTEST_LOOK, LOOK));
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let hearing = Hearing::new(nanos(mean));
    let mut listener =
        Listener { shared, asking, began: Instant::now(), inquirer, hearing, asked: VecDeque::new() };
    let (mut answer, mut announced) = ([0; DATAGRAM_BYTES + 1], [0; DATAGRAM_BYTES + 1]);
    while !listener.shared.has_ended() {
        let received = tokio::select! {
            received = listener.asking.recv(&mut answer) =>
                received.map(|bytes| listener.answer(&answer[..bytes])),
            received = group.recv(&mut announced) => received.map(|bytes| listener.announced(&announced[..bytes])),
            _ = look.tick() => {
                listener.look();
                Ok(())
            }
        };
        if let Err(error) = received {
            tracing::debug!(%error, "announcements could not be read");
            sleep(AFTER_FAILURE).await;
        }
    }
}

impl Listener {
    fn now_ns(&self) -> u64 {
        nanos(self.began.elapsed())
    }

    fn announced(&mut self, datagram: &[u8]) {
        // One of an unknown boot: it is asked when the time has come, if it is one of ours.
        let Ok(Announced { peer, load, latency_us, interval_ns }) =
            self.inquirer.take_announcement(datagram, self.now_ns())
        else {
            return;
        };
        match load {
            Some(load) => self.heard(peer, load, latency_us, Some(interval_ns)),
            None => self.shared.mapping.report_neutral(BackendId::new(peer)),
        }
    }

    fn answer(&mut self, datagram: &[u8]) {
        match self.inquirer.take(datagram, self.now_ns()) {
            Ok(LoadTaken::Load { peer, load, latency_us, .. }) => self.heard(peer, load, latency_us, None),
            Ok(LoadTaken::Implausible { peer, .. }) => {
                self.shared.mapping.report_neutral(BackendId::new(peer));
            }
            Ok(LoadTaken::Renewed { .. }) | Err(_) => {}
        }
    }

    fn heard(&mut self, node: usize, load: u32, latency_us: u32, interval_ns: Option<u64>) {
        let now_ns = self.now_ns();
        self.hearing.heard(node, interval_ns, now_ns);
        let latency = (latency_us > 0).then(|| Nanos::new(u64::from(latency_us) * 1000));
        self.shared.mapping.report(&LoadReport { backend: BackendId::new(node), load, latency });
    }

    /// Tells the own load, asks nodes that are not known or were silent; who was silent for long counts as loaded like the others.
    fn look(&mut self) {
        let shared = Arc::clone(&self.shared);
        let now_ns = self.now_ns();
        while let Some(&(due_ns, sequence)) = self.asked.front()
            && due_ns <= now_ns
        {
            self.asked.pop_front();
            self.inquirer.give_up(sequence);
        }
        for node in (0..=shared.config.peers.len()).map(BackendId::new) {
            let Some(place) = shared.mapping.place_of(node) else { continue };
            if place == NodePlace::Here {
                shared.mapping.report(&LoadReport::of(node, shared.config.gauge.load()));
                continue;
            }
            let Some(address) = told_at(&shared.config, place) else { continue };
            let quiet = self.hearing.half_intervals(node.index(), now_ns) >= 3;
            if (quiet || !self.inquirer.knows(node.index()))
                && let Some((sequence, inquiry)) = self.inquirer.ask(node.index(), now_ns)
            {
                self.asked.push_back((now_ns.saturating_add(ANSWER_NS), sequence));
                if let Err(error) = self.asking.try_send_to(&inquiry, address) {
                    tracing::debug!(%error, %address, "an inquiry was not sent");
                }
            }
            if self.hearing.is_silent(node.index(), now_ns) {
                shared.mapping.report_neutral(node);
            }
        }
    }
}
