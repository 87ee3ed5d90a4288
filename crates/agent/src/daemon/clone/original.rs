//! A client's connection at the node that accepted it: each request is answered here, or by a clone.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;
use plimsoll_datapath::Flow;
use tokio::net::TcpStream;

use super::super::client::{ClientConnection, Next};
use super::super::closing::Closing;
use super::super::head::Outline;
use super::super::serve::{AfterAnswer, Answer, Beginning, Serve, Session, begin};
use super::access::AccessEnd;
use super::cloning::{CarriedOver, CloneTask, answer_by_clone};
use super::config::ClonePeer;
use super::counters::{CloneCounters, DeclineReason};
use super::mapping::{MappedEnd, MappedRequest, NodePlace};
use super::peer_link::PeerLink;
use super::shared::{CloneShared, NodePhase};
use super::shimmed;

/// Closes connections once the node stops.
pub(super) struct NodeClosing<'a> {
    shared: &'a CloneShared,
    heard: Cell<bool>,
}

impl<'a> NodeClosing<'a> {
    pub(super) fn new(shared: &'a CloneShared) -> Self {
        Self { shared, heard: Cell::new(false) }
    }
}

impl Closing for NodeClosing<'_> {
    fn is_closing(&self) -> bool {
        self.shared.is_stopping()
    }

    /// Once.
    async fn woken(&self) {
        if self.heard.get() {
            std::future::pending::<()>().await;
        }
        let _ = self.shared.phase.subscribe().wait_for(|phase| *phase != NodePhase::Running).await;
        self.heard.set(true);
    }
}

/// What becomes of a connection.
pub(super) enum OriginalEnd {
    /// It is closed in good order.
    Close,
    /// It is reset.
    Abort,
    /// It is gone already.
    Gone,
}

/// Serves a client's connection to its end.
pub(super) async fn serve(shared: Arc<CloneShared>, links: Rc<Vec<Rc<PeerLink>>>, stream: TcpStream) {
    let Some(_room) = shared.room() else { return };
    let (Ok(client), Ok(vip)) = (stream.peer_addr(), stream.local_addr()) else { return };
    let flow = Flow::new(client, vip);
    let client = stream.set_nodelay(true).and_then(|()| stream.into_std());
    let client = client.and_then(|fd| ClientConnection::new(fd.into(), b"", shared.config.write_timeout));
    let Ok(client) = client else { return };
    CloneCounters::count(&shared.counters.connections);
    let mut phase = shared.phase.subscribe();
    let mut slot = Some(client);
    let end = tokio::select! {
        biased;
        _ = phase.wait_for(|phase| *phase == NodePhase::Cut) => OriginalEnd::Abort,
        end = converse(&shared, &links, flow, &mut slot) => end,
    };
    let Some(mut client) = slot.take() else { return };
    match end {
        OriginalEnd::Close => drop(client.finish().await),
        OriginalEnd::Abort => client.abort(),
        OriginalEnd::Gone => {}
    }
}

/// Handles requests until the connection ends.
async fn converse(
    shared: &Arc<CloneShared>,
    links: &[Rc<PeerLink>],
    flow: Flow,
    slot: &mut Option<ClientConnection>,
) -> OriginalEnd {
    let Some(mut session) = shared.serve.session() else {
        return shimmed::converse(shared, links, flow, slot).await;
    };
    let closing = NodeClosing::new(shared);
    loop {
        let Some(client) = slot.as_mut() else { return OriginalEnd::Gone };
        let then = match client.next(&closing, shared.config.idle_timeout).await {
            Next::End | Next::TimedOut | Next::Close => return OriginalEnd::Close,
            Next::Foreign(why) => {
                let log = shared.access_log.as_ref();
                let begun = log.map(|log| log.begin(flow.client, &client.input));
                let answer = session.answer_foreign(client, why).await;
                if let Some((log, begun)) = log.zip(begun) {
                    let (status, content_bytes) = (answer.status, answer.content_bytes);
                    let end = AccessEnd {
                        status,
                        content_bytes,
                        first_byte_at: answer.first_byte_at,
                        ..AccessEnd::NONE
                    };
                    log.end(&begun, &end, (&shared.config.name, shared.mapping.policy()), |_| None);
                }
                answer.then
            }
            Next::Request(outline) => {
                let log = shared.access_log.as_ref();
                let begun = log.map(|log| log.begin(flow.client, &client.input[..outline.bytes]));
                let told = Cell::new(AccessEnd::NONE);
                let mut connection = RequestPath { shared, links, flow, closing: &closing, told: &told };
                let then = connection.answer(&mut session, slot, outline).await;
                if let Some((log, begun)) = log.zip(begun) {
                    let names = (&*shared.config.name, shared.mapping.policy());
                    let name_of = |peer| shared.config.peers.get(peer).map(|peer: &ClonePeer| &*peer.name);
                    log.end(&begun, &told.get(), names, name_of);
                }
                then
            }
        };
        CloneCounters::count(&shared.counters.requests);
        match then {
            AfterAnswer::KeepAlive if !closing.is_closing() => {}
            AfterAnswer::KeepAlive | AfterAnswer::Close => return OriginalEnd::Close,
            AfterAnswer::Abort => return OriginalEnd::Abort,
        }
    }
}

/// What answering a request takes.
struct RequestPath<'a> {
    shared: &'a Arc<CloneShared>,
    links: &'a [Rc<PeerLink>],
    flow: Flow,
    closing: &'a NodeClosing<'a>,
    /// What the access log is to tell.
    told: &'a Cell<AccessEnd>,
}

impl RequestPath<'_> {
    /// Answers the request at the start of the client's input where it belongs.
    async fn answer(
        &mut self,
        session: &mut Session<'_>,
        slot: &mut Option<ClientConnection>,
        outline: Outline,
    ) -> AfterAnswer {
        let shared = self.shared;
        let Some(client) = slot.as_ref() else { return AfterAnswer::Abort };
        let target = target_of(&client.input).to_vec();
        // Others have not the address by which they reach this node.
        let here_only = self.flow.vip.ip() == shared.config.listen.ip();
        let placed = shared.mapping.place(&target, here_only, &shared.asks).await;
        self.tell(|end| (end.placed_at, end.reason) = (Some(Instant::now()), Some(placed.reason)));
        if let NodePlace::Peer(peer) = placed.place {
            let link = self.links.get(peer).filter(|link| link.is_up());
            let task = CloneTask::Whole(outline);
            self.tell(|end| (end.by_peer, end.attempts) = (Some(peer), 1));
            let carried = match link {
                Some(link) if self.divides(outline) => {
                    let then = self.answer_in_two(link, slot, outline, &placed).await;
                    return then;
                }
                Some(link) => answer_by_clone(shared, link, self.flow, slot, task).await,
                None => CarriedOver::Declined(DeclineReason::NoLink),
            };
            match carried {
                CarriedOver::Declined(why) => {
                    shared.counters.declined(why);
                    shared.mapping.ended(&placed, MappedEnd::Failed);
                }
                CarriedOver::Answered { status, content_bytes, keep } => {
                    self.told_by_clone(status, content_bytes);
                    let whole = is_whole(status, outline);
                    shared.mapping.ended(&placed, MappedEnd::Answered { content_bytes, whole });
                    return if keep { AfterAnswer::KeepAlive } else { AfterAnswer::Close };
                }
                CarriedOver::Lost => {
                    shared.mapping.ended(&placed, MappedEnd::Failed);
                    return AfterAnswer::Abort;
                }
            }
            let Some(client) = slot.as_mut() else { return AfterAnswer::Abort };
            return self.answer_here(session, client, outline).await.then;
        }
        let Some(client) = slot.as_mut() else { return AfterAnswer::Abort };
        let answer = self.answer_here(session, client, outline).await;
        let whole = is_whole(answer.status, outline);
        let end = MappedEnd::Answered { content_bytes: answer.content_bytes, whole };
        shared.mapping.ended(&placed, if answer.complete { end } else { MappedEnd::Failed });
        answer.then
    }

    /// Whether the beginning of answers is sent here.
    fn divides(&self, outline: Outline) -> bool {
        self.shared.config.first_bytes > 0
            && !outline.is_head
            && matches!(self.shared.serve, Serve::Origin(_))
    }

    /// Sends the beginning of the answer here, and has a clone send the rest.
    async fn answer_in_two(
        &self,
        link: &Rc<PeerLink>,
        slot: &mut Option<ClientConnection>,
        outline: Outline,
        placed: &MappedRequest,
    ) -> AfterAnswer {
        let shared = self.shared;
        let (Serve::Origin(service), Some(client)) = (&shared.serve, slot.as_mut()) else {
            return AfterAnswer::Abort;
        };
        let first_bytes = shared.config.first_bytes;
        let answer = match begin(service, client, outline, self.closing, first_bytes).await {
            Beginning::Whole(answer) => answer,
            Beginning::Begun(begun) => {
                let task = CloneTask::Rest(&begun);
                match answer_by_clone(shared, link, self.flow, slot, task).await {
                    CarriedOver::Answered { content_bytes, .. } => {
                        CloneCounters::count(&shared.counters.rests);
                        let content_bytes = content_bytes + first_bytes;
                        self.told_by_clone(StatusCode::OK.as_u16(), content_bytes);
                        shared.mapping.ended(placed, MappedEnd::Answered { content_bytes, whole: true });
                        return begun.then();
                    }
                    CarriedOver::Declined(why) => {
                        shared.counters.declined(why);
                        let Some(client) = slot.as_mut() else { return AfterAnswer::Abort };
                        begun.finish(client).await
                    }
                    CarriedOver::Lost => {
                        shared.mapping.ended(placed, MappedEnd::Failed);
                        return AfterAnswer::Abort;
                    }
                }
            }
        };
        CloneCounters::count(&shared.counters.own);
        self.told_here(&answer);
        shared.mapping.ended(placed, MappedEnd::Failed);
        answer.then
    }

    async fn answer_here(
        &self,
        session: &mut Session<'_>,
        client: &mut ClientConnection,
        outline: Outline,
    ) -> Answer {
        CloneCounters::count(&self.shared.counters.own);
        let access = (!self.shared.serve.counts_load()).then(|| self.shared.config.gauge.begin());
        let began_at = Instant::now();
        let answer = session.answer(client, outline, self.closing).await;
        if let Some(access) = access {
            access.answered(u32::try_from(began_at.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
        self.told_here(&answer);
        answer
    }

    /// Changes what the access log is to tell.
    fn tell(&self, change: impl FnOnce(&mut AccessEnd)) {
        let mut end = self.told.get();
        change(&mut end);
        self.told.set(end);
    }

    /// A clone has answered.
    fn told_by_clone(&self, status: u16, content_bytes: u64) {
        self.shared.counters.clone_content_bytes.add(content_bytes);
        self.tell(|end| (end.status, end.content_bytes) = (status, content_bytes));
    }

    /// It was answered here.
    fn told_here(&self, answer: &Answer) {
        self.shared.counters.own_content_bytes.add(answer.content_bytes);
        self.tell(|end| {
            *end = AccessEnd {
                status: answer.status,
                content_bytes: answer.content_bytes,
                first_byte_at: answer.first_byte_at,
                by_peer: None,
                attempts: end.attempts + 1,
                ..*end
            };
        });
    }
}

/// Whether the content of such an answer is the whole document.
pub(super) fn is_whole(status: u16, outline: Outline) -> bool {
    status == 200 && !outline.is_head
}

/// The target of the request whose head begins `input`: the second word of its first line.
pub(super) fn target_of(input: &[u8]) -> &[u8] {
    let line = input.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or_default();
    line.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).nth(1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::target_of;

    #[test]
    fn targets() {
        assert_eq!(target_of(b"GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n"), b"/a?b");
        assert_eq!(target_of(b"GET"), b"");
        assert_eq!(target_of(b""), b"");
    }
}
