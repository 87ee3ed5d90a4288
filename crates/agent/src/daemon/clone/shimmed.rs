//! Nodes whose server is behind the accept shim: it gets the socket of a connection for each request that is answered here. The agent
//! looks at a request without reading it. `shimmed_clone` has clones.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;
use plimsoll_datapath::Flow;
use plimsoll_datapath::shim::Header;
use plimsoll_wire::load::ActiveAccess;

use super::super::client::{ClientConnection, Next};
use super::super::outcome::finish;
use super::super::serve::{AfterAnswer, Answer, Serve, answer_short};
use super::super::shim::{header_of, hear, pass};
use super::access::RequestEnd;
use super::cloning::{CarriedOver, CloneTask, answer_by_clone};
use super::counters::{CloneCounters, DeclineReason};
use super::mapping::{MappedEnd, NodePlace};
use super::node_closing::{NodeClosing, OriginalEnd, target_of};
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
        let told = Rc::new(Cell::new(RequestEnd::NONE));
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
    told: &Rc<Cell<RequestEnd>>,
) -> Option<AfterAnswer> {
    let mut own = None;
    if let Next::Request(outline) = *next {
        let here_only = flow.vip.ip() == shared.config.listen.ip();
        let placed = shared.mapping.place(target_of(head), here_only, &shared.asks).await;
        told.set(RequestEnd::placed(&placed));
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
                    CarriedOver::Answered { keep: true, .. } => return Some(AfterAnswer::KeepAlive),
                    CarriedOver::Answered { keep: false, .. } | CarriedOver::Closed => {
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
