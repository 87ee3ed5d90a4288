//! Asks other nodes for their loads, for requests that wait for that, and ahead of them: `--clone-loads poll`.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_exchange::{Outgoing, PollEvent, PollsUnderWay};
use plimsoll_policy::{BackendId, Candidates, LoadReport};
use plimsoll_wire::load::{DATAGRAM_BYTES, InquiryLimits, LoadInquirer, LoadKeys};
use plimsoll_wire::random;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::asks::PollAsked;
use super::config::{CloneConfig, NodeLoads};
use super::heard_sizes::nanos;
use super::mapping::NodePlace;
use super::shared::CloneShared;

/// How often it looks whether the node has ended.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// Pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

/// Where the nodes of a mapping tell their loads; `None` for this one.
pub(super) fn told_at(config: &CloneConfig, place: NodePlace) -> Option<SocketAddr> {
    match place {
        NodePlace::Here => None,
        NodePlace::Peer(peer) => {
            let peer = config.peers.get(peer)?;
            Some(SocketAddr::new(peer.address.ip(), config.load_port))
        }
    }
}

/// An inquirer with the nodes' key.
///
/// # Errors
/// When the system provides no random numbers.
pub(super) fn inquirer(config: &CloneConfig) -> std::io::Result<LoadInquirer> {
    Ok(LoadInquirer::new(LoadKeys::new(&config.key), random::<8>()?, InquiryLimits::default()))
}

struct Polling {
    shared: Arc<CloneShared>,
    socket: UdpSocket,
    began: Instant,
    polls: PollsUnderWay,
    next: u64,
    /// By number: who waits, and what was heard of without asking.
    waiting: BTreeMap<u64, (oneshot::Sender<Candidates>, Candidates)>,
}

/// Asks until the node has ended.
pub(super) async fn run(
    shared: Arc<CloneShared>,
    socket: StdSocket,
    mut asked: UnboundedReceiver<PollAsked>,
) {
    let NodeLoads::Poll { timeout, max_age, .. } = shared.config.loads else { return };
    let watched = inquirer(&shared.config).and_then(|inquirer| Ok((inquirer, UdpSocket::from_std(socket)?)));
    let (inquirer, socket) = match watched {
        Ok(watched) => watched,
        Err(error) => return tracing::error!(%error, "nodes cannot be asked for their loads"),
    };
    let polls = PollsUnderWay::new(inquirer, nanos(timeout), nanos(max_age));
    let mut polling =
        Polling { shared, socket, began: Instant::now(), polls, next: 0, waiting: BTreeMap::new() };
    // One byte more than a datagram has: a longer one is told from one that was cut.
    let mut buffer = [0; DATAGRAM_BYTES + 1];
    while !polling.shared.has_ended() {
        let due = polling.due().min(LOOK);
        tokio::select! {
            Some(asked) = asked.recv() => polling.begin(asked),
            received = polling.socket.recv(&mut buffer) => match received {
                Ok(bytes) => {
                    let mut events = Vec::new();
                    let now_ns = polling.now_ns();
                    let outgoing = polling.polls.take(&buffer[..bytes], now_ns, &mut events);
                    polling.go_on(&outgoing, events);
                }
                Err(error) => {
                    tracing::debug!(%error, "answers of nodes could not be read");
                    sleep(AFTER_FAILURE).await;
                }
            },
            () = sleep(due) => {
                let events = polling.polls.expire(polling.now_ns());
                polling.go_on(&Vec::new(), events);
            }
        }
    }
}

impl Polling {
    fn now_ns(&self) -> u64 {
        nanos(self.began.elapsed())
    }

    /// Time until something expires.
    fn due(&self) -> Duration {
        let now_ns = self.now_ns();
        self.polls.next_due_ns().map_or(LOOK, |at_ns| Duration::from_nanos(at_ns.saturating_sub(now_ns)))
    }

    fn begin(&mut self, asked: PollAsked) {
        let mapping = &self.shared.mapping;
        let (mut others, mut heard) = (Vec::new(), Candidates::NONE);
        for &node in asked.nodes.as_slice() {
            match mapping.place_of(node) {
                Some(NodePlace::Peer(_)) => others.push(node),
                Some(NodePlace::Here) => {
                    mapping.report(&LoadReport::of(node, self.shared.config.gauge.load()));
                    heard.push(node);
                }
                None => {}
            }
        }
        let number = self.next;
        self.next += 1;
        let waits = asked.heard.is_some();
        if let Some(sender) = asked.heard {
            self.waiting.insert(number, (sender, heard));
        }
        let now_ns = self.now_ns();
        let (outgoing, events) = self.polls.begin(waits.then_some(number), others.into_iter(), now_ns);
        self.go_on(&outgoing, events);
    }

    fn go_on(&mut self, outgoing: &Outgoing, events: Vec<PollEvent>) {
        for (node, datagram) in outgoing {
            let place = self.shared.mapping.place_of(*node);
            let Some(address) = place.and_then(|place| told_at(&self.shared.config, place)) else { continue };
            if let Err(error) = self.socket.try_send_to(datagram, address) {
                tracing::debug!(%error, %address, "an inquiry was not sent");
            }
        }
        for event in events {
            match event {
                PollEvent::Answered { number, heard, .. } => self.answered(number, heard),
                PollEvent::Told(report) => self.shared.mapping.report(&report),
                PollEvent::Discarded(_) => {}
                PollEvent::Silent(node) | PollEvent::Implausible(node) => {
                    self.shared.mapping.report_neutral(node);
                }
            }
        }
    }

    fn answered(&mut self, number: u64, heard: Candidates) {
        let Some((sender, mut all)) = self.waiting.remove(&number) else { return };
        heard.as_slice().iter().for_each(|&node: &BackendId| all.push(node));
        // Whoever waited may be gone.
        let _ = sender.send(all);
    }
}
