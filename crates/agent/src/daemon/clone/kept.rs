//! A clone that keeps its connection: it answers the next requests as long as they are its node's own, and hands the connection
//! back with the first one that is not.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use plimsoll_datapath::Flow;
use plimsoll_datapath::tcp::{self, Frozen, TcpState};
use plimsoll_wire::cloning::FromClone;
use plimsoll_wire::message::Conn;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::super::client::{ClientConnection, Next};
use super::super::closing::Closing;
use super::super::head::Outline;
use super::super::serve::{AfterAnswer, Answer, Session};
use super::access::RequestEnd;
use super::counters::CloneCounters;
use super::doubts::AGAIN;
use super::frames::FrameSink;
use super::fresh::{CutOff, HELD, all_taken, is_left_alone};
use super::mapping::{MappedEnd, MappedRequest, NodePlace};
use super::node_closing::{NodeClosing, target_of};
use super::shared::CloneShared;

/// What the original says to a clone that keeps its connection.
#[derive(Debug, Default)]
pub(super) struct KeptWord {
    wake: Notify,
    give: Cell<bool>,
    close: Cell<bool>,
}

impl KeptWord {
    pub(super) fn give(&self) {
        self.give.set(true);
        self.wake.notify_one();
    }

    /// Also when the link is lost: nobody would get the connection back.
    pub(super) fn close(&self) {
        self.close.set(true);
        self.wake.notify_one();
    }
}

/// What came of handing a connection back.
enum HandedBack {
    /// The clone has it no more.
    Gone,
    /// The clone has to keep it.
    Stays,
    /// The link was lost before the original had asked for it.
    Lost,
}

/// See the module's documentation.
pub(super) struct KeptClone<'a> {
    pub(super) shared: &'a CloneShared,
    pub(super) sink: &'a FrameSink,
    pub(super) conn: Conn,
    pub(super) flow: Flow,
    /// Of the clone at this node.
    pub(super) number: u64,
    pub(super) word: Rc<KeptWord>,
    node: NodeClosing<'a>,
    /// Requests answered after the first one.
    kept: u64,
    /// Whether it cannot be handed back any more.
    stays: bool,
}

impl Closing for KeptClone<'_> {
    fn is_closing(&self) -> bool {
        self.word.close.get() || self.sink.is_lost() || self.node.is_closing()
    }

    async fn woken(&self) {
        tokio::select! {
            () = self.word.wake.notified() => {}
            () = self.node.woken() => {}
        }
    }
}

impl<'a> KeptClone<'a> {
    pub(super) fn new(
        shared: &'a CloneShared,
        sink: &'a FrameSink,
        conn: Conn,
        (flow, number): (Flow, u64),
        word: Rc<KeptWord>,
    ) -> Self {
        let node = NodeClosing::new(shared);
        Self { shared, sink, conn, flow, number, word, node, kept: 0, stays: false }
    }

    /// Answers requests after the first one until the connection is handed back or has ended.
    pub(super) async fn converse(
        mut self,
        slot: &mut Option<ClientConnection>,
        session: &mut Session<'_>,
        mut then: AfterAnswer,
    ) {
        let mut most = Duration::MAX;
        while then == AfterAnswer::KeepAlive {
            let Some(client) = slot.as_mut() else { return };
            then = match client.next(&self, self.shared.config.idle_timeout).await {
                Next::Request(outline) => {
                    let placed =
                        self.shared.mapping.place(target_of(&client.input), false, &self.shared.asks).await;
                    let is_own = placed.place == NodePlace::Here;
                    if is_own || self.stays || self.is_closing() {
                        self.answer(client, session, outline, &placed).await
                    } else {
                        self.shared.mapping.ended(&placed, MappedEnd::Failed);
                        match self.hand_back(slot).await {
                            HandedBack::Gone => return,
                            HandedBack::Stays => continue,
                            HandedBack::Lost => most = HELD,
                        }
                        AfterAnswer::Close
                    }
                }
                Next::Foreign(why) => session.answer_foreign(client, why).await.then,
                Next::End | Next::TimedOut | Next::Close => AfterAnswer::Close,
            };
        }
        let Some(mut client) = slot.take() else { return };
        let whole = then == AfterAnswer::Close && self.all_taken(&client, most).await;
        if whole {
            client.finish().await;
        } else {
            client.abort();
        }
        self.sink.push(&FromClone::Closed { conn: self.conn, kept: self.kept, whole });
    }

    /// Ends our side, and waits until the client has everything, or has reset the connection: the original stops leading packets here
    /// soon after it has heard of the end. False if the client takes nothing, for this long at most.
    async fn all_taken(&self, client: &ClientConnection, most: Duration) -> bool {
        let socket = client.stream.as_fd();
        let limit = most.min(self.shared.config.write_timeout);
        let cut_off = CutOff::new(self.sink);
        client.end_output().is_err()
            || all_taken(socket, limit, &cut_off, || !client.is_over()).await
            || client.is_over()
    }

    async fn answer(
        &mut self,
        client: &mut ClientConnection,
        session: &mut Session<'_>,
        outline: Outline,
        placed: &MappedRequest,
    ) -> AfterAnswer {
        let shared = self.shared;
        let access = (!shared.serve.counts_load()).then(|| shared.config.gauge.begin());
        let began_at = Instant::now();
        let begun = shared.log_begin(self.flow.client, &client.input[..outline.bytes]);
        let answer: Answer = session.answer(client, outline, &*self).await;
        if let Some(access) = access {
            access.answered(u32::try_from(began_at.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
        shared.counters.made_content_bytes.add(answer.content_bytes);
        let end = RequestEnd { by_peer: None, on_clone: true, attempts: 0, ..RequestEnd::placed(placed) };
        shared.log_end(begun.as_ref(), &end.answered_on(Some(client), &answer));
        let whole = outline.has_whole(answer.status);
        let end = MappedEnd::Answered { content_bytes: answer.content_bytes, whole };
        let is_well = answer.complete && placed.place == NodePlace::Here;
        shared.mapping.ended(placed, if is_well { end } else { MappedEnd::Failed });
        if !answer.complete {
            return AfterAnswer::Abort;
        }
        self.kept += 1;
        CloneCounters::count(&shared.counters.answered_as_clone);
        CloneCounters::count(&shared.counters.answered_as_kept);
        answer.then
    }

    /// Has the original hold packets, and gives the connection to it.
    async fn hand_back(&mut self, slot: &mut Option<ClientConnection>) -> HandedBack {
        self.word.give.set(false);
        self.sink.push(&FromClone::Return { conn: self.conn });
        while !self.word.give.get() {
            if self.sink.is_lost() {
                return HandedBack::Lost;
            }
            self.word.wake.notified().await;
        }
        let Some(client) = slot.take() else { return HandedBack::Gone };
        let Ok((fd, input)) = client.into_parts() else { return HandedBack::Gone };
        let limits = self.shared.config.queue_limits();
        let fd = match Frozen::freeze(fd) {
            Ok(frozen) => match frozen.snapshot(&self.flow, &input, limits) {
                Ok(state) => {
                    let mut bytes = Vec::with_capacity(state.encoded_bytes());
                    state.encode(&mut bytes);
                    frozen.close();
                    let kept = self.kept;
                    self.sink.push(&FromClone::Back { conn: self.conn, state: bytes, kept });
                    self.see_it_go_on(&state).await;
                    return HandedBack::Gone;
                }
                Err(why) => {
                    tracing::debug!(flow = ?self.flow, "a connection stays with its clone: {why}");
                    frozen.thaw()
                }
            },
            Err(failed) => {
                tracing::debug!(flow = ?self.flow, "a connection stays with its clone: {}", failed.error);
                Ok(failed.fd)
            }
        };
        self.stays = true;
        let limit = self.shared.config.write_timeout;
        match fd.and_then(|fd| ClientConnection::new(fd, &input, limit)) {
            Ok(client) => *slot = Some(client),
            Err(error) => tracing::warn!(%error, flow = ?self.flow, "a clone was lost"),
        }
        self.sink.push(&FromClone::Stays { conn: self.conn });
        HandedBack::Stays
    }

    /// Waits until the original has gone on with the connection that it was given in this state. If it dies before, nobody has it, and its client,
    /// who may wait without a word, is told the end: with the number behind all that was sent, which it has received by then, or has acknowledged
    /// last.
    async fn see_it_go_on(&self, state: &TcpState) {
        let is_here = || self.shared.clones.is_here(&self.flow, self.number);
        if !is_left_alone(self.shared, self.sink, is_here).await {
            return;
        }
        for pause in [AGAIN, Duration::ZERO] {
            for send_next in [state.send_sent(), state.send_acknowledged()] {
                if let Err(error) = tcp::reset(&self.flow, send_next, state.receive_next) {
                    tracing::debug!(%error, flow = ?self.flow, "a client was not told of the end");
                }
            }
            sleep(pause).await;
        }
    }
}
