//! Listens to agents that announce their loads.
//!
//! An announcement counts when its boot id is known. The front-end learns it by asking that back-end's agent, at its address,
//! and takes no other one's word for it; so an announcement cannot be passed off as another back-end's. Agents of which
//! nothing was heard for one interval and a half are asked, too: their answers count like announcements.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use plimsoll_policy::{BackendId, LoadReport, Nanos};
use plimsoll_wire::load::{Announced, DATAGRAM_BYTES, LoadInquirer, LoadRefusal, LoadTaken};
use tokio::net::UdpSocket;

use super::header::look_for_silent;
use super::silence_told::{agent_answers, agent_is_silent};
use crate::shared::FrontEndShared;

/// How long an answer is waited for.
const ANSWER_NS: u64 = 500_000_000;
/// How often it looks for silent agents, at least and at most.
const LOOKS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// Pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

struct Listener {
    shared: Arc<FrontEndShared>,
    socket: UdpSocket,
    inquirer: LoadInquirer,
    /// Inquiries with the time at which each is given up.
    asked: VecDeque<(u64, u64)>,
    /// Where each back-end's agent was asked.
    addresses: std::collections::BTreeMap<usize, std::net::SocketAddr>,
}

/// Listens until it is dropped.
pub(crate) async fn listen(shared: Arc<FrontEndShared>) {
    let information = &shared.load_information;
    let sockets = information.sockets.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (Some(sockets), Some(inquirer)) = (sockets, information.inquirer()) else { return };
    let watched = UdpSocket::from_std(sockets.asking)
        .and_then(|asking| Ok((asking, sockets.group.map(UdpSocket::from_std).transpose()?)));
    let (socket, group) = match watched {
        Ok(watched) => watched,
        Err(error) => return tracing::error!(%error, "announcements are not heard"),
    };
    let mut look = tokio::time::interval((information.config.interval / 2).clamp(LOOKS.0, LOOKS.1));
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let asked = VecDeque::new();
    let mut listener = Listener {
        shared: Arc::clone(&shared),
        socket,
        inquirer,
        asked,
        addresses: std::collections::BTreeMap::new(),
    };
    // One byte more than a datagram has: a longer one is told from one that was cut.
    let (mut buffer, mut of_group) = ([0; DATAGRAM_BYTES + 1], [0; DATAGRAM_BYTES + 1]);
    loop {
        let received = tokio::select! {
            received = listener.socket.recv(&mut buffer) => received.map(|bytes| &buffer[..bytes]),
            received = heard_in(group.as_ref(), &mut of_group) => received.map(|bytes| &of_group[..bytes]),
            _ = look.tick() => {
                listener.look();
                continue;
            }
        };
        match received {
            Ok(datagram) => listener.take(datagram),
            Err(error) => {
                tracing::debug!(%error, "announcements could not be read");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }
}

/// The length of what is said next in the group, if there is one.
async fn heard_in(group: Option<&UdpSocket>, buffer: &mut [u8]) -> std::io::Result<usize> {
    match group {
        Some(group) => group.recv(buffer).await,
        None => std::future::pending().await,
    }
}

impl Listener {
    fn take(&mut self, datagram: &[u8]) {
        /// The place and the value of the kind of a datagram: announcement.
        const IS_ANNOUNCEMENT: (usize, u8) = (3, 4);
        let now_ns = self.shared.load_information.now_ns();
        if datagram.get(IS_ANNOUNCEMENT.0) == Some(&IS_ANNOUNCEMENT.1) {
            match self.inquirer.take_announcement(datagram, now_ns) {
                Ok(Announced { peer, load: Some(load), latency_us, interval_ns }) => {
                    self.heard(peer, load, latency_us, Some(interval_ns));
                }
                Ok(Announced { peer, load: None, .. }) => self.lies(peer),
                // It is asked when the time has come, if it is one of ours.
                Err(LoadRefusal::UnknownBoot) | Err(_) => {}
            }
            return;
        }
        match self.inquirer.take(datagram, now_ns) {
            Ok(LoadTaken::Load { peer, load, latency_us, .. }) => self.heard(peer, load, latency_us, None),
            Ok(LoadTaken::Implausible { peer, .. }) => self.lies(peer),
            Ok(LoadTaken::Renewed { .. }) | Err(_) => {}
        }
    }

    fn heard(&self, peer: usize, load: u32, latency_us: u32, interval_ns: Option<u64>) {
        let information = &self.shared.load_information;
        information.counts.reports.add(1);
        information.hearing().heard(peer, interval_ns, information.now_ns());
        agent_answers(&self.shared, BackendId::new(peer));
        let latency = (latency_us > 0).then(|| Nanos::new(u64::from(latency_us) * 1000));
        self.shared.dispatch.report(&LoadReport { backend: BackendId::new(peer), load, latency });
    }

    fn lies(&self, peer: usize) {
        let neutral = self.shared.dispatch.report_mean(BackendId::new(peer));
        self.shared.load_information.counts.neutral.add(u64::from(neutral));
    }

    /// Asks agents that are not known or were silent; who was silent for long counts as loaded like the others.
    fn look(&mut self) {
        let shared = Arc::clone(&self.shared);
        let information = &shared.load_information;
        let now_ns = information.now_ns();
        while let Some(&(due_ns, sequence)) = self.asked.front()
            && due_ns <= now_ns
        {
            self.asked.pop_front();
            self.inquirer.give_up(sequence);
        }
        for backend in shared.backends.load().iter().filter(|backend| !backend.is_retired()) {
            let index = backend.id.index();
            let Some(address) = backend.load_address() else { continue };
            if self.addresses.insert(index, address) != Some(address) {
                self.inquirer.forget(index);
            }
            let quiet = information.hearing().half_intervals(index, now_ns) >= 3;
            if quiet || !self.inquirer.knows(index) {
                self.ask(index, address, now_ns);
            }
        }
        for backend in look_for_silent(&shared) {
            agent_is_silent(&shared, backend);
        }
    }

    fn ask(&mut self, index: usize, address: std::net::SocketAddr, now_ns: u64) {
        let Some((sequence, inquiry)) = self.inquirer.ask(index, now_ns) else { return };
        self.shared.load_information.counts.inquiries.add(1);
        self.asked.push_back((now_ns.saturating_add(ANSWER_NS), sequence));
        if let Err(error) = self.socket.try_send_to(&inquiry, address) {
            tracing::debug!(%error, %address, "an inquiry was not sent");
        }
    }
}
