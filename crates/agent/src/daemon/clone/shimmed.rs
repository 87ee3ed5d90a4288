//! Nodes whose server is behind the accept shim: it gets the socket of a connection for each request that is answered here, and that
//! of a clone with the request in its receive buffer.
//!
//! The agent looks at a request without reading it. A clone's server must not end the connection, as the original does: the shim keeps
//! it from that, and a copy of the socket here outlives the server's.

use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;
use plimsoll_datapath::shim::{Header, send_connection};
use plimsoll_datapath::{Flow, tcp};
use plimsoll_wire::cloning::FromClone;
use plimsoll_wire::load::ActiveAccess;
use rustix::net::{Shutdown, shutdown};

use super::super::client::{ClientConnection, Next};
use super::super::head::Outline;
use super::super::outcome::finish;
use super::super::serve::{AfterAnswer, Answer, Serve, answer_short};
use super::super::shim::{header_of, hear, pass, reach};
use super::access::AccessEnd;
use super::cloning::{CarriedOver, CloneTask, answer_by_clone};
use super::counters::{CloneCounters, DeclineReason};
use super::frames::FrameSink;
use super::made::{FreshClone, all_taken, report};
use super::mapping::{MappedEnd, NodePlace};
use super::original::{NodeClosing, OriginalEnd, target_of};
use super::peer_link::PeerLink;
use super::shared::CloneShared;
use super::under_way::UnderWay;

/// Handles requests until the connection ends. The client is in `slot` while the server does not have it.
pub(super) async fn converse(
    shared: &Arc<CloneShared>,
    links: &[Rc<PeerLink>],
    flow: Flow,
    slot: &mut Option<ClientConnection>,
) -> OriginalEnd {
    let Serve::Shim(path) = &shared.serve else { return OriginalEnd::Abort };
    let closing = NodeClosing::new(shared);
    loop {
        let Some(client) = slot.as_mut() else { return OriginalEnd::Gone };
        let (next, head) = client.peek(&closing, shared.config.idle_timeout).await;
        if matches!(next, Next::End | Next::TimedOut | Next::Close) {
            return OriginalEnd::Close;
        }
        let begun = shared.log_begin(flow.client, &head);
        let told = Rc::new(Cell::new(AccessEnd::NONE));
        let then = answer_one(shared, links, flow, slot, (&next, &head, path), &told).await;
        CloneCounters::count(&shared.counters.requests);
        shared.log_end(begun.as_ref(), &told.get());
        match then {
            None => return OriginalEnd::Gone,
            Some(AfterAnswer::KeepAlive) => {}
            Some(AfterAnswer::Close) => return OriginalEnd::Close,
            Some(AfterAnswer::Abort) => return OriginalEnd::Abort,
        }
    }
}

/// Has a request answered where it belongs; `None` once the connection is gone.
async fn answer_one(
    shared: &Arc<CloneShared>,
    links: &[Rc<PeerLink>],
    flow: Flow,
    slot: &mut Option<ClientConnection>,
    (next, head, path): (&Next, &[u8], &Path),
    told: &Rc<Cell<AccessEnd>>,
) -> Option<AfterAnswer> {
    let mut own = None;
    if let Next::Request(outline) = *next {
        let here_only = flow.vip.ip() == shared.config.listen.ip();
        let placed = shared.mapping.place(target_of(head), here_only, &shared.asks).await;
        told.set(AccessEnd::placed(&placed));
        match placed.place {
            NodePlace::Here => own = Some((placed, outline)),
            NodePlace::Peer(peer) => {
                // Tells the mapping how the request ends.
                let mut under_way = UnderWay::new(shared, outline, placed, None, Rc::clone(told));
                let task = CloneTask::Whole(outline, &[]);
                let carried = match links.get(peer).filter(|link| link.is_up()) {
                    Some(link) => answer_by_clone(shared, link, flow, slot, task, &mut under_way).await,
                    None => CarriedOver::Declined(DeclineReason::NoLink),
                };
                match carried {
                    CarriedOver::Answered { keep: true } => return Some(AfterAnswer::KeepAlive),
                    CarriedOver::Answered { keep: false } | CarriedOver::Closed => {
                        return Some(AfterAnswer::Close);
                    }
                    CarriedOver::Declined(why) => shared.counters.declined(why),
                    CarriedOver::Lost => return None,
                }
            }
        }
    }
    let (answer, then) = answer_here(shared, slot, path, header_of(next)).await;
    shared.counters.own_content_bytes.add(answer.content_bytes);
    told.set(told.get().answered(&answer));
    if let Some((placed, outline)) = own {
        let whole = outline.has_whole(answer.status);
        let end = MappedEnd::Answered { content_bytes: answer.content_bytes, whole };
        shared.mapping.ended(&placed, if answer.complete { end } else { MappedEnd::Failed });
    }
    then
}

/// Has the server answer on the connection itself, and takes it back at the next request.
async fn answer_here(
    shared: &CloneShared,
    slot: &mut Option<ClientConnection>,
    path: &Path,
    header: Header,
) -> (Answer, Option<AfterAnswer>) {
    CloneCounters::count(&shared.counters.own);
    let began_at = Instant::now();
    let access = shared.config.gauge.begin();
    let unix = match pass(slot, path, header).await {
        Ok(unix) => unix,
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "the server took no connection");
            let Some(client) = slot.as_mut() else { return (Answer::NONE, None) };
            let answer = answer_short(client, StatusCode::BAD_GATEWAY).await;
            return (answer, Some(AfterAnswer::Close));
        }
    };
    let (answer, back) = heard(&unix, began_at, access).await;
    // The shim has set the flag that the server expects, which all copies share.
    let client = back.and_then(|socket| {
        rustix::io::ioctl_fionbio(&socket, true).ok()?;
        ClientConnection::new(socket, b"", shared.config.write_timeout).ok()
    });
    *slot = client;
    (answer, slot.is_some().then_some(AfterAnswer::KeepAlive))
}

/// The first answer, and the socket when it comes back.
async fn heard(
    unix: &std::os::unix::net::UnixStream,
    began_at: Instant,
    access: ActiveAccess,
) -> (Answer, Option<OwnedFd>) {
    let mut first = None;
    let mut access = Some(access);
    let back = hear(unix, began_at, |answer| {
        if first.is_none() {
            finish(access.take(), began_at);
            first = Some(answer);
        }
    });
    let back = back.await;
    (first.unwrap_or(Answer::NONE), back)
}

/// Has the server answer on a clone, and lets that go once its client has everything.
pub(super) async fn answer(shared: &CloneShared, sink: &FrameSink, clone: FreshClone, path: &Path) {
    let began_at = Instant::now();
    let FreshClone { conn, flow, number, restored, head, outline, .. } = clone;
    let begun = restored.activate().and_then(|socket| {
        let written_bytes = tcp::written_bytes(socket.as_fd())?;
        Ok((socket, written_bytes))
    });
    let (socket, before_bytes) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            tracing::warn!(%error, "a clone was lost when it was made");
            let ended = report(Answer::NONE, began_at);
            sink.push(&FromClone::Ended { conn, sent_bytes: 0, keep: false, ended });
            return;
        }
    };
    let answer = of_server(shared, path, &socket, (&head, outline), began_at).await;
    let written = tcp::written_bytes(socket.as_fd());
    let whole = answer.complete && written.is_ok();
    let sent_bytes = written.unwrap_or(before_bytes).saturating_sub(before_bytes);
    shared.counters.made_content_bytes.add(answer.content_bytes);
    let keep = whole && outline.keep_alive && answer.then == AfterAnswer::KeepAlive;
    let ended = report(Answer { complete: whole, ..answer }, began_at);
    sink.push(&FromClone::Ended { conn, sent_bytes, keep, ended });
    let is_here = || shared.clones.is_here(&flow, number);
    if whole {
        CloneCounters::count(&shared.counters.answered_as_clone);
        let all_taken = all_taken(socket.as_fd(), shared.config.write_timeout, &is_here).await;
        if all_taken && sink.is_lost() {
            // Nobody may be there to go on: the client is told the end.
            let _ = shutdown(&socket, Shutdown::Write);
            return;
        }
    }
    // Of an answer that broke off, the original tells the client. The server sees the end of its copy.
    if is_here()
        && let Err(error) = tcp::take_away(socket.as_fd())
    {
        tracing::debug!(%error, fd = socket.as_raw_fd(), "a clone could not be removed");
    }
}

/// What the server answers on a clone whose request it reads from the socket.
async fn of_server(
    shared: &CloneShared,
    path: &Path,
    socket: &OwnedFd,
    (head, outline): (&[u8], Outline),
    began_at: Instant,
) -> Answer {
    let access = shared.config.gauge.begin();
    let header = Header {
        give_back_at_next_request: true,
        head_request: outline.is_head,
        head_size_bytes: u32::try_from(head.len()).unwrap_or(0),
        no_end: true,
    };
    let unix = match reach(path).await.and_then(|unix| {
        send_connection(&unix, socket, header)?;
        Ok(unix)
    }) {
        Ok(unix) => unix,
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "the server took no clone");
            let copy = socket
                .try_clone()
                .and_then(|copy| ClientConnection::new(copy, b"", shared.config.write_timeout));
            return match copy {
                Ok(mut client) => answer_short(&mut client, StatusCode::BAD_GATEWAY).await,
                Err(_) => Answer::NONE,
            };
        }
    };
    let mut access = Some(access);
    let (tell, mut told) = tokio::sync::oneshot::channel();
    let mut tell = Some(tell);
    let followed = hear(&unix, began_at, |answer| {
        finish(access.take(), began_at);
        if let Some(tell) = tell.take() {
            let _ = tell.send(answer);
        }
    });
    tokio::select! {
        biased;
        answer = &mut told => answer.unwrap_or(Answer::NONE),
        // It may have answered, and ended the connection, in one go.
        _ = followed => told.try_recv().unwrap_or(Answer::NONE),
    }
}
