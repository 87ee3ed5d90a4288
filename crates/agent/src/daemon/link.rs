//! A link as the connections and the other threads see it: where messages are queued, and what its numbers stand for.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
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

use super::connection::Connection;

/// Most bytes that wait to be sent; a front-end that takes less loses the link.
const MOST_QUEUED_BYTES: usize = 64 << 20;

/// How long a message waits at most for others to go with: a frame of its own costs the front-end more than its content.
const LATER: Duration = Duration::from_millis(5);

/// A link as others see it.
pub(super) struct Link {
    pub(super) number: u64,
    pub(super) peer: FrontEndId,
    source: IpAddr,
    out: Mutex<Out>,
    wake: Notify,
    lost: AtomicBool,
    doubted: AtomicBool,
    superseded: AtomicBool,
    /// Looked up only, but for the end of the link.
    table: Mutex<HashMap<Conn, Entry, FixedState>>,
}

struct Out {
    writer: FrameWriter,
    sent_bytes: u64,
    /// When what is queued is to be sent.
    due: Option<Instant>,
}

/// What became of an attempt to send.
pub(super) struct Flushed {
    /// Whether the socket does not take all now.
    pub(super) left: bool,
    /// Bytes sent since the link began.
    pub(super) sent_bytes: u64,
    /// When there is something to be sent that can wait.
    pub(super) due: Option<Instant>,
}

/// What a number of the front-end stands for.
enum Entry {
    Here(Arc<Connection>),
    /// Given back, and not released yet.
    Returned(Flow),
}

impl Link {
    pub(super) fn new(number: u64, peer: FrontEndId, source: IpAddr, writer: FrameWriter) -> Self {
        Self {
            number,
            peer,
            source,
            out: Mutex::new(Out { writer, sent_bytes: 0, due: None }),
            wake: Notify::new(),
            lost: AtomicBool::new(false),
            doubted: AtomicBool::new(false),
            superseded: AtomicBool::new(false),
            table: Mutex::default(),
        }
    }

    fn out(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Conn, Entry, FixedState>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message; it is sent when the link's thread comes to it.
    pub(super) fn push(&self, message: &FromAgent<'_>) {
        self.queue(message, Instant::now());
    }

    /// Queues a message that nobody waits for: it goes with the next one, or alone before long.
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

    /// The connection was given back; packets are sent on once it is released.
    pub(super) fn returned(&self, conn: Conn, flow: Flow) {
        self.table().insert(conn, Entry::Returned(flow));
    }

    /// The number stands for this connection; false when it stands for one already.
    pub(super) fn enter(&self, conn: Conn, connection: &Arc<Connection>) -> bool {
        self.table().try_insert(conn, Entry::Here(Arc::clone(connection))).is_ok()
    }

    pub(super) fn knows(&self, conn: Conn) -> bool {
        self.table().contains_key(&conn)
    }

    /// The flow of a connection that was given back, which is told of once.
    pub(super) fn take_returned(&self, conn: Conn) -> Option<Flow> {
        let mut table = self.table();
        let Some(&Entry::Returned(flow)) = table.get(&conn) else { return None };
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

    /// Its front-end has opened another link: if this one is silent, it is lost.
    pub(super) fn doubt(&self) {
        self.doubted.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Whether it has been doubted since that was last asked.
    pub(super) fn take_doubt(&self) -> bool {
        self.doubted.swap(false, Ordering::Relaxed)
    }

    /// Something has been queued, or the link is doubted.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Whether nothing is sent any more.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// The link is lost: nothing is sent any more. The connections that came by it, oldest first, and the flows of those
    /// that were given back and not released.
    pub(super) fn lose(&self) -> (Vec<Arc<Connection>>, Vec<Flow>) {
        self.lost.store(true, Ordering::Relaxed);
        let (mut connections, mut returned) = (Vec::new(), Vec::new());
        for entry in std::mem::take(&mut *self.table()).into_values() {
            match entry {
                Entry::Here(connection) => connections.push(connection),
                Entry::Returned(flow) => returned.push(flow),
            }
        }
        connections.sort_unstable_by_key(|connection| connection.number);
        returned.sort_unstable();
        (connections, returned)
    }

    pub(super) fn forget(&self, conn: Conn) {
        self.table().remove(&conn);
    }

    pub(super) fn find(&self, conn: Conn) -> Option<Arc<Connection>> {
        match self.table().get(&conn) {
            Some(Entry::Here(connection)) => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// Sends what the socket takes, if something is due; then all goes.
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

    /// Bytes that will have been sent when all is that is queued now.
    pub(super) fn mark(&self) -> u64 {
        let mut out = self.out();
        let queued = out.writer.finish().len() as u64;
        out.sent_bytes + queued
    }
}
