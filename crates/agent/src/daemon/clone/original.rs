//! A client's connection at the node that accepted it: each request is answered here, or by a clone.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_datapath::Flow;
use tokio::net::TcpStream;

use super::super::client::{ClientConnection, Next};
use super::super::closing::Closing as _;
use super::super::head::{self, FoundHead, Outline};
use super::super::serve::{AfterAnswer, Answer, Beginning, Serve, Session, begin};
use super::CLONE_TIMES;
use super::access::{AccessBegin, RequestEnd};
use super::cloning::{CarriedOver, CloneTask, Parked, answer_by_clone};
use super::counters::{CloneCounters, DeclineReason};
use super::mapping::{MappedEnd, MappedRequest, NodePlace};
use super::node_closing::{NodeClosing, OriginalEnd, target_of};
use super::peer_link::PeerLink;
use super::shared::{CloneShared, NodePhase};
use super::shimmed;
use super::under_way::{NextClone, UnderWay};

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
    let told = Rc::new(Cell::new(RequestEnd::NONE));
    let mut connection = RequestPath {
        shared,
        links,
        flow,
        closing: &closing,
        foreseen: None,
        parked: None,
        told: Rc::clone(&told),
    };
    loop {
        let then = match connection.next(slot).await {
            Next::End | Next::TimedOut | Next::Close => return OriginalEnd::Close,
            Next::Foreign(why) => {
                let Some(client) = slot.as_mut() else { return OriginalEnd::Gone };
                let begun = shared.log_begin(flow.client, &client.input);
                let answer = session.answer_foreign(client, why).await;
                CloneCounters::count(&shared.counters.own);
                shared.log_end(begun.as_ref(), &RequestEnd::NONE.answered(&answer));
                answer.then
            }
            Next::Request(outline) => {
                let begun = shared.log_begin(flow.client, &connection.input(slot)[..outline.bytes]);
                told.set(RequestEnd::NONE);
                let then = connection.answer(&mut session, slot, outline).await;
                shared.log_end(begun.as_ref(), &told.get());
                then
            }
        };
        CloneCounters::count(&shared.counters.requests);
        match then {
            AfterAnswer::KeepAlive if !closing.is_closing() => {}
            AfterAnswer::KeepAlive | AfterAnswer::Close => {
                connection.wake(slot);
                return OriginalEnd::Close;
            }
            AfterAnswer::Abort => return OriginalEnd::Abort,
        }
    }
}

/// What answering requests takes.
struct RequestPath<'a> {
    shared: &'a Arc<CloneShared>,
    links: &'a [Rc<PeerLink>],
    flow: Flow,
    closing: &'a NodeClosing<'a>,
    /// The next request, if it has its place already.
    foreseen: Option<MappedRequest>,
    /// The connection, in place of the client in the slot, if it is not known yet who answers the next request.
    parked: Option<Box<Parked<'a>>>,
    /// What the access log is to tell of the request that is answered now.
    told: Rc<Cell<RequestEnd>>,
}

impl Drop for RequestPath<'_> {
    fn drop(&mut self) {
        self.forget();
    }
}

impl<'a> RequestPath<'a> {
    /// The next request. If the connection is gone, it is [`Next::End`].
    async fn next(&self, slot: &mut Option<ClientConnection>) -> Next {
        match (&self.parked, slot) {
            (Some(parked), _) => Next::Request(parked.outline),
            (None, Some(client)) => client.next(self.closing, self.shared.config.idle_timeout).await,
            (None, None) => Next::End,
        }
    }

    /// What was read of the connection and not yet used.
    fn input<'i>(&'i self, slot: &'i Option<ClientConnection>) -> &'i [u8] {
        match (&self.parked, slot) {
            (Some(parked), _) => parked.input(),
            (None, Some(client)) => &client.input,
            (None, None) => &[],
        }
    }

    /// Whether the client is in the slot: a parked connection that cannot go on is gone.
    fn wake(&mut self, slot: &mut Option<ClientConnection>) -> bool {
        match self.parked.take() {
            Some(parked) => parked.wake(slot),
            None => slot.is_some(),
        }
    }

    /// The same for a request with this place; where it is gone, the request has failed.
    fn wake_for(&mut self, slot: &mut Option<ClientConnection>, placed: &MappedRequest) -> bool {
        let is_there = self.wake(slot);
        if !is_there {
            self.shared.mapping.ended(placed, MappedEnd::Failed);
        }
        is_there
    }

    /// Answers the request at the start of the client's input where it belongs.
    async fn answer(
        &mut self,
        session: &mut Session<'_>,
        slot: &mut Option<ClientConnection>,
        outline: Outline,
    ) -> AfterAnswer {
        let shared = self.shared;
        tracing::event!(name: "asked", target: CLONE_TIMES, tracing::Level::TRACE, {});
        // Others have not the address by which they reach this node.
        let here_only = self.flow.vip.ip() == shared.config.listen.ip();
        let placed = match self.foreseen.take() {
            Some(placed) => placed,
            None => shared.mapping.place(target_of(self.input(slot)), here_only, &shared.asks).await,
        };
        self.told.set(RequestEnd::placed(&placed));
        if let NodePlace::Peer(peer) = placed.place {
            let link = self.links.get(peer).filter(|link| link.is_up()).cloned();
            let carried = match link {
                Some(link) if self.divides(outline) => {
                    if !self.wake_for(slot, &placed) {
                        return AfterAnswer::Abort;
                    }
                    return self.answer_in_two(&link, slot, outline, placed).await;
                }
                Some(link) => {
                    let next = self.look_ahead(slot, outline, peer).await;
                    self.carry_over(&link, slot, outline, placed, next).await
                }
                None => {
                    shared.mapping.ended(&placed, MappedEnd::Failed);
                    CarriedOver::Declined(DeclineReason::NoLink)
                }
            };
            match carried {
                CarriedOver::Declined(why) => shared.counters.declined(why),
                CarriedOver::Answered { keep: true, parked } => {
                    self.parked = parked;
                    return AfterAnswer::KeepAlive;
                }
                CarriedOver::Answered { keep: false, .. } | CarriedOver::Closed => return AfterAnswer::Close,
                CarriedOver::Lost => return AfterAnswer::Abort,
            }
            // The request has ended for the mapping.
            self.wake(slot);
            let Some(client) = slot.as_mut() else { return AfterAnswer::Abort };
            return self.answer_here(session, client, outline).await.then;
        }
        if !self.wake_for(slot, &placed) {
            return AfterAnswer::Abort;
        }
        let Some(client) = slot.as_mut() else { return AfterAnswer::Abort };
        let answer = self.answer_here(session, client, outline).await;
        let whole = outline.has_whole(answer.status);
        let end = MappedEnd::Answered { content_bytes: answer.content_bytes, whole };
        shared.mapping.ended(&placed, if answer.complete { end } else { MappedEnd::Failed });
        answer.then
    }

    /// Has clones answer this request, and those behind it that are given.
    async fn carry_over(
        &mut self,
        link: &Rc<PeerLink>,
        slot: &mut Option<ClientConnection>,
        outline: Outline,
        placed: MappedRequest,
        behind: Vec<Behind>,
    ) -> CarriedOver<'a> {
        let mut under_way = UnderWay::new(self.shared, outline, placed, None, Rc::clone(&self.told));
        let mut next = Vec::with_capacity(behind.len());
        for Behind { outline, placed, link, begun } in behind {
            let end = RequestEnd::placed(&placed);
            under_way.push(outline, placed, begun.map(|begun| (begun, end)));
            next.push(NextClone { bytes: outline.bytes, link });
        }
        let task = CloneTask::Whole(outline, &next);
        let carried = match self.parked.take() {
            Some(parked) => parked.answer_by_clone(link, slot, task, &mut under_way).await,
            None => answer_by_clone(self.shared, link, self.flow, slot, task, &mut under_way).await,
        };
        if !under_way.all_answered() {
            // Others are before it.
            self.forget();
        }
        carried
    }

    /// The requests behind the first one in the input for which clones can be made ahead: each at a node of its own. That behind
    /// them is foreseen.
    async fn look_ahead(
        &mut self,
        slot: &Option<ClientConnection>,
        first: Outline,
        first_peer: usize,
    ) -> Vec<Behind> {
        let mut behind = Vec::new();
        let mut peers = vec![first_peer];
        let mut keep_alive = first.keep_alive;
        let mut foreseen = None;
        let mut left = self.input(slot).get(first.bytes..).unwrap_or_default();
        while keep_alive && behind.len() < self.shared.config.ahead && !left.is_empty() {
            let FoundHead::Request(outline) = head::find(left) else { break };
            let placed = self.shared.mapping.place(target_of(left), false, &self.shared.asks).await;
            let link = match placed.place {
                NodePlace::Peer(peer) if !peers.contains(&peer) => {
                    peers.push(peer);
                    self.links.get(peer).filter(|link| link.is_up()).cloned()
                }
                _ => None,
            };
            let Some(link) = link else {
                foreseen = Some(placed);
                break;
            };
            keep_alive = outline.keep_alive;
            let begun = self.shared.log_begin(self.flow.client, &left[..outline.bytes]);
            left = left.get(outline.bytes..).unwrap_or_default();
            behind.push(Behind { outline, placed, link, begun });
        }
        self.foreseen = foreseen;
        behind
    }

    /// The foreseen request is not the next one.
    fn forget(&mut self) {
        if let Some(placed) = self.foreseen.take() {
            self.shared.mapping.ended(&placed, MappedEnd::Failed);
        }
    }

    /// Whether the beginning of answers is sent here.
    fn divides(&self, outline: Outline) -> bool {
        self.shared.config.first_bytes > 0
            && !outline.is_head
            && matches!(self.shared.serve, Serve::Origin(_))
    }

    /// Sends the beginning of the answer here, and has a clone send the rest.
    async fn answer_in_two(
        &mut self,
        link: &Rc<PeerLink>,
        slot: &mut Option<ClientConnection>,
        outline: Outline,
        placed: MappedRequest,
    ) -> AfterAnswer {
        let shared = self.shared;
        let (Serve::Origin(service), Some(client)) = (&shared.serve, slot.as_mut()) else {
            return AfterAnswer::Abort;
        };
        let first_bytes = shared.config.first_bytes;
        let mut under_way = UnderWay::new(shared, outline, placed, Some(first_bytes), Rc::clone(&self.told));
        let answer = match begin(service, client, outline, self.closing, first_bytes).await {
            Beginning::Whole(answer) => answer,
            Beginning::Begun(begun) => {
                let task = CloneTask::Rest(&begun);
                match answer_by_clone(shared, link, self.flow, slot, task, &mut under_way).await {
                    CarriedOver::Answered { parked, .. } => {
                        self.parked = parked;
                        return begun.then();
                    }
                    CarriedOver::Declined(why) => {
                        shared.counters.declined(why);
                        let Some(client) = slot.as_mut() else { return AfterAnswer::Abort };
                        begun.finish(client).await
                    }
                    CarriedOver::Lost | CarriedOver::Closed => return AfterAnswer::Abort,
                }
            }
        };
        CloneCounters::count(&shared.counters.own);
        self.told_here(&answer, slot.as_ref());
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
        let began_at = std::time::Instant::now();
        let answer = session.answer(client, outline, self.closing).await;
        if let Some(access) = access {
            access.answered(u32::try_from(began_at.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
        self.told_here(&answer, Some(client));
        answer
    }

    /// It was answered here.
    fn told_here(&self, answer: &Answer, client: Option<&ClientConnection>) {
        self.shared.counters.own_content_bytes.add(answer.content_bytes);
        self.told.set(self.told.get().answered_on(client, answer));
    }
}

/// A request behind the one that is answered now, and the link to its node.
struct Behind {
    outline: Outline,
    placed: MappedRequest,
    link: Rc<PeerLink>,
    /// For the access log, where there is one.
    begun: Option<AccessBegin>,
}
