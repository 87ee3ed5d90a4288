//! Sends connections to agents: those that this front-end has, and those that another agent gave back.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use plimsoll_config::Placement;
use plimsoll_datapath::Flow;
use plimsoll_datapath::tcp::{Frozen, QueueLimits, TcpState};
use plimsoll_wire::message::{Conn, ToAgent};
use socket2::SockRef;

use super::active::Active;
use super::handoffs::Handoffs;
use super::link::AgentLink;
use super::numbers::Expected;
use super::recover::{self, TakeBackReason};
use super::table::{HandoffEntry, HandoffPhase};
use super::times::DEFAULT_TAKE_OVER;
use crate::accepted::{Accepted, Start};
use crate::net::halves::ClientIo;
use crate::refusal_reason::RefusalReason;
use crate::worker::Worker;

/// A buffer for encoded states that has grown larger than this is not kept.
const MOST_KEPT_BYTES: usize = 64 << 10;

/// A connection that is to be handed off.
pub(crate) struct Handing {
    /// What its client has sent and nobody has answered; begins with the request's head.
    pub(super) bytes: Vec<u8>,
    /// The request.
    pub(super) request: Active,
    /// The link to the agent that gets it.
    pub(super) link: Rc<AgentLink>,
    /// Requests on it so far, this one included.
    pub(super) requests: u64,
}

/// Hands a connection off. If anything goes wrong, the connection stays here and its request is proxied.
pub(super) fn hand_off(
    worker: &Rc<Worker>,
    handoffs: &Rc<Handoffs>,
    stream: impl ClientIo,
    accepted: &Rc<Accepted>,
    handing: Handing,
) {
    let system = &handoffs.system;
    let stays = |fd: OwnedFd, handing: Handing| {
        system.counts.kept.add(1);
        let given = handing.request.account.give();
        let start = Start { requests: handing.requests - 1, given, stays: true, input: handing.bytes };
        recover::resume(worker, fd, accepted, start);
    };
    let lost = |handing: Handing| {
        worker.count_closed();
        let refused = Some(RefusalReason::ResponseCut);
        handing.request.lose(worker, accepted, &handing.link.backend(), refused);
    };
    let fd = match stream.into_socket() {
        Ok(fd) => fd,
        Err(error) => {
            tracing::error!(%error, "a connection could not be taken from the event queue");
            return lost(handing);
        }
    };
    if !handoffs.has_say_on(&handing.link) {
        // The address has gone, or come, while the connection was on its way here.
        return stays(fd, handing);
    }
    let local = accepted.local.get().or_else(|| SockRef::from(&fd).local_addr().ok()?.as_socket());
    let (Some(local), Some(hop)) = (local, handing.link.hop()) else { return stays(fd, handing) };
    let flow = Flow::new(accepted.peer, local);
    if !system.registry().leaving.remove(&flow) && !system.take_flow() {
        return stays(fd, handing);
    }
    // First the entry: what arrives from now on waits for the connection at the back-end.
    if !system.lead_anew(&flow, &hop, handing.link.id) {
        system.free_flow();
        return stays(fd, handing);
    }
    let frozen = match Frozen::freeze(fd) {
        Ok(frozen) => frozen,
        Err(failed) => {
            handoffs.take_off(&flow);
            return stays(failed.fd, handing);
        }
    };
    match frozen.snapshot(&flow, &handing.bytes, state_limits(worker)) {
        Ok(state) => {
            let answer_time = frozen.answer_time();
            // This closes the socket: no child process has a copy of the descriptor.
            drop(frozen);
            let conn = handoffs.table.borrow_mut().next_conn();
            let mut entry =
                HandoffEntry::new(conn, flow, handing.link, Rc::clone(accepted), handing.requests);
            entry.active = Some(Box::new(handing.request));
            entry.answer_time = Some(answer_time);
            send(worker, handoffs, entry, state);
        }
        Err(error) => {
            tracing::debug!(%error, "a connection cannot travel");
            // Keep the flow as long as the socket is frozen: should this process die, the kernel ends no frozen connection.
            system.lead_here(&flow);
            let thawed = frozen.thaw();
            handoffs.take_off(&flow);
            match thawed {
                Ok(fd) => stays(fd, handing),
                Err(error) => {
                    tracing::warn!(%error, "a connection was lost");
                    lost(handing);
                }
            }
        }
    }
}

/// Hands a connection that came back on to another agent. `from` is the link it came back by, and its number there.
pub(super) fn hand_on(
    worker: &Rc<Worker>,
    handoffs: &Rc<Handoffs>,
    mut entry: HandoffEntry,
    next: &Rc<AgentLink>,
    state: TcpState,
    from: (&Rc<AgentLink>, Conn),
) {
    let led = next.hop().is_some_and(|hop| handoffs.system.lead(&entry.flow, &hop, next.id));
    from.0.push_later(&ToAgent::Released { conn: from.1 });
    if led {
        handoffs.system.counts.handed_on.add(1);
        entry.link = Rc::clone(next);
        entry.conn = handoffs.table.borrow_mut().next_conn();
        send(worker, handoffs, entry, state);
    } else {
        recover::restore(worker, handoffs, entry, &state);
    }
}

/// Sends a connection to the agent of its entry's link. Its flow leads there already.
fn send(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>, mut entry: HandoffEntry, state: TcpState) {
    // From now on nobody takes the flow for that of an earlier connection, whose end may be told late.
    handoffs.table.borrow().own(entry.flow, entry.conn);
    handoffs.system.set_windows(&state);
    let (conn, link) = (entry.conn, Rc::clone(&entry.link));
    let now = Instant::now();
    let config = worker.config();
    let config = config.handoff.as_ref();
    let take_over = config.map_or(DEFAULT_TAKE_OVER, |h| h.take_over_timeout);
    let ask = config.is_none_or(|h| h.placement == Placement::Request);
    let lease = link.lease(handoffs.system.now_ns(), take_over);
    let mut bytes = handoffs.encoded.take();
    bytes.clear();
    state.encode(&mut bytes);
    let request = u32::try_from(entry.requests.saturating_sub(1)).unwrap_or(u32::MAX);
    let message = ToAgent::Handoff { conn, request, lease_until_ns: lease.until_ns, ask, state: &bytes };
    let sent = link.push(&message);
    if bytes.capacity() <= MOST_KEPT_BYTES {
        handoffs.encoded.replace(bytes);
    }
    entry.expected = Some(Expected::of(&state));
    let session = if sent { link.unanswered() } else { None };
    entry.phase = HandoffPhase::Pending { state: Box::new(state), since: now, session };
    handoffs.table.borrow_mut().insert(entry);
    if sent {
        let wait = Duration::from_nanos(lease.over_at_ns.saturating_sub(handoffs.system.now_ns()));
        handoffs.pending.borrow_mut().push_back((now + wait, conn));
    } else {
        recover::take_back(worker, handoffs, conn, TakeBackReason::Refused);
    }
}

/// Limits what may be queued on a connection that is handed off.
fn state_limits(worker: &Worker) -> QueueLimits {
    let config = worker.shared.config.load();
    let send_bytes = config.handoff.as_ref().map_or(0, |h| h.state_bytes);
    QueueLimits { send_bytes, ..Default::default() }
}
