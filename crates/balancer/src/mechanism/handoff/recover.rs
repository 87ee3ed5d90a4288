//! Recovers connections after failures. None is left hanging: the front-end serves it itself, or its client
//! is reset.

use std::fmt::Display;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use plimsoll_datapath::Flow;
use plimsoll_datapath::tcp::{self, Frozen, Restored, TcpState};
use plimsoll_wire::message::{Conn, ToAgent};

use super::handoffs::Handoffs;
use super::last_look;
use super::leaving::FlowEnd;
use super::link::{AgentLink, Down};
use super::lost_client::LostClient;
use super::numbers::{Expected, Told};
use super::table::{HandoffEntry, HandoffPhase};
use super::times::DEFAULT_LOST_GRACE;
use crate::accepted::{Accepted, Start};
use crate::backend_pool::FIRST_POOL;
use crate::ejection::TrialEnd;
use crate::net::stream::ClientStream;
use crate::refusal_reason::RefusalReason;
use crate::worker::Worker;

/// How long a client has to answer a probe, however near it is.
const PROBE_TIME: Duration = Duration::from_millis(60);
/// How long it has when nothing is known of its distance, and how long after a probe another one is answered: a client answers
/// at most twice a second.
const PROBE_AGAIN: Duration = Duration::from_millis(600);
/// The longest wait for one answer: with all probes and the lease before them, less than three seconds. A client that is farther
/// away is given up.
const MOST_PROBE_TIME: Duration = Duration::from_millis(800);
/// How often a client is probed before it is given up.
const MOST_PROBES: u32 = 3;

/// Why a connection comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakeBackReason {
    /// The agent said that it does not take it.
    Refused,
    /// The agent has not said anything, and its lease is over.
    TimedOut,
}

/// Takes back a connection that the agent has not taken over.
pub(super) fn take_back(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>, conn: Conn, why: TakeBackReason) {
    let entry = handoffs.table.borrow_mut().remove_if(conn, HandoffEntry::is_pending);
    let Some(mut entry) = entry else { return };
    let HandoffPhase::Pending { state, session, .. } =
        std::mem::replace(&mut entry.phase, HandoffPhase::Held)
    else {
        return;
    };
    entry.link.answered(session);
    let counts = &handoffs.system.counts;
    match why {
        TakeBackReason::Refused => counts.refused.add(1),
        TakeBackReason::TimedOut => {
            counts.timed_out.add(1);
            entry.link.push(&ToAgent::Cancel { conn });
            entry.link.doubt(session);
            handoffs.doubted.borrow_mut().insert(entry.flow);
            let (worker, handoffs) = (Rc::clone(worker), Rc::clone(handoffs));
            tokio::task::spawn_local(async move { probe(&worker, &handoffs, entry, &state).await });
            return;
        }
    }
    restore(worker, handoffs, entry, &state);
}

/// Finds out whether the agent has taken the connection over, now that its lease is over. If the client has part of an answer,
/// nobody else can continue the connection, and the client is reset; so is one that does not answer.
async fn probe(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>, mut entry: HandoffEntry, state: &TcpState) {
    let restored = tcp::restore(state).map_err(io::Error::other).and_then(Restored::activate);
    let probed = match restored {
        Ok(fd) => ask(handoffs, &entry, fd).await,
        Err(error) => Err(error),
    };
    handoffs.doubted.borrow_mut().remove(&entry.flow);
    match probed {
        Ok((fd, true)) if !has_moved_on(handoffs, &entry.flow, state) => {
            handoffs.forget(entry.flow);
            if let Some(active) = &mut entry.active
                && may_move(worker, active.account.attempts)
            {
                // The server may be what hangs, so the request goes to another one.
                active.account.lose(true, TrialEnd::TimedOut);
            }
            let start = entry.start_here();
            resume(worker, fd, &entry.accepted, start);
        }
        probed => {
            if let Ok(Ok(frozen)) = probed.map(|(fd, _)| Frozen::freeze(fd)) {
                frozen.close();
            }
            reset(handoffs, entry.flow, entry.expected);
            handoffs.forget(entry.flow);
            over(worker, entry);
        }
    }
}

/// Whether a request that so many back-ends were tried for may go to another one.
fn may_move(worker: &Worker, attempts: u32) -> bool {
    attempts <= worker.shared.config.load().limits.retries
        && worker.shared.in_pool(FIRST_POOL, |pool| pool.may_retry()).unwrap_or(false)
}

/// Has the client repeat its acknowledgment, which may have been lost or still be under way, and waits for that. Packets still
/// lead to the agent, past our table. Whether the client has answered: silence says nothing of what it has seen.
async fn ask(handoffs: &Handoffs, entry: &HandoffEntry, mut fd: OwnedFd) -> io::Result<(OwnedFd, bool)> {
    let known = entry.answer_time.unwrap_or(PROBE_AGAIN).clamp(PROBE_TIME, MOST_PROBE_TIME);
    for attempt in 0..MOST_PROBES {
        let asked_ns = plimsoll_datapath::now_ns();
        fd = Frozen::freeze(fd).map_err(|failed| io::Error::other(failed.error))?.thaw()?;
        tokio::time::sleep(if attempt == 0 { known } else { known.max(PROBE_AGAIN) }).await;
        if handoffs.system.entry(&entry.flow).is_none_or(|flow| flow.last_seen_ns >= asked_ns) {
            return Ok((fd, true));
        }
    }
    Ok((fd, false))
}

/// Whether the client has acknowledged more than this front-end ever sent, or has sent more than it ever took.
fn has_moved_on(handoffs: &Handoffs, flow: &Flow, state: &TcpState) -> bool {
    let Some(entry) = handoffs.system.entry(flow) else { return false };
    let beyond =
        |number: Option<u32>, ours: u32| number.is_some_and(|n| n.wrapping_sub(ours).cast_signed() > 0);
    // What the client sent since may have been acknowledged by the agent, and will not be sent again.
    beyond(entry.last_ack, state.send_next) || beyond(entry.last_seq_end, state.receive_next)
}

/// Continues a connection here. The socket comes first, then packets are led to it. The flow is forgotten only when the socket
/// is live: should this process die earlier, the kernel would not end the connection.
pub(super) fn restore(
    worker: &Rc<Worker>,
    handoffs: &Rc<Handoffs>,
    mut entry: HandoffEntry,
    state: &TcpState,
) {
    let flow = entry.flow;
    let restored = match tcp::restore(state) {
        Ok(restored) => restored,
        Err(error) => {
            reset(handoffs, flow, Some(Expected::of(state)));
            handoffs.forget(flow);
            return lose(worker, handoffs, entry, &error);
        }
    };
    if !handoffs.is_reused(&flow) {
        handoffs.system.lead_here(&flow);
    }
    let activated = restored.activate();
    handoffs.forget(flow);
    match activated {
        Ok(fd) => {
            let start = entry.start_here();
            resume(worker, fd, &entry.accepted, start);
        }
        Err(error) => lose(worker, handoffs, entry, &error),
    }
}

/// Counts a connection as lost: it could not be taken back.
fn lose(worker: &Worker, handoffs: &Handoffs, entry: HandoffEntry, error: &dyn Display) {
    tracing::warn!(%error, client = %entry.flow.client, "a connection could not be taken back");
    handoffs.system.counts.lost.add(1);
    over(worker, entry);
}

/// Counts a connection as closed. The request under way on it, if there is one, has failed.
pub(super) fn over(worker: &Worker, entry: HandoffEntry) {
    end(worker, entry, Some(RefusalReason::ResponseCut));
}

/// The same for a connection that another front-end may have now, so that nothing is known of its request.
pub(super) fn over_here(worker: &Worker, entry: HandoffEntry) {
    end(worker, entry, None);
}

fn end(worker: &Worker, entry: HandoffEntry, refused: Option<RefusalReason>) {
    worker.count_closed();
    if let Some(active) = entry.active {
        active.lose(worker, &entry.accepted, &entry.link.backend(), refused);
    }
}

/// Serves a connection here: one that was taken back, or that could not be handed off.
pub(super) fn resume(worker: &Rc<Worker>, fd: OwnedFd, accepted: &Rc<Accepted>, start: Start) {
    worker.resume(ClientStream::new(fd), Rc::clone(accepted), start);
}

/// Tells a client that its connection is over, or asks for its sequence numbers first, unless another connection has the flow
/// or a RST has come from the client. `before` is what the client's kernel expected when the connection was handed off.
pub(super) fn reset(handoffs: &Handoffs, flow: Flow, before: Option<Expected>) -> Told {
    if handoffs.is_reused(&flow) || handoffs.system.entry(&flow).is_some_and(|entry| entry.rst) {
        return Told::Done;
    }
    handoffs.system.reset(&flow, before)
}

/// Gives up the connections of a link that is down. The agent may come back and offer them; otherwise their clients are reset
/// after `handoff.lost_grace`.
pub(super) fn link_down(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>, link: &Rc<AgentLink>, down: Down) {
    // The agent offers them on another link, or on this one's next session.
    handoffs.kept_offers.borrow_mut().retain(|offer| !Rc::ptr_eq(&offer.link, link));
    let conns = handoffs.table.borrow().of_link(link);
    // A client that acknowledges something new is served by a back-end that has only lost its link, or by a kernel that sends
    // what its process left. Only the others are reset then.
    let grace = worker.config().handoff.as_ref().map_or(DEFAULT_LOST_GRACE, |h| h.lost_grace);
    let at = Instant::now() + grace;
    tracing::debug!(?down, connections = conns.len(), "connections were lost with a link");
    for conn in conns {
        // One that the agent may still take over is decided when its lease is over.
        let entry = handoffs.table.borrow_mut().remove_if(conn, |entry| !entry.is_pending());
        let Some(entry) = entry else { continue };
        handoffs.system.counts.lost.add(1);
        if entry.expected.is_none() {
            handoffs.system.learn_numbers(&entry.flow);
        }
        leave_for_reset(handoffs, &entry, at, grace);
        over(worker, entry);
    }
}

/// Resets the client of a connection at this time, unless something new comes from it until then; in that case, when nothing
/// new has come for `patience`.
fn leave_for_reset(handoffs: &Handoffs, entry: &HandoffEntry, at: Instant, patience: Duration) {
    let client = LostClient::new(handoffs.system.entry(&entry.flow).as_ref(), entry.expected, patience);
    handoffs.leave(entry.flow, FlowEnd::Reset(client), at);
}

/// Gives up a connection whose back-end no longer answers: the agent forgets it, and its client is reset.
pub(super) fn abandon(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>, conn: Conn) {
    let entry = handoffs.table.borrow_mut().remove_if(conn, |entry| !entry.is_pending());
    let Some(entry) = entry else { return };
    entry.link.push(&ToAgent::Cancel { conn });
    handoffs.system.counts.lost.add(1);
    leave_for_reset(handoffs, &entry, Instant::now(), last_look::INTERVAL);
    over(worker, entry);
}

/// Handles a report that an agent got packets of a connection that it does not have.
pub(super) fn stray(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>, link: &Rc<AgentLink>, flow: Flow) {
    let entry = {
        let mut table = handoffs.table.borrow_mut();
        match table.by_flow(&flow) {
            Some(conn) if table.get(conn, link).is_some_and(|e| matches!(e.phase, HandoffPhase::Held)) => {
                table.remove(conn)
            }
            // It is on its way to the agent or back, or elsewhere by now.
            Some(_) => return,
            None => None,
        }
    };
    handoffs.system.counts.strays.add(1);
    // Other workers get the report as well and handle their own flows; `leftovers` handles what an earlier process left.
    if let Some(entry) = entry {
        reset(handoffs, flow, entry.expected);
        handoffs.forget(flow);
        over(worker, entry);
    }
}
