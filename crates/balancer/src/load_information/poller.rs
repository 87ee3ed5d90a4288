//! Asks agents over UDP, for one worker.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_policy::{BackendId, Candidates};
use tokio::net::UdpSocket;
use tokio::sync::Notify;

use super::kernel_timer::KernelTimer;
use super::silence_told::{agent_answers, agent_is_silent};
use super::{LoadIntake, nanos};
use crate::dispatch::{AsksBackends, PartitionedDispatch, PollNews};
use crate::shared::FrontEndShared;
use plimsoll_exchange::{Outgoing, PollEvent, PollsUnderWay};

/// A poll ends by so much before its time-out, of which it is a tenth at most: what follows takes its time, too.
const AFTERWARDS: Duration = Duration::from_micros(500);
/// A lone request's answers are waited for in its thread for so long at most.
const HERE: Duration = Duration::from_micros(100);
/// After so many in a row whose answers took longer,
const SLOW_IN_A_ROW: u32 = 3;
/// so many lone requests wait by way of the runtime, before the next one tries.
const ELSEWHERE_FOR: u32 = 100;
/// Datagrams that are read before others have their turn.
const AT_ONCE: usize = 64;

struct PollerState {
    polls: PollsUnderWay,
    /// Where each back-end's agent was asked.
    addresses: BTreeMap<BackendId, SocketAddr>,
}

/// A socket that the runtime watches, and the same one for reading at once: the runtime knows of what has come only once it has
/// asked the system.
struct PollSocket {
    watched: UdpSocket,
    direct: std::net::UdpSocket,
}

impl PollSocket {
    fn bind(address: &str) -> io::Result<Self> {
        let direct = std::net::UdpSocket::bind(address)?;
        direct.set_nonblocking(true)?;
        Ok(Self { watched: UdpSocket::from_std(direct.try_clone()?)?, direct })
    }
}

/// Asks agents. Any thread may; the worker that has it takes the answers.
pub(crate) struct LoadPoller {
    shared: Arc<FrontEndShared>,
    v4: Option<PollSocket>,
    v6: Option<PollSocket>,
    near: NearAgents,
    state: Mutex<PollerState>,
    /// Goes off when a poll's time is up.
    timer: KernelTimer,
    /// Whether it is set.
    timer_is_set: AtomicBool,
    /// There is something to wait for.
    begun: Notify,
}

impl LoadPoller {
    /// Sockets of the current runtime. `None` where nobody is to be asked, or the system has no sockets to give.
    pub(crate) fn new(shared: &Arc<FrontEndShared>) -> Option<Arc<Self>> {
        let information = &shared.load_information;
        let inquirer = information.inquirer()?;
        let bound = |address: &str| {
            let socket = PollSocket::bind(address);
            socket.inspect_err(|error| tracing::debug!(%error, address, "no socket to ask agents by")).ok()
        };
        let (v4, v6) = (bound("0.0.0.0:0"), bound("[::]:0"));
        if v4.is_none() && v6.is_none() {
            tracing::error!("agents are not asked: the system gives no sockets");
            return None;
        }
        let timer = KernelTimer::new();
        let timer = timer.inspect_err(|error| tracing::error!(%error, "agents are not asked")).ok()?;
        let timeout = information.config.timeout;
        let early = timeout.saturating_sub(AFTERWARDS.min(timeout / 10));
        let polls = PollsUnderWay::new(inquirer, nanos(early), nanos(information.config.max_age));
        let state = Mutex::new(PollerState { polls, addresses: BTreeMap::new() });
        let (near, timer_is_set, begun) = (NearAgents::default(), AtomicBool::new(false), Notify::new());
        let shared = Arc::clone(shared);
        Some(Arc::new(Self { shared, v4, v6, near, state, timer, timer_is_set, begun }))
    }

    fn information(&self) -> &LoadIntake {
        &self.shared.load_information
    }

    fn lock(&self) -> MutexGuard<'_, PollerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, number: Option<u64>, candidates: Candidates) {
        let backends = self.shared.backends.load();
        let counts = &self.information().counts;
        let now_ns = self.information().now_ns();
        let (mut state, mut forgotten) = (self.lock(), Vec::new());
        let mut targets: Vec<BackendId> = Vec::with_capacity(candidates.as_slice().len());
        for &backend in candidates.as_slice() {
            let known = backends.get(backend.index()).and_then(|backend| backend.load_address());
            let Some(address) = known else { continue };
            if state.addresses.insert(backend, address) != Some(address) {
                forgotten.extend(state.polls.forget(backend, now_ns));
            }
            targets.push(backend);
        }
        let (outgoing, events) = state.polls.begin(number, targets.iter().copied(), now_ns);
        counts.shared.add(targets.len().saturating_sub(outgoing.len()) as u64);
        counts.polls.add(u64::from(number.is_some()));
        self.send(&state, &outgoing);
        drop(state);
        // Whoever has just found nothing due unset it before.
        if !self.timer_is_set.load(Ordering::SeqCst) {
            self.begun.notify_one();
        }
        self.carry_out(forgotten);
        self.carry_out(events);
    }

    fn send(&self, state: &PollerState, outgoing: &Outgoing) {
        for (backend, datagram) in outgoing {
            self.information().counts.inquiries.add(1);
            let Some(&address) = state.addresses.get(backend) else { continue };
            let socket = if address.is_ipv4() { &self.v4 } else { &self.v6 };
            // One that is not sent is as one that is lost.
            if let Some(Err(error)) = socket.as_ref().map(|socket| socket.direct.send_to(datagram, address)) {
                tracing::debug!(%error, %address, "an inquiry was not sent");
            }
        }
    }

    fn carry_out(&self, events: Vec<PollEvent>) {
        let (dispatch, counts) = (&self.shared.dispatch, &self.information().counts);
        // What comes together is passed on together.
        let mut news = Vec::with_capacity(events.len());
        for event in events {
            match event {
                PollEvent::Answered { number, heard, took_ns } => {
                    counts.poll_time.add(Duration::from_nanos(took_ns));
                    news.push(PollNews::Ended { number, heard });
                }
                PollEvent::Told(report) => {
                    counts.answers.add(1);
                    agent_answers(&self.shared, report.backend);
                    news.push(PollNews::Told(report));
                }
                PollEvent::Discarded(_) => counts.discarded.add(1),
                PollEvent::Silent(backend) | PollEvent::Implausible(backend) => {
                    if event == PollEvent::Silent(backend) {
                        agent_is_silent(&self.shared, backend);
                    }
                    pass_on(dispatch, &mut news);
                    counts.neutral.add(u64::from(dispatch.report_mean(backend)));
                }
            }
        }
        pass_on(dispatch, &mut news);
    }

    /// Reads what has come.
    fn read(&self, receive: impl Fn(&mut [u8]) -> io::Result<usize>) {
        // A datagram that is longer than ours is told from one that was cut.
        let mut buffer = [0; plimsoll_wire::load::DATAGRAM_BYTES + 1];
        let (mut state, mut events) = (self.lock(), Vec::new());
        for _ in 0..AT_ONCE {
            match receive(&mut buffer) {
                Ok(bytes) => {
                    let now_ns = self.information().now_ns();
                    let outgoing = state.polls.take(&buffer[..bytes], now_ns, &mut events);
                    self.send(&state, &outgoing);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => tracing::debug!(%error, "an answer could not be read"),
            }
        }
        drop(state);
        self.carry_out(events);
    }

    /// Takes answers, and ends polls whose time is up, until it is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        // Polls end in the order in which they begin, so it goes off early at worst.
        loop {
            let is_set = self.timer_is_set.load(Ordering::SeqCst);
            let due_ns = self.lock().polls.next_due_ns().filter(|_| !is_set);
            if let Some(due_ns) = due_ns {
                let left = Duration::from_nanos(due_ns.saturating_sub(self.information().now_ns()));
                self.timer_is_set.store(self.timer.set(left).is_ok(), Ordering::SeqCst);
            }
            tokio::select! {
                () = readable(self.v4.as_ref()) => self.read_some(self.v4.as_ref()),
                () = readable(self.v6.as_ref()) => self.read_some(self.v6.as_ref()),
                () = self.begun.notified() => {}
                _ = self.timer.gone_off() => {
                    self.timer_is_set.store(false, Ordering::SeqCst);
                    let events = self.lock().polls.expire(self.information().now_ns());
                    self.carry_out(events);
                }
            }
        }
    }

    /// What is left stays readable: others have their turn, and the timer.
    fn read_some(&self, socket: Option<&PollSocket>) {
        if let Some(socket) = socket {
            self.read(|buffer| Ok(socket.watched.try_recv_from(buffer)?.0));
        }
    }

    /// Waits here for the answers to a lone request: where back-ends are near, the way through the runtime takes longer than they do.
    ///
    /// It looks again and again and does not sleep, because to wake up takes as long as an answer; who else wants this CPU has it.
    fn wait_here(&self, number: u64) {
        if !self.near.is_tried() {
            return;
        }
        let asks_v6 = self.lock().addresses.values().any(SocketAddr::is_ipv6);
        let sockets = [self.v4.as_ref(), self.v6.as_ref().filter(|_| asks_v6)];
        let began = Instant::now();
        while self.lock().polls.is_waiting(number) {
            if began.elapsed() > HERE {
                self.near.took_long();
                return;
            }
            for socket in sockets.into_iter().flatten() {
                self.read(|buffer| Ok(socket.direct.recv_from(buffer)?.0));
            }
            std::thread::yield_now();
        }
        self.near.was_quick();
    }
}

/// Whether agents are so near that their answers are worth waiting for in a thread. Where they are not, it is rarely tried.
#[derive(Debug, Default)]
struct NearAgents {
    /// How often in a row they took long.
    slow: AtomicU32,
    /// Lone requests that wait by way of the runtime, before the next one tries.
    elsewhere: AtomicU32,
}

impl NearAgents {
    fn is_tried(&self) -> bool {
        let before =
            self.elsewhere.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        before.is_err()
    }

    fn was_quick(&self) {
        self.slow.store(0, Ordering::Relaxed);
    }

    fn took_long(&self) {
        if self.slow.fetch_add(1, Ordering::Relaxed).saturating_add(1) >= SLOW_IN_A_ROW {
            self.slow.store(SLOW_IN_A_ROW - 1, Ordering::Relaxed);
            self.elsewhere.store(ELSEWHERE_FOR, Ordering::Relaxed);
        }
    }
}

fn pass_on(dispatch: &PartitionedDispatch, news: &mut Vec<PollNews>) {
    if !news.is_empty() {
        dispatch.take_in(news);
        news.clear();
    }
}

async fn readable(socket: Option<&PollSocket>) {
    match socket {
        Some(socket) => drop(socket.watched.readable().await),
        None => std::future::pending().await,
    }
}

impl AsksBackends for LoadPoller {
    fn poll(&self, number: u64, candidates: Candidates, alone: bool) {
        self.ask(Some(number), candidates);
        if alone {
            self.wait_here(number);
        }
    }

    fn probe(&self, candidates: Candidates) {
        self.ask(None, candidates);
    }

    fn timeout(&self) -> Duration {
        self.information().config.timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_that_are_slow_several_times_in_a_row_are_rarely_waited_for() {
        let near = NearAgents::default();
        let tried = |lone: u32| (0..lone).filter(|_| near.is_tried()).count();
        near.took_long();
        near.took_long();
        near.was_quick();
        near.took_long();
        near.took_long();
        assert_eq!(tried(5), 5, "now and then one is slow");
        near.took_long();
        assert_eq!(tried(ELSEWHERE_FOR), 0);
        assert_eq!(tried(1), 1);
        near.took_long();
        assert_eq!(tried(ELSEWHERE_FOR), 0, "still slow");
        assert!(near.is_tried());
        near.was_quick();
        near.took_long();
        assert_eq!(tried(5), 5);
    }
}
