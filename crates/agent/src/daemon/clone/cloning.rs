//! The SC client: has another node answer on a client's connection, and goes on after it.
//!
//! ```text
//! packets held ─ frozen ─ SC message ─► Cloned: packets led to the clone ─► Ended: the answer's end is known ─┐
//!                                    └► Refused: thawed, answered here                                        ▼
//!                                packets to the kernel ◄─ brought up to that end ◄─ held ◄─ the client has acknowledged it
//! ```
//!
//! The original learns from the client's own acknowledgments how far the clone has come (triangular implicit state
//! synchronization): the packet router keeps the highest in its entry. Only the length of the answer comes from the clone's node.
//! Where the next request has come by then, the connection is parked as it is, until it is decided who answers.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::BytesMut;
use plimsoll_datapath::tcp::{self, Frozen, TcpState};
use plimsoll_datapath::{CloneEntry, Flow};
use plimsoll_wire::cloning::{CloneRole, FromClone};
use plimsoll_wire::message::MOST_HEAD_BYTES;

use super::super::client::ClientConnection;
use super::super::head::Outline;
use super::super::serve::BegunAnswer;
use super::counters::{CloneCounters, DeclineReason};
use super::originals::{Original, inject};
use super::peer_link::{PeerLink, PendingClone};
use super::shared::CloneShared;
use super::under_way::{NextClone, UnderWay};

/// What came of a request that another node should answer.
pub(super) enum CarriedOver<'a> {
    /// The client has the whole answer, and those of the requests that were answered in turn.
    Answered {
        /// Whether another request may follow.
        keep: bool,
        /// The connection, if the next request has come already; otherwise it goes on at the original.
        parked: Option<Box<Parked<'a>>>,
    },
    /// So it has, and its connection has ended in good order.
    Closed,
    /// Nothing has happened: it is answered here.
    Declined(DeclineReason),
    /// The client's connection is gone.
    Lost,
}

/// What a clone is to do.
pub(super) enum CloneTask<'a> {
    /// Answer the request at the start of the client's input, and others after it.
    Whole(Outline, &'a [NextClone]),
    /// Send the rest of an answer that has begun; its request is no part of the input any more.
    Rest(&'a BegunAnswer),
}

/// Has a clone at the link's node answer.
pub(super) async fn answer_by_clone<'a>(
    shared: &'a Arc<CloneShared>,
    link: &Rc<PeerLink>,
    flow: Flow,
    slot: &mut Option<ClientConnection>,
    task: CloneTask<'_>,
    under_way: &mut UnderWay<'_>,
) -> CarriedOver<'a> {
    let began_at = Instant::now();
    let Some(client) = slot.take() else { return CarriedOver::Lost };
    if !client.is_whole() {
        *slot = Some(client);
        return CarriedOver::Declined(DeclineReason::ClientEnded);
    }
    let Ok((fd, input)) = client.into_parts() else { return CarriedOver::Lost };
    // In this order: whoever is held is known.
    let original = shared.originals.enter(flow);
    let entered = Entered { shared, original, flow, in_doubt: false, closing: false };
    if let Err(error) = shared.router.hold(&flow) {
        tracing::debug!(%error, "a connection is not cloned");
        let client = ClientConnection::new(fd, &input, shared.config.write_timeout);
        return entered.give_back(client, DeclineReason::NotFrozen, slot);
    }
    let frozen = match Frozen::freeze(fd) {
        Ok(frozen) => frozen,
        Err(failed) => {
            tracing::debug!(?flow, "a connection is not cloned: {}", failed.error);
            let client = ClientConnection::new(failed.fd, &input, shared.config.write_timeout);
            return entered.give_back(client, DeclineReason::NotFrozen, slot);
        }
    };
    let cloning = Cloning { entered, frozen, input, began_at, later: None, before: None };
    cloning.carry(link, slot, task, under_way).await
}

/// A connection that the router and the originals know. Dropped, its packets are for this machine's kernel again.
pub(super) struct Entered<'a> {
    pub(super) shared: &'a Arc<CloneShared>,
    pub(super) original: Arc<Original>,
    pub(super) flow: Flow,
    /// Whether there may be a clone, whose answer nobody will follow to its end: then the client is reset.
    pub(super) in_doubt: bool,
    /// Whether the clone has ended the connection, and the router goes on leading its packets.
    closing: bool,
}

impl Entered<'_> {
    /// The clone has ended the connection: the router's entry stays.
    pub(super) fn leave_closing(mut self) {
        self.closing = true;
    }

    fn give_back(
        self,
        client: std::io::Result<ClientConnection>,
        why: DeclineReason,
        slot: &mut Option<ClientConnection>,
    ) -> CarriedOver<'static> {
        match client {
            Ok(client) => {
                *slot = Some(client);
                CarriedOver::Declined(why)
            }
            Err(error) => {
                tracing::warn!(%error, flow = ?self.flow, "a connection was lost");
                CarriedOver::Lost
            }
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if self.closing {
            self.shared.originals.leave(&self.original);
            return;
        }
        let entry = self.shared.router.take(&self.flow).unwrap_or_else(|error| {
            tracing::error!(%error, flow = ?self.flow, "the packet router keeps a connection");
            None
        });
        for packet in self.shared.originals.leave(&self.original) {
            inject(&self.shared.router, &packet);
        }
        if self.in_doubt
            && let Some(entry @ CloneEntry { last_ack: Some(_), reset: false, .. }) = entry
        {
            self.shared.doubts.reset(&self.shared.router, self.flow, &entry);
        }
    }
}

/// A frozen connection, and what was read of it before.
pub(super) struct Cloning<'a> {
    /// Behind `frozen`, which is dropped first: what comes then meets no socket, and the client hears that.
    pub(super) frozen: Frozen,
    pub(super) entered: Entered<'a>,
    pub(super) input: BytesMut,
    pub(super) began_at: Instant,
    /// Where the connection is, if clones have answered since the freeze.
    pub(super) later: Option<TcpState>,
    /// The clone that has answered last. It goes once the connection lives here again, or the next clone is there: should this process be killed
    /// before, it tells the client.
    pub(super) before: Option<PendingClone>,
}

/// An original between two requests of which clones have answered the first, while it is not known who answers the second: its
/// socket is still frozen at the numbers that it had before the first, and its packets are held. Dropped, the client is reset.
pub(super) struct Parked<'a> {
    pub(super) cloning: Cloning<'a>,
    /// Of the request at the start of its input.
    pub(super) outline: Outline,
}

/// The end of a clone's answer.
pub(super) struct CloneAnswer {
    pub(super) end: u32,
    pub(super) status: u16,
    pub(super) content_bytes: u64,
    pub(super) keep: bool,
}

impl<'a> Cloning<'a> {
    pub(super) async fn carry(
        mut self,
        link: &PeerLink,
        slot: &mut Option<ClientConnection>,
        task: CloneTask<'_>,
        under_way: &mut UnderWay<'_>,
    ) -> CarriedOver<'a> {
        let shared = self.entered.shared;
        let flow = self.entered.flow;
        let mut state = match self.read_state() {
            Ok(state) => state,
            Err(why) => return self.thaw(slot, DeclineReason::NotFrozen, &why),
        };
        if let Err(why) = shared.router.number(&state) {
            return self.thaw(slot, DeclineReason::NotFrozen, &why);
        }
        // All that the client has sent so far. A clone that is to go gets the request alone, by its head.
        let received = std::mem::take(&mut state.receive_queue);
        let mut role = CloneRole::Once;
        let (head, rest, sent, next) = match task {
            CloneTask::Whole(_, []) if shared.keeps() && received.len() <= MOST_HEAD_BYTES => {
                role = CloneRole::Keeps;
                (&received[..], &[][..], None, &[][..])
            }
            CloneTask::Whole(outline, next) => {
                let (head, rest) = received.split_at(outline.bytes.min(received.len()));
                (head, rest, None, next)
            }
            CloneTask::Rest(begun) => (&begun.head[..], &received[..], Some(begun.sent.clone()), &[][..]),
        };
        let mut bytes = Vec::with_capacity(state.encoded_bytes());
        state.encode(&mut bytes);
        let Some(mut pending) = link.ask(&bytes, head, sent, (role, !rest.is_empty())) else {
            return self.thaw(slot, DeclineReason::NoLink, &"the link is lost");
        };
        CloneCounters::count(&shared.counters.cloned);
        self.entered.in_doubt = true;
        // A server behind the shim has the socket, and would see it closed.
        if !state.send_queue.is_empty() && shared.serve.reads_here() {
            let unread = received.get(self.input.len()..).unwrap_or_default().to_vec();
            if let Err(error) = self.frozen.silence(TcpState { receive_queue: unread, ..state.clone() }) {
                tracing::debug!(%error, ?flow, "a frozen connection could not be silenced");
            }
        }
        let ahead = self.ask_ahead(next, &bytes, rest);
        // A node that is alive answers; the link finds out whether it is.
        match pending.hear().await {
            Some(FromClone::Cloned { .. }) => {
                self.before = None;
                self.frozen.forget_state();
                let waited = self.began_at.elapsed();
                shared.counters.clone_time.0.add(waited);
                let waited_ns = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
                shared.counters.waited_ns.fetch_add(waited_ns, Ordering::Relaxed);
            }
            Some(FromClone::Refused { why, .. }) => {
                return self.thaw(slot, DeclineReason::Refused, &format_args!("its node refuses: {why:?}"));
            }
            // Nobody knows whether there is a clone. The kernel tells the client.
            _ => return self.lost("its node did not answer"),
        }
        if role == CloneRole::Keeps {
            return self.keep(pending, slot, under_way).await;
        }
        let made_ahead = ahead.len() as u32;
        let answered = self.answered_in_turn(pending, ahead, &mut state, under_way).await;
        self.frozen.passed_ahead(made_ahead);
        let answered = answered.and_then(|(answer, taken_bytes, last)| {
            self.before = Some(last);
            self.catch_up(&mut state, answer.end)?;
            Ok((answer, taken_bytes))
        });
        match answered {
            Ok((answer, taken_bytes)) => {
                self.go_on(slot, state, rest.get(taken_bytes..).unwrap_or_default(), answer.keep)
            }
            Err(why) => self.lost(why),
        }
    }

    /// Its state, with all that the client has sent in the receive queue.
    fn read_state(&mut self) -> Result<TcpState, Box<dyn std::error::Error + Send + Sync>> {
        let Entered { shared, flow, .. } = &self.entered;
        let Some(later) = &self.later else {
            return Ok(self.frozen.snapshot(flow, &self.input, shared.config.queue_limits())?);
        };
        let mut state = TcpState { receive_queue: self.input.to_vec(), ..later.clone() };
        self.frozen.stamp(&mut state)?;
        Ok(state)
    }

    /// Goes on here, as if nobody had been asked.
    fn thaw(
        self,
        slot: &mut Option<ClientConnection>,
        reason: DeclineReason,
        why: &dyn std::fmt::Display,
    ) -> CarriedOver<'a> {
        tracing::debug!(flow = ?self.entered.flow, "a connection is not cloned: {why}");
        let (client, entered) = self.woken();
        entered.give_back(client, reason, slot)
    }

    /// The connection lives here again, where it was or where clones have brought it.
    pub(super) fn woken(self) -> (std::io::Result<ClientConnection>, Entered<'a>) {
        let Self { frozen, mut entered, input, later, .. } = self;
        let fd = match later {
            Some(state) => tcp::fast_forward(frozen, &state)
                .map_err(std::io::Error::other)
                .and_then(tcp::Restored::activate),
            None => frozen.thaw(),
        };
        let limit = entered.shared.config.write_timeout;
        let client = fd.and_then(|fd| ClientConnection::new(fd, &input, limit));
        entered.in_doubt = client.is_err();
        (client, entered)
    }

    /// Gives the connection up. Its client is reset.
    pub(super) fn lost(self, why: &str) -> CarriedOver<'a> {
        tracing::debug!(flow = ?self.entered.flow, "a cloned connection is lost: {why}");
        CloneCounters::count(&self.entered.shared.counters.lost);
        CarriedOver::Lost
    }
}
