//! Handles messages of agents.

use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use plimsoll_datapath::tcp::TcpState;
use plimsoll_wire::message::{AnswerReport, Conn, FromAgent, ToAgent};

use super::active::Active;
use super::adopt::adopt;
use super::handoffs::Handoffs;
use super::link::AgentLink;
use super::orphan::OrphanOffer;
use super::role::FailoverRole;
use super::shared_role::SharedRole;
use super::table::{HandoffEntry, HandoffPhase};
use super::{failover, payoff, recover, send};
use crate::accepted::Accepted;
use crate::account::{Account, AdmissionResult};
use crate::http::Framing;
use crate::http::head_end::{HeadEnd, HeadScan};
use crate::http::request::{self, RequestHead};
use crate::worker::Worker;

/// A request about which an agent asks.
struct Asked {
    conn: Conn,
    request: u32,
    portable: bool,
}

/// Handles one message.
pub(super) fn take(
    worker: &Rc<Worker>,
    handoffs: &Rc<Handoffs>,
    link: &Rc<AgentLink>,
    message: &FromAgent<'_>,
) {
    match *message {
        FromAgent::Taken { conn } => taken(handoffs, link, conn),
        FromAgent::Refused { conn, why } => {
            tracing::debug!(backend = &*link.backend().name, ?why, "a connection was refused");
            recover::take_back(worker, handoffs, conn, recover::TakeBackReason::Refused);
        }
        FromAgent::Ask { conn, request, portable, head } => {
            ask(worker, handoffs, link, &Asked { conn, request, portable }, head);
        }
        FromAgent::Began { conn, head, .. } => began(worker, handoffs, link, conn, head),
        FromAgent::Ended { conn, ended } => end(worker, handoffs, link, conn, &ended),
        FromAgent::Returned { conn, state, .. } => returned(worker, handoffs, link, conn, state),
        FromAgent::Kept { conn, request } => kept(worker, handoffs, link, conn, request),
        FromAgent::Closed { conn } => closed(worker, handoffs, link, conn),
        FromAgent::Adopt { orphan, flow, request, .. } => {
            let offer = OrphanOffer::new(worker, &handoffs.system, link, (orphan, flow, request));
            adopt(worker, handoffs, offer);
        }
        FromAgent::Stray { flow } => recover::stray(worker, handoffs, link, flow),
        FromAgent::Pong { clock_ns, .. } => {
            let first = link.pong(clock_ns, handoffs.system.now_ns());
            // Where front-ends share an address, an agent says when it has offered all.
            if let Some(hop) = first.filter(|_| handoffs.system.failover.is_none()) {
                handoffs.system.offers.heard(worker.index, link.address, hop);
            }
        }
        FromAgent::Counted { counts } => link.backend().set_agent_counts(counts),
        FromAgent::Stopping => link.set_stopping(),
        FromAgent::Active { term, instance } => active(worker, handoffs, link, term, instance),
    }
}

/// An agent says which front-end is active: if this one, it has offered all connections on this link.
fn active(worker: &Worker, handoffs: &Handoffs, link: &AgentLink, term: u64, instance: u64) {
    let system = &handoffs.system;
    failover::told(system, term, instance);
    let Some(role) = system.failover.as_ref().map(SharedRole::role) else { return };
    if role == (FailoverRole::Active { term })
        && instance == system.instance
        && let Some(hop) = link.hop()
    {
        system.offers.heard(worker.index, link.address, hop);
    }
}

fn taken(handoffs: &Handoffs, link: &Rc<AgentLink>, conn: Conn) {
    if let Some(entry) = handoffs.table.borrow_mut().get(conn, link)
        && let HandoffPhase::Pending { since, session, .. } = entry.phase
    {
        link.answered(session);
        entry.phase = HandoffPhase::Held;
        let counts = &handoffs.system.counts;
        counts.taken.add(1);
        counts.take_over.add(since.elapsed());
        link.push_later(&ToAgent::Confirm { conn });
    }
}

/// Notes that the agent answers a request itself that was to come back.
fn kept(worker: &Worker, handoffs: &Handoffs, link: &Rc<AgentLink>, conn: Conn, request: u32) {
    let active = {
        let mut table = handoffs.table.borrow_mut();
        let Some(entry) = table.get(conn, link).filter(|entry| entry.is_returning(request)) else { return };
        entry.phase = HandoffPhase::Held;
        entry.accepted.row.set(entry.accepted.row.get().after_kept());
        entry.active.take()
    };
    let Some(mut active) = active else { return };
    handoffs.system.counts.stayed.add(1);
    if active.account.chosen() != Some(link.id) || !link.has_index(worker) {
        active.stay_at(worker, link);
    }
    if let Some(entry) = handoffs.table.borrow_mut().get(conn, link) {
        entry.active = Some(active);
    }
}

fn ask(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>, link: &Rc<AgentLink>, asked: &Asked, head: &[u8]) {
    let Some((accepted, requests)) = count_request(handoffs, link, asked.conn) else { return };
    if let Some(entry) = handoffs.table.borrow_mut().get(asked.conn, link) {
        entry.asked = Some(asked.request);
    }
    let config = worker.config();
    let request = Request::read(head, worker, &accepted).filter(|request| {
        let known = &request.head;
        known.framing == Framing::None
            && known.is_plain
            && (known.is_get || known.is_head)
            && !accepted.closing.load(Ordering::Relaxed)
            && requests < config.limits.requests_per_connection
    });
    let Some(request) = request else {
        // What this front-end has to answer, or to pass on, itself.
        return give_back(handoffs, link, asked, None);
    };
    let mut account = Account::new(request.received);
    match account.offer(worker, &request.head, &accepted, None) {
        AdmissionResult::Assigned => place(worker, handoffs, link, asked, request.under(account)),
        AdmissionResult::Refused(_) => give_back(handoffs, link, asked, None),
        AdmissionResult::Waits(ticket) => {
            let (worker, handoffs, link) = (Rc::clone(worker), Rc::clone(handoffs), Rc::clone(link));
            let asked = Asked { ..*asked };
            tokio::task::spawn_local(async move {
                if account.wait(ticket, config.admission.queue_timeout).await.is_ok() {
                    place(&worker, &handoffs, &link, &asked, request.under(account));
                } else {
                    give_back(&handoffs, &link, &asked, None);
                }
            });
        }
    }
}

/// A further request on a connection that was handed off.
struct Request {
    head: RequestHead,
    bytes: Vec<u8>,
    received: Instant,
}

impl Request {
    /// Checks and rewrites a head that an agent has sent. Returns `None` if this front-end would not pass it on.
    fn read(head: &[u8], worker: &Worker, accepted: &Accepted) -> Option<Self> {
        let config = worker.config();
        let context = request::RequestContext {
            routing: None,
            hash: &worker.shared.hash,
            key: &config.target.key,
            dynamic: &config.target.dynamic,
            classes: config.classes.as_ref(),
            fields: config.limits.fields,
            own: &|| accepted.local.get(),
            peer: accepted.peer_text.as_bytes(),
            trusted: accepted.trusted,
            forwarded: &config.forwarded,
            upgrades: &[],
            compression: None,
            http2: false,
            secure: false,
            identity: None,
        };
        let whole = HeadScan::default().scan(head) == HeadEnd::At(head.len());
        if !whole || head.len() > config.limits.head_bytes {
            return None;
        }
        let mut bytes = Vec::with_capacity(head.len() + 128);
        let head = request::rewrite(head, &context, &mut bytes).ok()?;
        Some(Self { head, bytes, received: Instant::now() })
    }

    /// Makes it the request under way, with its account.
    fn under(self, account: Account) -> Active {
        Active { head: self.head, head_bytes: self.bytes, account }
    }
}

/// Counts a further request on a connection. Returns what is known of the connection, and how many requests it has had.
fn count_request(handoffs: &Handoffs, link: &Rc<AgentLink>, conn: Conn) -> Option<(Rc<Accepted>, u64)> {
    let mut table = handoffs.table.borrow_mut();
    let entry = table.get(conn, link)?;
    entry.requests += 1;
    entry.know_all(&handoffs.system);
    Some((Rc::clone(&entry.accepted), entry.requests))
}

/// Notes that a further request is being answered on a connection that was placed as a whole.
fn began(worker: &Worker, handoffs: &Handoffs, link: &Rc<AgentLink>, conn: Conn, head: &[u8]) {
    let Some((accepted, _)) = count_request(handoffs, link, conn) else { return };
    // A request that this front-end would not have passed on is left to the back-end, and not counted.
    let Some(request) = Request::read(head, worker, &accepted) else { return };
    handoffs.system.counts.stayed.add(1);
    let account = Account::new(request.received);
    let mut active = request.under(account);
    active.stay_at(worker, link);
    let mut table = handoffs.table.borrow_mut();
    let earlier = table.get(conn, link).and_then(|entry| entry.active.replace(Box::new(active)));
    drop(table);
    // An agent reports the end of a request before the next one.
    drop(earlier);
}

/// Tells the agent what to do about a request for which a back-end was chosen.
fn place(worker: &Worker, handoffs: &Handoffs, link: &Rc<AgentLink>, asked: &Asked, mut active: Active) {
    let chosen_here = active.account.chosen() == Some(link.id) && link.has_index(worker);
    let stays = chosen_here && !link.is_retired() && !comes_back(handoffs, link, asked.conn, &active.account);
    if stays || !asked.portable {
        if !chosen_here {
            active.stay_at(worker, link);
        }
        let mut table = handoffs.table.borrow_mut();
        // The client may have gone while the request waited, or the agent waited no longer.
        let Some(entry) = table.get(asked.conn, link).filter(|e| e.asked == Some(asked.request)) else {
            return;
        };
        entry.asked = None;
        let earlier = entry.active.replace(Box::new(active));
        handoffs.system.counts.stayed.add(1);
        link.push(&ToAgent::Stay { conn: asked.conn, request: asked.request });
        drop(table);
        drop(earlier);
    } else {
        give_back(handoffs, link, asked, Some(active));
    }
}

/// Counts a further request in the row of its connection. Whether the connection had better come back, as this front-end chooses,
/// and its responses cost less when they are passed on.
fn comes_back(handoffs: &Handoffs, link: &Rc<AgentLink>, conn: Conn, account: &Account) -> bool {
    let Some(relief) = &handoffs.relief else { return false };
    let mut table = handoffs.table.borrow_mut();
    // One that was answered meanwhile is counted when its agent tells of it.
    let Some(entry) = table.get(conn, link).filter(|entry| entry.asked.is_some()) else { return false };
    let row = entry.accepted.row.get().and(link.id, account.expected_bytes());
    entry.accepted.row.set(row);
    row.pays_to_return() && relief.is_idle()
}

fn give_back(handoffs: &Handoffs, link: &Rc<AgentLink>, asked: &Asked, active: Option<Active>) {
    let mut table = handoffs.table.borrow_mut();
    let Some(entry) = table.get(asked.conn, link).filter(|e| e.asked == Some(asked.request)) else { return };
    entry.asked = None;
    entry.phase = HandoffPhase::Returning { request: asked.request };
    let earlier = std::mem::replace(&mut entry.active, active.map(Box::new));
    link.push(&ToAgent::Return { conn: asked.conn, request: asked.request });
    drop(table);
    // Of an agent that has not told the end of it. Whoever waits for its place may come back here.
    drop(earlier);
}

fn end(worker: &Worker, handoffs: &Handoffs, link: &Rc<AgentLink>, conn: Conn, ended: &AnswerReport) {
    let found = handoffs.table.borrow_mut().get(conn, link).map(|entry| {
        if entry.asked == Some(ended.request) {
            // It was answered without waiting for the decision any longer.
            entry.asked = None;
        }
        if entry.active.as_ref().is_some_and(|active| active.head.framing != Framing::None) {
            // Its body has come since.
            entry.know_all(&handoffs.system);
        }
        (entry.active.take(), Rc::clone(&entry.accepted))
    });
    // The lock of dispatch is not taken while the table is borrowed: whoever waits there may come back here.
    if let Some((Some(active), accepted)) = found {
        active.end(worker, &accepted, &link.backend(), ended);
    }
}

fn closed(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>, link: &Rc<AgentLink>, conn: Conn) {
    let entry = handoffs.table.borrow_mut().remove_if(conn, |entry| Rc::ptr_eq(&entry.link, link));
    if let Some(entry) = entry {
        handoffs.forget_later(entry.flow);
        recover::over(worker, entry);
    }
}

/// Handles a connection that has come back: it goes to the back-end that was chosen, or stays at this front-end.
fn returned(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>, link: &Rc<AgentLink>, conn: Conn, state: &[u8]) {
    let of_link = |entry: &HandoffEntry| {
        Rc::ptr_eq(&entry.link, link) && matches!(entry.phase, HandoffPhase::Returning { .. })
    };
    let entry = handoffs.table.borrow_mut().remove_if(conn, of_link);
    let Some(entry) = entry else { return };
    entry.accepted.row.set(entry.accepted.row.get().after_return());
    let state = match TcpState::decode(state) {
        Ok(state) if state.flow == entry.flow => state,
        wrong => {
            tracing::error!(
                backend = &*link.backend().name,
                ?wrong,
                "a connection came back in a state that is none"
            );
            recover::reset(handoffs, entry.flow, entry.expected);
            handoffs.forget(entry.flow);
            return recover::over(worker, entry);
        }
    };
    let next = entry.active.as_ref().and_then(|active| next_link(worker, handoffs, &active.account));
    match next {
        Some(next) => send::hand_on(worker, handoffs, entry, &next, state, (link, conn)),
        None => {
            recover::restore(worker, handoffs, entry, &state);
            link.push_later(&ToAgent::Released { conn });
        }
    }
}

/// The link by which a connection that has come back goes on; `None` where its request is proxied.
fn next_link(worker: &Worker, handoffs: &Handoffs, account: &Account) -> Option<Rc<AgentLink>> {
    let config = worker.config();
    let pays = handoffs.relief.is_none() || payoff::pays_to_hand_on(config.handoff.as_ref()?, account);
    if pays { handoffs.link(account.chosen()?) } else { None }
}
