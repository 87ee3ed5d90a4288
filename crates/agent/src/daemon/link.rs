//! The shared side of a link: the queue of messages, and the connections by number.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_datapath::Flow;
use plimsoll_wire::message::{Conn, FromAgent};
use plimsoll_wire::session::{FrameWriter, FrontEndId};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The most queued bytes; a front-end that does not read them loses the link.
const MOST_QUEUED_BYTES: usize = 64 << 20;

/// How long a message may wait to share a frame with others: a frame of its own costs the front-end more than
/// the message.
const LATER: Duration = Duration::from_millis(5);

/// The shared side of a link. It keeps a `C` for each connection that came by it, only to give it out again.
pub(super) struct FrontEndLink<C> {
    pub(super) number: u64,
    pub(super) peer: FrontEndId,
    pub(super) source: IpAddr,
    out: Mutex<LinkOutput>,
    wake: Notify,
    lost: AtomicBool,
    doubted: AtomicBool,
    superseded: AtomicBool,
    /// With which its front-end last said that it is active; 0 before.
    term: AtomicU64,
    /// Looked up only, except at the end of the link.
    table: Mutex<HashMap<Conn, LinkEntry<C>, FixedState>>,
}

struct LinkOutput {
    writer: FrameWriter,
    sent_bytes: u64,
    /// When to send the queued messages.
    due: Option<Instant>,
}

/// The result of an attempt to send.
pub(super) struct Flushed {
    /// Whether bytes are left that the socket did not take.
    pub(super) left: bool,
    /// Bytes sent since the link began.
    pub(super) sent_bytes: u64,
    /// When to send queued messages that can wait.
    pub(super) due: Option<Instant>,
}

/// The connection of a number.
enum LinkEntry<C> {
    Here(Arc<C>),
    /// Given back, and not released yet.
    Returned(Flow),
}

impl<C> FrontEndLink<C> {
    pub(super) fn new(number: u64, peer: FrontEndId, source: IpAddr, writer: FrameWriter) -> Self {
        Self {
            number,
            peer,
            source,
            out: Mutex::new(LinkOutput { writer, sent_bytes: 0, due: None }),
            wake: Notify::new(),
            lost: AtomicBool::new(false),
            doubted: AtomicBool::new(false),
            superseded: AtomicBool::new(false),
            term: AtomicU64::new(0),
            table: Mutex::default(),
        }
    }

    fn out(&self) -> MutexGuard<'_, LinkOutput> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Conn, LinkEntry<C>, FixedState>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The front-end says here that it is active with this term. Returns whether it has not said so here before.
    pub(super) fn begins_term(&self, term: u64) -> bool {
        self.term.swap(term, Ordering::Relaxed) != term
    }

    /// The term that it said last here; 0 before.
    pub(super) fn term(&self) -> u64 {
        self.term.load(Ordering::Relaxed)
    }

    /// Queues a message, which the link's thread will send.
    pub(super) fn push(&self, message: &FromAgent<'_>) {
        self.queue(message, Instant::now());
    }

    /// Queues a message that is not urgent: it goes with the next one, or alone soon.
    pub(super) fn push_later(&self, message: &FromAgent<'_>) {
        self.queue(message, Instant::now() + LATER);
    }

    fn queue(&self, message: &FromAgent<'_>, due: Instant) {
        if self.is_lost() {
            return;
        }
        let mut out = self.out();
        if let Err(error) = out.writer.push(message) {
            tracing::error!(%error, "a message could not be sent");
            return;
        }
        let sooner = out.due.is_none_or(|at| due < at);
        if sooner {
            out.due = Some(due);
        }
        drop(out);
        if sooner {
            self.wake.notify_one();
        }
    }

    /// Notes a given-back connection, whose packets are sent on once it is released.
    pub(super) fn returned(&self, conn: Conn, flow: Flow) {
        self.table().insert(conn, LinkEntry::Returned(flow));
    }

    /// Registers a connection under its number; false when the number is taken.
    pub(super) fn enter(&self, conn: Conn, connection: &Arc<C>) -> bool {
        self.table().try_insert(conn, LinkEntry::Here(Arc::clone(connection))).is_ok()
    }

    pub(super) fn knows(&self, conn: Conn) -> bool {
        self.table().contains_key(&conn)
    }

    /// Removes a given-back connection and returns its flow.
    pub(super) fn take_returned(&self, conn: Conn) -> Option<Flow> {
        let mut table = self.table();
        let Some(&LinkEntry::Returned(flow)) = table.get(&conn) else { return None };
        table.remove(&conn);
        Some(flow)
    }

    pub(super) fn is_of_same_process(&self, other: &Self) -> bool {
        let of = |link: &Self| (link.source, link.peer.instance);
        of(self) == of(other) && self.peer.name == other.peer.name
    }

    /// Whether another process of the same front-end has this one.
    pub(super) fn is_of_other_process(&self, other: &Self) -> bool {
        let of = |link: &Self| (link.source, link.peer.name.clone());
        of(self) == of(other) && self.peer.instance != other.peer.instance
    }

    /// Whether its front-end has the same name.
    pub(super) fn is_of_same_name(&self, other: &Self) -> bool {
        self.peer.name == other.peer.name
    }

    /// Another process of its front-end has opened a link. There is one at a time, as they share a packet program: this
    /// one's is gone.
    pub(super) fn supersede(&self) {
        self.superseded.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Whether its front-end's process is gone.
    pub(super) fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Relaxed)
    }

    /// Its front-end has opened another link: this one is lost if it stays silent.
    pub(super) fn doubt(&self) {
        self.doubted.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Whether it has been doubted since that was last asked.
    pub(super) fn take_doubt(&self) -> bool {
        self.doubted.swap(false, Ordering::Relaxed)
    }

    /// Waits until something is queued or the link is doubted.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Whether nothing is sent any more.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Marks the link as lost: it sends nothing any more. Returns the connections that came by it, in no order, and the
    /// flows of those that were given back and not released.
    pub(super) fn lose(&self) -> (Vec<Arc<C>>, Vec<Flow>) {
        self.lost.store(true, Ordering::Relaxed);
        self.surrender()
    }

    /// Takes its connections from the link, which stays: its front-end has no say in them any more. Returns the same as
    /// [`FrontEndLink::lose`].
    pub(super) fn surrender(&self) -> (Vec<Arc<C>>, Vec<Flow>) {
        let (mut connections, mut returned) = (Vec::new(), Vec::new());
        for entry in std::mem::take(&mut *self.table()).into_values() {
            match entry {
                LinkEntry::Here(connection) => connections.push(connection),
                LinkEntry::Returned(flow) => returned.push(flow),
            }
        }
        returned.sort_unstable();
        (connections, returned)
    }

    pub(super) fn forget(&self, conn: Conn) {
        self.table().remove(&conn);
    }

    pub(super) fn find(&self, conn: Conn) -> Option<Arc<C>> {
        match self.table().get(&conn) {
            Some(LinkEntry::Here(connection)) => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// If something is due, sends all queued bytes that the socket takes.
    pub(super) fn flush(&self, stream: &TcpStream) -> io::Result<Flushed> {
        let mut out = self.out();
        if out.due.is_none_or(|due| due > Instant::now()) {
            return Ok(Flushed { left: false, sent_bytes: out.sent_bytes, due: out.due });
        }
        loop {
            let bytes = out.writer.finish();
            if bytes.is_empty() {
                out.due = None;
                return Ok(Flushed { left: false, sent_bytes: out.sent_bytes, due: None });
            }
            match stream.try_write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    out.writer.consume(count);
                    out.sent_bytes += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if out.writer.queued_bytes() > MOST_QUEUED_BYTES {
                        return Err(io::Error::other("it does not read what it is sent"));
                    }
                    return Ok(Flushed { left: true, sent_bytes: out.sent_bytes, due: None });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the socket has taken all that was queued, or nothing is sent any more.
    pub(super) fn has_sent_all(&self) -> bool {
        self.is_lost() || self.out().writer.queued_bytes() == 0
    }

    /// The count of sent bytes once everything queued now is sent.
    pub(super) fn mark(&self) -> u64 {
        let mut out = self.out();
        let queued = out.writer.finish().len() as u64;
        out.sent_bytes + queued
    }
}
