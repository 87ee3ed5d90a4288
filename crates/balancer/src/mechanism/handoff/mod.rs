//! The mechanism `handoff`: a back-end gets the client's connection itself, and answers the client directly.
//!
//! `carry` decides for each request whether its connection goes ([`Handing`]); [`Handoffs::hand_off`] sends it on its way; `messages` follows what the agents tell; `recover` deals with everything that goes another way.
//! Each worker has its own links and its own connections; what they share is in [`System`].

mod active;
mod carry;
mod leaving;
mod leftovers;
mod link;
mod messages;
mod metrics;
mod offers;
mod recover;
mod registry;
mod system;
mod table;

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_config::Placement;
use plimsoll_datapath::Flow;
use plimsoll_datapath::tcp::{self, Frozen, TcpState};
use plimsoll_policy::BackendId;
use plimsoll_wire::message::{Conn, ToAgent};
use socket2::SockRef;

use crate::accepted::{Accepted, Start};
use crate::backend::Backend;
use crate::net::halves::ClientIo;
use crate::worker::Worker;
use leaving::FlowEnd;
use system::Told;
use table::{Expected, HandoffEntry, HandoffPhase, HandoffTable};

pub(crate) use active::Active;
pub(crate) use link::AgentLink;
pub(crate) use system::System;

/// How long the packets of a connection that is over are forwarded at least.
const LINGER: Duration = Duration::from_secs(2);
/// How long its client has to be quiet before it is forgotten.
const QUIET: Duration = Duration::from_secs(1);
/// The same when the front-end stops.
const SHORT_QUIET: Duration = Duration::from_millis(200);
/// How long a client has to tell its sequence numbers when it is asked, and how often it is asked.
const ANSWER_TIME: Duration = Duration::from_millis(200);
const MOST_QUESTIONS: u8 = 6;
/// The time to take over where nothing is configured any more.
const DEFAULT_TAKE_OVER: Duration = Duration::from_millis(500);
/// Room for an encoded state that is kept for the next one.
const MOST_KEPT_BYTES: usize = 64 << 10;

/// A connection that is to be handed off.
pub(crate) struct Handing {
    /// What its client has sent and nobody has answered; begins with the request's head.
    pub(crate) bytes: Vec<u8>,
    /// The request.
    pub(crate) request: Active,
    /// Where it goes.
    pub(crate) link: Rc<AgentLink>,
    /// Requests on it so far, this one included.
    pub(crate) requests: u64,
}

/// What a worker has handed off, and to whom it can hand off.
pub(crate) struct Handoffs {
    pub(crate) system: Arc<System>,
    /// By the index of their back-ends' ids.
    links: RefCell<Vec<Option<Rc<AgentLink>>>>,
    /// The back-ends for which there are links.
    known: RefCell<Option<Arc<Vec<Arc<Backend>>>>>,
    table: RefCell<HandoffTable>,
    /// When the leases of handoffs that were not answered are over.
    pending: RefCell<VecDeque<(Instant, Conn)>>,
    /// Flows of connections that an agent may have taken over without saying so.
    doubted: RefCell<BTreeSet<Flow>>,
    /// Room for an encoded state.
    encoded: RefCell<Vec<u8>>,
}

impl Handoffs {
    /// Of one worker.
    fn of_worker(system: Arc<System>, worker: usize) -> Rc<Self> {
        Rc::new(Self {
            links: RefCell::default(),
            known: RefCell::default(),
            table: RefCell::new(HandoffTable::new(Arc::clone(&system), worker)),
            system,
            pending: RefCell::default(),
            doubted: RefCell::default(),
            encoded: RefCell::default(),
        })
    }

    /// The link to the agent of a back-end, if it can take another connection now.
    pub(crate) fn link(&self, backend: BackendId) -> Option<Rc<AgentLink>> {
        let links = self.links.borrow();
        let link = links.get(backend.index())?.as_ref()?;
        link.has_room().then(|| Rc::clone(link))
    }

    /// Hands a connection off. Whatever goes wrong, the connection stays here and its request is proxied.
    fn hand_off(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        stream: impl ClientIo,
        accepted: &Rc<Accepted>,
        handing: Handing,
    ) {
        let stays = |fd: OwnedFd, handing: Handing| {
            self.system.counts.kept.add(1);
            let given = handing.request.account.into_assignment();
            let start = Start { requests: handing.requests - 1, given, stays: true, input: handing.bytes };
            recover::resume(worker, fd, accepted, start);
        };
        let fd = match stream.into_socket() {
            Ok(fd) => fd,
            Err(error) => {
                tracing::error!(%error, "a connection could not be taken from the event queue");
                return worker.count_closed();
            }
        };
        let local = accepted.local.or_else(|| SockRef::from(&fd).local_addr().ok()?.as_socket());
        let (Some(local), Some(hop)) = (local, handing.link.hop()) else { return stays(fd, handing) };
        let flow = Flow::new(accepted.peer, local);
        if !self.system.registry().leaving.remove(&flow) && !self.system.take_flow() {
            return stays(fd, handing);
        }
        // First the entry: what arrives from now on waits for the connection at the back-end.
        if !self.system.lead_anew(&flow, &hop, handing.link.id) {
            self.system.free_flow();
            return stays(fd, handing);
        }
        let frozen = match Frozen::freeze(fd) {
            Ok(frozen) => frozen,
            Err(failed) => {
                self.take_off(&flow);
                return stays(failed.fd, handing);
            }
        };
        match frozen.snapshot(&flow, &handing.bytes, state_limits(worker)) {
            Ok(state) => {
                // No child process of this one has a copy of the descriptor, which this would not wait for.
                drop(frozen);
                let conn = self.table.borrow_mut().next_conn();
                let mut entry =
                    HandoffEntry::new(conn, flow, handing.link, Rc::clone(accepted), handing.requests);
                entry.active = Some(Box::new(handing.request));
                self.send(worker, entry, state);
            }
            Err(error) => {
                tracing::debug!(%error, "a connection cannot travel");
                // The flow is there until the socket is: the kernel ends no frozen connection, should this process die.
                self.system.lead_here(&flow);
                let thawed = frozen.thaw();
                self.take_off(&flow);
                match thawed {
                    Ok(fd) => stays(fd, handing),
                    Err(error) => {
                        tracing::warn!(%error, "a connection was lost");
                        worker.count_closed();
                    }
                }
            }
        }
    }

    /// Hands a connection that came back on to another agent.
    fn hand_on(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        mut entry: HandoffEntry,
        next: &Rc<AgentLink>,
        state: TcpState,
        from: (&Rc<AgentLink>, Conn),
    ) {
        let led = next.hop().is_some_and(|hop| self.system.lead(&entry.flow, &hop, next.id));
        from.0.push_later(&ToAgent::Released { conn: from.1 });
        if led {
            self.system.counts.handed_on.add(1);
            entry.link = Rc::clone(next);
            entry.conn = self.table.borrow_mut().next_conn();
            self.send(worker, entry, state);
        } else {
            recover::restore(worker, self, entry, &state);
        }
    }

    /// Sends a connection, whose flow leads there already, to the agent of its entry's link.
    fn send(self: &Rc<Self>, worker: &Rc<Worker>, mut entry: HandoffEntry, state: TcpState) {
        let (conn, link) = (entry.conn, Rc::clone(&entry.link));
        let now = Instant::now();
        let config = worker.config();
        let config = config.handoff.as_ref();
        let take_over = config.map_or(DEFAULT_TAKE_OVER, |h| h.take_over_timeout);
        let ask = config.is_none_or(|h| h.placement == Placement::Request);
        let lease = link.lease(self.system.now_ns(), take_over);
        let mut bytes = self.encoded.take();
        bytes.clear();
        state.encode(&mut bytes);
        let request = u32::try_from(entry.requests.saturating_sub(1)).unwrap_or(u32::MAX);
        let message = ToAgent::Handoff { conn, request, lease_until_ns: lease.until_ns, ask, state: &bytes };
        let sent = link.push(&message);
        if bytes.capacity() <= MOST_KEPT_BYTES {
            self.encoded.replace(bytes);
        }
        entry.expected = Some(Expected::of(&state));
        entry.phase = HandoffPhase::Pending { state: Box::new(state), since: now };
        self.table.borrow_mut().insert(entry);
        if sent {
            link.unanswered();
            let wait = Duration::from_nanos(lease.over_at_ns.saturating_sub(self.system.now_ns()));
            self.pending.borrow_mut().push_back((now + wait, conn));
        } else {
            recover::take_back(worker, self, conn, recover::TakeBackReason::Refused);
        }
    }

    /// A flow that was to lead away does not: also where an earlier connection of the same client is not yet known to be over.
    fn take_off(&self, flow: &Flow) {
        self.system.unlead(flow);
        self.system.free_flow();
    }

    fn next_overdue(&self, now: Instant) -> Option<Conn> {
        let mut pending = self.pending.borrow_mut();
        let (at, conn) = *pending.front()?;
        if at > now && self.table.borrow_mut().find(conn).is_some_and(|e| e.is_pending()) {
            return None;
        }
        pending.pop_front();
        Some(conn)
    }

    /// Packets of this flow come to this front-end from now on.
    fn forget(&self, flow: Flow) {
        if !self.is_reused(&flow) {
            self.system.unlead(&flow);
        }
        self.system.free_flow();
    }

    /// Whether another connection of the same client has this flow by now: its client began anew from the same port before
    /// the agent told of the old one's end.
    fn is_reused(&self, flow: &Flow) -> bool {
        self.system.registry().is_owned(flow)
    }

    /// A connection is over at its back-end: what its client still sends goes there for a while.
    fn forget_later(&self, flow: Flow) {
        if !self.is_reused(&flow) {
            self.system.end(&flow);
        }
        self.leave(flow, FlowEnd::Forget, Instant::now() + LINGER);
    }

    /// This is done about a flow then, unless an agent has adopted it.
    fn leave(&self, flow: Flow, then: FlowEnd, at: Instant) {
        let mut registry = self.system.registry();
        if registry.is_owned(&flow) {
            drop(registry);
            self.system.free_flow();
        } else {
            let replaced = registry.leaving.add(flow, then, at);
            drop(registry);
            if replaced {
                // Two connections of it in a row, counted once each: it is one flow.
                self.system.free_flow();
            }
        }
    }

    fn sweep_leaving(&self, now: Instant) {
        loop {
            let next = self.system.registry().leaving.next(now);
            let Some((flow, then)) = next else { return };
            let quiet = match then {
                _ if self.is_reused(&flow) => true,
                FlowEnd::Forget => self.system.forget(&flow, QUIET),
                FlowEnd::Reset { expected, questions } => {
                    let quiet = questions > 0 || !self.system.is_busy(&flow, QUIET);
                    if quiet {
                        let told = recover::reset(self, flow, expected);
                        if told == Told::Asked && questions < MOST_QUESTIONS {
                            let then = FlowEnd::Reset { expected, questions: questions + 1 };
                            self.leave(flow, then, now + ANSWER_TIME);
                            continue;
                        }
                        if !self.is_reused(&flow) {
                            self.system.unlead(&flow);
                        }
                    }
                    quiet
                }
            };
            if quiet {
                self.system.free_flow();
            } else {
                self.leave(flow, then, now + LINGER);
            }
        }
    }

    /// Has a retired agent close what is idle; true when it has nothing left.
    fn retire(&self, link: &Rc<AgentLink>) -> bool {
        let mut table = self.table.borrow_mut();
        let mut left = 0;
        for entry in table.iter_mut().filter(|e| Rc::ptr_eq(&e.link, link)) {
            left += 1;
            entry.close_if_idle();
        }
        left == 0
    }

    /// Makes links to the agents of the back-ends that there are now.
    fn update_links(self: &Rc<Self>, worker: &Rc<Worker>) {
        let backends = worker.shared.backends.load_full();
        if self.known.borrow().as_ref().is_some_and(|known| Arc::ptr_eq(known, &backends)) {
            return;
        }
        let mut links = self.links.borrow_mut();
        links.resize_with(backends.len(), || None);
        for (backend, slot) in backends.iter().zip(links.iter_mut()) {
            let wanted = backend.agent.filter(|_| !backend.is_retired());
            let same = match (&*slot, wanted) {
                (Some(link), Some(agent)) => link.succeeded_by(backend, agent),
                (None, None) => true,
                _ => false,
            };
            if same {
                continue;
            }
            if let Some(old) = slot.take() {
                old.retire();
            }
            *slot = wanted.map(|agent| {
                let link = AgentLink::new(Arc::clone(backend), agent);
                tokio::task::spawn_local(link::run(Rc::clone(worker), Rc::clone(self), Rc::clone(&link)));
                link
            });
        }
        drop(links);
        *self.known.borrow_mut() = Some(backends);
    }
}

/// How much may be under way on a connection that is handed off.
fn state_limits(worker: &Worker) -> tcp::QueueLimits {
    let config = worker.shared.config.load();
    let send_bytes = config.handoff.as_ref().map_or(0, |h| h.state_bytes);
    tcp::QueueLimits { send_bytes, ..Default::default() }
}
