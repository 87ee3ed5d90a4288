//! A thread's link to another node, by which it has clones made.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_datapath::NextHop;
use plimsoll_wire::cloning::{CloneRole, FromClone, SentPart, ToClone};
use plimsoll_wire::codec::messages;
use plimsoll_wire::message::Conn;
use plimsoll_wire::session::{AgentTerms, Established};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use super::super::opening::{LinkOpener, LinkTrouble, open_link};
use super::config::CloneConfig;
use super::counters::CloneCounters;
use super::frames::{FrameSink, FramesEnd, run_frames};
use super::shared::CloneShared;

/// Pause before another attempt.
const PAUSE: Duration = Duration::from_millis(250);
/// The most clones of a link that have not ended.
const MOST_CLONES: usize = 4096;

type Waiting = Rc<RefCell<BTreeMap<u64, UnboundedSender<FromClone>>>>;

/// See the module's documentation.
pub(super) struct PeerLink {
    peer: usize,
    up: RefCell<Option<UpLink>>,
    /// Of the next clone. Not one is used twice, on this link or the next.
    next: Cell<u64>,
}

struct UpLink {
    sink: Rc<FrameSink>,
    waiting: Waiting,
    next_hop: NextHop,
}

/// A clone that was asked for. Dropped, its node is told to remove it, and nothing more is heard of it.
pub(super) struct PendingClone {
    conn: u64,
    sink: Rc<FrameSink>,
    waiting: Waiting,
    answers: UnboundedReceiver<FromClone>,
    /// The way to its node.
    pub(super) next_hop: NextHop,
}

impl PendingClone {
    /// What its node says next; `None` once the link is lost.
    pub(super) async fn hear(&mut self) -> Option<FromClone> {
        self.answers.recv().await
    }

    /// It is the turn of a clone that was made ahead. False when it cannot be told.
    pub(super) fn begin(&self, send_next: u32, client_window: u32) -> bool {
        self.sink.push(&ToClone::Begin { conn: Conn(self.conn), send_next, client_window })
    }

    /// Asks for the connection, as the clone has offered it.
    pub(super) fn give(&self) {
        self.sink.push(&ToClone::Give { conn: Conn(self.conn) });
    }

    /// Has the clone end the connection that it keeps.
    pub(super) fn close(&self) {
        self.sink.push(&ToClone::Close { conn: Conn(self.conn) });
    }
}

impl Drop for PendingClone {
    fn drop(&mut self) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.remove(&self.conn);
        let over = ToClone::Over { conn: Conn(self.conn) };
        // The clone itself goes once its client has everything: this is for one that has not heard of the last acknowledgment. Where others
        // are under way, it goes out with what is said of them. Where none is, the next request for this node may be the same client's, and
        // would wait for the removal.
        if waiting.is_empty() {
            self.sink.push(&over);
        } else {
            self.sink.push_later(&over);
        }
    }
}

impl PeerLink {
    pub(super) fn new(peer: usize) -> Self {
        Self { peer, up: RefCell::new(None), next: Cell::new(0) }
    }

    /// Whether clones can be asked for.
    pub(super) fn is_up(&self) -> bool {
        self.up.borrow().as_ref().is_some_and(|up| up.waiting.borrow().len() < MOST_CLONES)
    }

    /// Says something that is not about a clone, if the link is there.
    pub(super) fn tell(&self, message: &ToClone<'_>) {
        if let Some(up) = self.up.borrow().as_ref() {
            up.sink.push(message);
        }
    }

    /// Asks for a clone; `None` when the message could not be sent.
    pub(super) fn ask(
        &self,
        state: &[u8],
        head: &[u8],
        sent: Option<SentPart>,
        (role, followed): (CloneRole, bool),
    ) -> Option<PendingClone> {
        let up = self.up.borrow();
        let up = up.as_ref()?;
        let conn = self.next.replace(self.next.get() + 1);
        let (sender, answers) = unbounded_channel();
        up.waiting.borrow_mut().insert(conn, sender);
        let waiting = Rc::clone(&up.waiting);
        let sink = Rc::clone(&up.sink);
        let pending = PendingClone { conn, sink, waiting, answers, next_hop: up.next_hop };
        let order = ToClone::Clone { conn: Conn(conn), state, head, sent, role, followed };
        up.sink.push(&order).then_some(pending)
    }

    /// Has the link be there, again and again.
    pub(super) async fn keep(self: Rc<Self>, shared: Arc<CloneShared>) {
        let Some(peer) = shared.config.peers.get(self.peer) else { return };
        let CloneConfig { key, name, listen, .. } = &shared.config;
        let own = LinkOpener { key, name, from: listen.ip() };
        let mut trouble = LinkTrouble::default();
        loop {
            match open_link(&own, peer.address, &peer.name).await {
                Ok((stream, established)) => {
                    trouble = LinkTrouble::default();
                    tracing::debug!(peer = peer.name, "a link to another node begins");
                    let end = self.run(&shared, stream, established, peer.address).await;
                    tracing::info!(peer = peer.name, "a link to another node ends: {end}");
                }
                Err(why) => trouble.tell(&peer.name, peer.address, &why),
            }
            sleep(PAUSE).await;
        }
    }

    async fn run(
        &self,
        shared: &CloneShared,
        stream: TcpStream,
        established: Established<AgentTerms>,
        address: SocketAddr,
    ) -> String {
        let next_hop = match shared.learn_node(address.ip()) {
            Ok(next_hop) => next_hop,
            Err(why) => return why,
        };
        let keys = established.keys;
        let sink = Rc::new(FrameSink::new(Rc::new(stream), keys.writer));
        let waiting = Waiting::default();
        *self.up.borrow_mut() =
            Some(UpLink { sink: Rc::clone(&sink), waiting: Rc::clone(&waiting), next_hop });
        shared.link_is_up(self.peer, true);
        let ping = || {
            sink.push(&ToClone::Ping { token: 0 });
        };
        let take = |area: &[u8]| take(&waiting, area);
        let end = run_frames(&sink, keys.reader, shared.config.link_timeout, ping, take).await;
        *self.up.borrow_mut() = None;
        shared.link_is_up(self.peer, false);
        // Their senders go, which tells those that wait.
        waiting.borrow_mut().clear();
        match end {
            FramesEnd::Lost(why) => why,
            FramesEnd::Broken(why) => {
                CloneCounters::count(&shared.counters.broken_links);
                why
            }
        }
    }
}

fn take(waiting: &Waiting, area: &[u8]) -> Result<(), String> {
    for message in messages::<FromClone>(area) {
        let message = message.map_err(|error| error.to_string())?;
        let Some(Conn(conn)) = message.conn() else { continue };
        // One that nobody waits for has been given up.
        if let Some(sender) = waiting.borrow().get(&conn) {
            let _ = sender.send(message);
        }
    }
    Ok(())
}
