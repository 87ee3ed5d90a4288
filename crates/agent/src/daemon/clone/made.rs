//! The SC server: makes clones, and has them answer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use plimsoll_datapath::Flow;
use plimsoll_datapath::tcp::{self, TcpState};
use plimsoll_wire::cloning::{CloneRefusal, CloneRole, FromClone, SentPart};
use plimsoll_wire::message::Conn;
use tokio::task::spawn_local;

use super::super::client::ClientConnection;
use super::super::head::{self, FoundHead};
use super::super::serve::{AfterAnswer, Answer, Serve, rest, write_rest};
use super::CLONE_TIMES;
use super::counters::CloneCounters;
use super::frames::FrameSink;
use super::fresh::{CutOff, FreshClone, all_taken, is_left_alone, report};
use super::kept::{KeptClone, KeptWord};
use super::node_closing::NodeClosing;
use super::shared::{CloneShared, NodePhase};
use super::shimmed_clone;

/// Bytes of an encoded state beyond its queues.
const SPARE_BYTES: usize = 1024;

/// A link that another node has opened, and the clones that came by it.
pub(super) struct ServerLink {
    pub(super) sink: FrameSink,
    /// By the number that the other node gave.
    clones: RefCell<BTreeMap<u64, LinkClone>>,
}

/// A clone that came by a link.
struct LinkClone {
    flow: Flow,
    number: u64,
    /// For one that keeps its connection.
    word: Rc<KeptWord>,
    /// One that was made ahead.
    fresh: Option<Box<FreshClone>>,
}

impl ServerLink {
    pub(super) fn new(sink: FrameSink) -> Self {
        Self { sink, clones: RefCell::default() }
    }

    /// Something was said to this clone.
    pub(super) fn with_word(&self, conn: Conn, say: impl FnOnce(&KeptWord)) {
        if let Some(clone) = self.clones.borrow().get(&conn.0) {
            say(&clone.word);
        }
    }

    /// The link is lost: what has not begun never will, and what keeps a connection ends it.
    pub(super) fn end(&self, shared: &CloneShared) {
        let mut clones = self.clones.borrow_mut();
        clones.values().for_each(|clone| clone.word.close());
        for (_, clone) in clones.extract_if(.., |_, clone| clone.fresh.is_some()) {
            shared.clones.leave(&clone.flow, clone.number);
        }
    }
}

/// An SC message.
pub(super) struct CloneOrder<'a> {
    pub(super) conn: Conn,
    pub(super) state: &'a [u8],
    pub(super) head: &'a [u8],
    pub(super) sent: Option<SentPart>,
    pub(super) role: CloneRole,
    pub(super) followed: bool,
}

/// Makes a clone, says so, and has it answer; or refuses.
pub(super) fn make(shared: &Arc<CloneShared>, link: &Rc<ServerLink>, order: &CloneOrder<'_>) {
    let made = restore(shared, order);
    match (made, &order.sent) {
        (Ok(clone), Some(sent)) => {
            spawn_local(make_rest(Arc::clone(shared), Rc::clone(link), clone, sent.clone()));
        }
        (made, _) => tell(shared, link, order.conn, made),
    }
}

/// A clone that sends the rest of an answer is there once it is known to have that.
async fn make_rest(shared: Arc<CloneShared>, link: Rc<ServerLink>, mut clone: FreshClone, sent: SentPart) {
    let conn = clone.conn;
    if let Serve::Origin(service) = &shared.serve {
        clone.rest = rest(service, &clone.head, &sent).await;
    }
    let made = if clone.rest.is_some() {
        Ok(clone)
    } else {
        shared.clones.leave(&clone.flow, clone.number);
        Err(CloneRefusal::OtherDocument)
    };
    tell(&shared, &link, conn, made);
}

/// Says what came of an SC message, and has the clone answer.
fn tell(
    shared: &Arc<CloneShared>,
    link: &Rc<ServerLink>,
    conn: Conn,
    made: Result<FreshClone, CloneRefusal>,
) {
    match made {
        Ok(clone) => {
            tracing::event!(name: "restored", target: CLONE_TIMES, tracing::Level::TRACE, {});
            CloneCounters::count(&shared.counters.made);
            let (flow, number, word) = (clone.flow, clone.number, Rc::new(KeptWord::default()));
            let run_now = clone.role != CloneRole::Ahead;
            let (now, later) = if run_now { (Some(clone), None) } else { (None, Some(Box::new(clone))) };
            let entry = LinkClone { flow, number, word: Rc::clone(&word), fresh: later };
            link.clones.borrow_mut().insert(conn.0, entry);
            link.sink.push(&FromClone::Cloned { conn });
            if let Some(clone) = now {
                spawn_local(run(Arc::clone(shared), Rc::clone(link), clone, word));
            }
        }
        Err(why) => {
            tracing::debug!(conn = conn.0, ?why, "a clone was refused");
            shared.counters.refused(why);
            link.sink.push(&FromClone::Refused { conn, why });
        }
    }
}

/// It is the turn of a clone that was made ahead.
pub(super) fn begin(
    shared: &Arc<CloneShared>,
    link: &Rc<ServerLink>,
    conn: Conn,
    send_next: u32,
    client_window: u32,
) {
    let mut clones = link.clones.borrow_mut();
    let Some((mut clone, word)) =
        clones.get_mut(&conn.0).and_then(|entry| Some((entry.fresh.take()?, Rc::clone(&entry.word))))
    else {
        return;
    };
    let Some((made_at, mut state)) = clone.ahead.take() else { return };
    state.send_next = send_next;
    state.window.send = client_window;
    state.window.send_max = state.window.send_max.max(client_window);
    match clone.restored.advance(made_at.elapsed(), &state) {
        Ok(restored) => {
            clone.restored = restored;
            spawn_local(run(Arc::clone(shared), Rc::clone(link), *clone, word));
        }
        Err(error) => {
            tracing::debug!(%error, flow = ?clone.flow, "a clone could not begin");
            clones.remove(&conn.0);
            shared.clones.leave(&clone.flow, clone.number);
            shared.counters.refused(CloneRefusal::Kernel);
            link.sink.push(&FromClone::Refused { conn, why: CloneRefusal::Kernel });
        }
    }
}

/// The original has gone on.
pub(super) fn over(shared: &CloneShared, link: &ServerLink, conn: Conn) {
    let clone = link.clones.borrow_mut().remove(&conn.0);
    if let Some(LinkClone { flow, number, .. }) = clone {
        shared.clones.discard(&flow, number);
    }
}

fn restore(shared: &Arc<CloneShared>, order: &CloneOrder<'_>) -> Result<FreshClone, CloneRefusal> {
    if shared.is_stopping() {
        return Err(CloneRefusal::Stopping);
    }
    if order.state.len() > shared.config.state_bytes.saturating_add(SPARE_BYTES) {
        return Err(CloneRefusal::BadState);
    }
    let outline = match head::find(order.head) {
        FoundHead::Request(outline)
            if outline.bytes == order.head.len() || order.role == CloneRole::Keeps =>
        {
            outline
        }
        _ => return Err(CloneRefusal::BadState),
    };
    let mut state = TcpState::decode(order.state).map_err(|error| {
        tracing::warn!(%error, "a state could not be understood");
        CloneRefusal::BadState
    })?;
    let flow = state.flow;
    if !shared.serve.reads_here() && order.role != CloneRole::Once {
        tracing::warn!(
            "a server behind the shim answers one request of a clone; the other node is to have no --clone-keep or --clone-ahead"
        );
        return Err(CloneRefusal::BadState);
    }
    if !shared.config.vips.contains(&flow.vip) || !state.receive_queue.is_empty() {
        tracing::warn!(vip = %flow.vip, "a clone of a connection that cannot be cloned here");
        return Err(CloneRefusal::BadState);
    }
    let room = shared.room().ok_or(CloneRefusal::Full)?;
    shared.clones.clear(&flow);
    let kernel = |error: &dyn std::fmt::Display| {
        tracing::debug!(%error, ?flow, "a clone was not made");
        CloneRefusal::Kernel
    };
    // A server behind the shim reads the request from the socket.
    if !shared.serve.reads_here() {
        state.receive_queue = order.head.to_vec();
    }
    // Until its turn, one that is made ahead has nothing to send again: what is before its answer is for others.
    if order.role == CloneRole::Ahead {
        state.send_queue.clear();
        state.unsent_bytes = 0;
    }
    let restored = tcp::restore(&state).map_err(|error| kernel(&error))?;
    let copy = restored.as_fd().try_clone_to_owned().map_err(|error| kernel(&error))?;
    let number = shared.clones.enter(flow, copy);
    let (head, role, followed) = (order.head.to_vec(), order.role, order.followed);
    let mss = state.mss;
    let ahead = (role == CloneRole::Ahead).then(|| (Instant::now(), state));
    let conn = order.conn;
    let (rest, _room) = (None, room);
    Ok(FreshClone { conn, flow, number, restored, mss, role, followed, ahead, head, outline, rest, _room })
}

async fn run(shared: Arc<CloneShared>, link: Rc<ServerLink>, clone: FreshClone, word: Rc<KeptWord>) {
    let (conn, flow, number) = (clone.conn, clone.flow, clone.number);
    let mut phase = shared.phase.subscribe();
    let mut slot = None;
    let ended = tokio::select! {
        biased;
        _ = phase.wait_for(|phase| *phase == NodePhase::Cut) => false,
        () = answer_and_go(&shared, &link.sink, clone, word, &mut slot) => true,
    };
    if !ended && !shared.serve.reads_here() {
        // Its server has it. The original tells the client.
        shared.clones.discard(&flow, number);
    }
    shared.clones.leave(&flow, number);
    link.clones.borrow_mut().remove(&conn.0);
    if let Some(client) = slot.take()
        && !ended
    {
        client.abort();
    }
}

async fn answer_and_go(
    shared: &CloneShared,
    sink: &FrameSink,
    clone: FreshClone,
    word: Rc<KeptWord>,
    slot: &mut Option<ClientConnection>,
) {
    let began_at = Instant::now();
    if let Serve::Shim(path) = &shared.serve {
        return shimmed_clone::answer(shared, sink, clone, path).await;
    }
    let FreshClone { conn, flow, number, restored, mss, role, followed, head, outline, rest, _room, .. } =
        clone;
    let lives =
        restored.activate().and_then(|fd| ClientConnection::new(fd, &head, shared.config.write_timeout));
    let lives = lives.and_then(|client| {
        client.reset_at_death()?;
        Ok(if followed { client.acknowledged_soon(mss) } else { client })
    });
    let Some(mut session) = shared.serve.session() else { return };
    let client = match lives {
        Ok(client) => slot.insert(client),
        Err(error) => {
            tracing::warn!(%error, "a clone was lost when it was made");
            let ended = report(Answer::NONE, began_at);
            sink.push(&FromClone::Ended { conn, sent_bytes: 0, keep: false, ended });
            return;
        }
    };
    let access = (!shared.serve.counts_load()).then(|| shared.config.gauge.begin());
    let (closing, cut_off) = (NodeClosing::new(shared), CutOff::new(sink));
    let answering = async {
        match rest {
            Some(rest) => write_rest(client, rest).await,
            None => session.answer(client, outline, &closing).await,
        }
    };
    let answer = tokio::select! {
        biased;
        answer = answering => Some(answer),
        () = cut_off.ends(shared, &flow, number) => None,
    };
    let (Some(answer), Some(client)) = (answer, slot.as_ref()) else {
        slot.take().into_iter().for_each(ClientConnection::abort);
        return;
    };
    if let Some(access) = access {
        access.answered(u32::try_from(began_at.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    shared.counters.made_content_bytes.add(answer.content_bytes);
    let whole = answer.complete && answer.then != AfterAnswer::Abort;
    let keep = answer.then == AfterAnswer::KeepAlive;
    let ended = report(Answer { complete: whole, ..answer }, began_at);
    sink.push(&FromClone::Ended { conn, sent_bytes: client.written_bytes, keep, ended });
    if !whole {
        // One that was told to go says nothing.
        if let Some(client) = slot.take() {
            client.abort();
        }
        return;
    }
    CloneCounters::count(&shared.counters.answered_as_clone);
    if role == CloneRole::Keeps {
        let kept = KeptClone::new(shared, sink, conn, (flow, number), word);
        return kept.converse(slot, &mut session, answer.then).await;
    }
    let is_here = || shared.clones.is_here(&flow, number);
    go(shared, sink, slot, is_here).await;
}

/// Leaves silently once the client has everything, and the original has gone on. If the link is lost before, nobody may be there to go on,
/// and the client is told the end.
async fn go(
    shared: &CloneShared,
    sink: &FrameSink,
    slot: &mut Option<ClientConnection>,
    is_here: impl Fn() -> bool,
) {
    let Some(client) = slot.as_mut() else { return };
    let (limit, cut_off) = (shared.config.write_timeout, CutOff::new(sink));
    let all_taken = all_taken(client.stream.as_fd(), limit, &cut_off, &is_here).await;
    if all_taken && is_left_alone(shared, sink, &is_here).await {
        client.finish().await;
        return;
    }
    if !all_taken && is_here() && sink.is_lost() {
        slot.take().into_iter().for_each(ClientConnection::abort);
        return;
    }
    if is_here()
        && let Err(error) = tcp::discard(client.stream.as_fd())
    {
        tracing::debug!(%error, "a clone could not be removed");
    }
}
