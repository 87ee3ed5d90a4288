//! A link to another node, by which documents are asked for and hints are sent.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use plimsoll_wire::caching::{FromHolder, MOST_HINTS, ToHolder, name_number};
use plimsoll_wire::codec::messages;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::super::clone::frames::{FrameSink, FramesEnd, run_frames};
use super::super::opening::{LinkOpener, LinkTrouble, open_link};
use super::memory::{Fetched, Wanted};
use super::state::CacheState;

/// Pause before another attempt.
const PAUSE: Duration = Duration::from_millis(250);
/// Most questions of a link that are not answered.
const MOST_ASKS: usize = 1024;

struct Waiting {
    /// Of the document's name.
    number: u64,
    sender: oneshot::Sender<Fetched>,
}

/// See the module's documentation.
pub(super) struct AskingLink {
    peer: usize,
    sink: RefCell<Option<Rc<FrameSink>>>,
    next: Cell<u64>,
    waiting: RefCell<BTreeMap<u64, Waiting>>,
}

impl AskingLink {
    pub(super) fn new(peer: usize) -> Self {
        Self { peer, sink: RefCell::new(None), next: Cell::new(0), waiting: RefCell::default() }
    }

    /// Whether documents can be asked for.
    pub(super) fn is_up(&self) -> bool {
        self.sink.borrow().is_some() && self.forget_given_up() < MOST_ASKS
    }

    /// Forgets questions whose time is over; returns how many are left.
    fn forget_given_up(&self) -> usize {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() >= MOST_ASKS {
            waiting.retain(|_, waiting| !waiting.sender.is_closed());
        }
        waiting.len()
    }

    pub(super) fn ask(&self, wanted: &Wanted, held_only: bool, sender: oneshot::Sender<Fetched>) {
        let ask = self.next.replace(self.next.get() + 1);
        let Wanted { name, size_bytes, modified_ns } = wanted;
        let message =
            ToHolder::Ask { ask, name, size_bytes: *size_bytes, modified_ns: *modified_ns, held_only };
        let sink = self.sink.borrow();
        if sink.as_ref().is_some_and(|sink| sink.push(&message)) {
            self.waiting.borrow_mut().insert(ask, Waiting { number: name_number(name), sender });
        } else {
            let _ = sender.send(Fetched::Lost);
        }
    }

    pub(super) fn tell(&self, message: &ToHolder<'_>) {
        if let Some(sink) = self.sink.borrow().as_ref() {
            sink.push(message);
        }
    }

    /// Has the link be there, again and again.
    pub(super) async fn keep(self: Rc<Self>, thread: Rc<CacheState>) {
        let config = &thread.config;
        let Some(peer) = config.peers.get(self.peer) else { return };
        let own = LinkOpener { key: &config.key, name: &config.name, from: config.listen.ip() };
        let mut trouble = LinkTrouble::default();
        loop {
            match open_link(&own, peer.address, &peer.name).await {
                Ok((stream, established)) => {
                    trouble = LinkTrouble::default();
                    let keys = established.keys;
                    let sink = Rc::new(FrameSink::new(Rc::new(stream), keys.writer));
                    *self.sink.borrow_mut() = Some(Rc::clone(&sink));
                    thread.links_up(1);
                    self.tell_all(&thread);
                    let ping = || {
                        sink.push(&ToHolder::Ping { token: 0 });
                    };
                    let take = |area: &[u8]| self.take(&thread, area);
                    let end = run_frames(&sink, keys.reader, config.link_timeout, ping, take).await;
                    *self.sink.borrow_mut() = None;
                    thread.links_up(-1);
                    for (_, waiting) in std::mem::take(&mut *self.waiting.borrow_mut()) {
                        let _ = waiting.sender.send(Fetched::Lost);
                    }
                    if matches!(end, FramesEnd::Broken(_)) {
                        thread.counters.broken_links.add();
                    }
                    tracing::info!(peer = peer.name, "a link for documents ends: {end:?}");
                }
                Err(why) => trouble.tell(&peer.name, peer.address, &why),
            }
            sleep(PAUSE).await;
        }
    }

    /// Tells what is in memory here, to a node that knows nothing of it.
    fn tell_all(&self, thread: &CacheState) {
        let held: Vec<u64> = thread.held.borrow().iter().copied().collect();
        for numbers in held.chunks(MOST_HINTS) {
            self.tell(&ToHolder::Held { numbers: numbers.to_vec() });
        }
    }

    fn take(&self, thread: &CacheState, area: &[u8]) -> Result<(), String> {
        for message in messages::<FromHolder<'_>>(area) {
            let (ask, fetched) = match message.map_err(|error| error.to_string())? {
                FromHolder::Document { ask, digest, bytes } => {
                    (ask, Fetched::Document { bytes: Bytes::copy_from_slice(bytes), digest })
                }
                FromHolder::Absent { ask } => (ask, Fetched::Absent),
                FromHolder::Pong { .. } => continue,
            };
            // One that nobody waits for has been given up.
            let Some(waiting) = self.waiting.borrow_mut().remove(&ask) else { continue };
            if matches!(fetched, Fetched::Absent) {
                thread.counters.absent.add();
                thread.places.borrow_mut().dropped(self.peer, waiting.number);
            }
            let _ = waiting.sender.send(fetched);
        }
        Ok(())
    }
}
