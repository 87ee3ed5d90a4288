//! A link: one connection from this worker to an agent.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_datapath::{NextHop, neighbor};
use plimsoll_policy::BackendId;
use plimsoll_wire::lease::{AgentClock, Lease};
use plimsoll_wire::message::{FromAgent, ToAgent};
use plimsoll_wire::session::{FrameReader, FrameWriter, FrontEndHandshake, FrontEndId};
use plimsoll_wire::{codec, random};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};

use super::recover::Down;
use super::{Handoffs, messages, recover};
use crate::backend::Backend;
use crate::worker::Worker;

/// How long connecting and the handshake may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(1);
/// How often the agent is asked whether it is there, and for how long it may be silent.
const PING_INTERVAL: Duration = Duration::from_millis(500);
const SILENCE: Duration = Duration::from_millis(1500);
/// How long the MAC address of the agent's machine may take to be found.
const NEIGHBOR_TIMEOUT: Duration = Duration::from_millis(300);
/// Pauses between attempts to open it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MOST_PAUSE: Duration = Duration::from_millis(500);
/// How long a message waits at most for others to go with.
const LATER: Duration = Duration::from_millis(2);
/// Bytes that may wait to be sent before nothing more is handed off.
const MOST_QUEUED_BYTES: usize = 8 << 20;
/// Bytes read from a link before others have their turn.
const READ_TURN_BYTES: usize = 1 << 20;

/// A link to an agent, up or down.
pub(crate) struct AgentLink {
    /// The back-end beside whose agent it ends.
    pub(crate) id: BackendId,
    pub(super) backend: RefCell<Arc<Backend>>,
    /// Where the agent listens.
    pub(super) address: SocketAddr,
    up: RefCell<Option<Up>>,
    wake: Notify,
    /// When what is queued is to be sent.
    due: Cell<Option<Instant>>,
    retired: Cell<bool>,
}

/// What there is of a link that is up.
struct Up {
    writer: FrameWriter,
    hop: NextHop,
    clock: AgentClock,
    heard: Instant,
    window: u32,
    unanswered: u32,
    /// Whether the agent left a handoff unanswered and was not heard since.
    doubted: bool,
    /// Whether it has answered on this link.
    answered: bool,
}

impl AgentLink {
    pub(super) fn new(backend: Arc<Backend>, address: SocketAddr) -> Rc<Self> {
        Rc::new(Self {
            id: backend.id,
            backend: RefCell::new(backend),
            address,
            up: RefCell::new(None),
            wake: Notify::new(),
            due: Cell::new(None),
            retired: Cell::new(false),
        })
    }

    /// The back-end as it is configured now.
    pub(super) fn backend(&self) -> Arc<Backend> {
        Arc::clone(&self.backend.borrow())
    }

    /// Whether another connection can be handed to the agent.
    pub(super) fn has_room(&self) -> bool {
        let up = self.up.borrow();
        !self.retired.get()
            && up.as_ref().is_some_and(|up| {
                !up.doubted && up.unanswered < up.window && up.writer.queued_bytes() < MOST_QUEUED_BYTES
            })
    }

    /// Whether the link serves for this back-end and agent, too; then it goes on with this back-end.
    pub(super) fn succeeded_by(&self, backend: &Arc<Backend>, agent: SocketAddr) -> bool {
        let same = self.address == agent && self.id == backend.id;
        if same {
            *self.backend.borrow_mut() = Arc::clone(backend);
        }
        same
    }

    /// Where packets for the back-end go, if the link is up.
    pub(super) fn hop(&self) -> Option<NextHop> {
        self.up.borrow().as_ref().map(|up| up.hop)
    }

    /// Has a message sent; false when the link is down or the message too long.
    pub(super) fn push(&self, message: &ToAgent<'_>) -> bool {
        let mut up = self.up.borrow_mut();
        let pushed = up.as_mut().is_some_and(|up| up.writer.push(message).is_ok());
        if pushed {
            self.due.set(Some(Instant::now()));
            self.wake.notify_one();
        }
        pushed
    }

    /// The same for what nobody waits for: it goes with the next message, or alone before long.
    pub(super) fn push_later(&self, message: &ToAgent<'_>) {
        let mut up = self.up.borrow_mut();
        let pushed = up.as_mut().is_some_and(|up| up.writer.push(message).is_ok());
        if pushed && self.due.get().is_none() {
            self.due.set(Some(Instant::now() + LATER));
            self.wake.notify_one();
        }
    }

    /// A lease of this length from now on; one that is over when the link is down.
    pub(super) fn lease(&self, now_ns: u64, duration: Duration) -> Lease {
        let duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let up = self.up.borrow();
        up.as_ref()
            .map_or(Lease { until_ns: 0, over_at_ns: now_ns }, |up| up.clock.lease(now_ns, duration_ns))
    }

    /// A handoff was sent.
    pub(super) fn unanswered(&self) {
        if let Some(up) = &mut *self.up.borrow_mut() {
            up.unanswered += 1;
        }
    }

    /// A handoff was answered, or the wait for its answer is over.
    pub(super) fn answered(&self) {
        if let Some(up) = &mut *self.up.borrow_mut() {
            up.unanswered = up.unanswered.saturating_sub(1);
        }
    }

    /// The agent left a handoff unanswered: it gets no other until it is heard again.
    pub(super) fn doubt(&self) {
        if let Some(up) = &mut *self.up.borrow_mut() {
            up.doubted = true;
        }
    }

    /// The agent has told its clock. Where its packets go, if that was for the first time.
    pub(super) fn pong(&self, clock_ns: u64, now_ns: u64) -> Option<NextHop> {
        let mut up = self.up.borrow_mut();
        let up = up.as_mut()?;
        up.clock.observe(clock_ns, now_ns);
        up.heard = Instant::now();
        up.doubted = false;
        let first = !std::mem::replace(&mut up.answered, true);
        first.then_some(up.hop)
    }

    /// The back-end is configured no longer, or elsewhere: nothing more is handed to it.
    pub(super) fn retire(&self) {
        self.retired.set(true);
        self.wake.notify_one();
    }
}

/// Keeps a link up, until it is retired and its last connection is over.
pub(super) async fn run(worker: Rc<Worker>, handoffs: Rc<Handoffs>, link: Rc<AgentLink>) {
    let mut pause = FIRST_PAUSE;
    let mut told = false;
    while !link.retired.get() {
        match tokio::time::timeout(OPEN_TIMEOUT, open(&handoffs, &link)).await {
            Ok(Ok((stream, reader))) => {
                (pause, told) = (FIRST_PAUSE, false);
                tracing::info!(backend = &*link.backend().name, agent = %link.address, "the link to the agent is up");
                handoffs.system.count_link(true);
                let down = serve(&worker, &handoffs, &link, &stream, reader).await;
                handoffs.system.count_link(false);
                handoffs.system.offers.unheard(worker.index, link.address);
                *link.up.borrow_mut() = None;
                tracing::warn!(backend = &*link.backend().name, ?down, "the link to the agent is down");
                recover::link_down(&worker, &handoffs, &link, down);
            }
            failed if !told => {
                told = true;
                let error = match failed {
                    Ok(Err(error)) => error.to_string(),
                    _ => "no answer".to_owned(),
                };
                tracing::warn!(backend = &*link.backend().name, agent = %link.address, error, "there is no link to the agent");
            }
            _ => {}
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MOST_PAUSE);
    }
}

/// Connects, proves the key, and finds out where packets for the back-end go.
async fn open(handoffs: &Handoffs, link: &AgentLink) -> io::Result<(TcpStream, FrameReader)> {
    let system = &handoffs.system;
    let stream = TcpStream::connect(link.address).await?;
    stream.set_nodelay(true)?;
    // Frames that nobody acknowledges are given up when the agent is, not minutes later.
    SockRef::from(&stream).set_tcp_user_timeout(Some(SILENCE))?;
    let us = FrontEndId { name: system.name.clone(), instance: system.instance };
    let (mut handshake, hello) =
        FrontEndHandshake::new(&system.key, &us, random()?).map_err(io::Error::other)?;
    write_all(&stream, &hello).await?;
    let mut bytes = [0; 4096];
    let established = loop {
        stream.readable().await?;
        let n = match stream.try_read(&mut bytes) {
            Ok(0) => {
                return Err(io::Error::other(
                    "the agent closed the connection; does it know this front-end?",
                ));
            }
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        let progress = handshake.feed(&bytes[..n]).map_err(io::Error::other)?;
        write_all(&stream, &progress.send).await?;
        if let Some(established) = progress.done {
            break (established, bytes[progress.consumed..n].to_vec());
        }
    };
    let (established, rest) = established;
    let (writer, mut reader) = (established.keys.writer, established.keys.reader);
    reader.feed(&rest);
    let agent = link.address.ip();
    // Answered from the kernel's table, as packets have just gone there; should it have to ask, that blocks.
    let hop = tokio::task::spawn_blocking(move || neighbor(agent, NEIGHBOR_TIMEOUT)).await?;
    let hop = hop.map_err(io::Error::other)?;
    *link.up.borrow_mut() = Some(Up {
        writer,
        hop,
        clock: AgentClock::new(established.clock_ns, system.now_ns()),
        heard: Instant::now(),
        window: established.peer.window,
        unanswered: 0,
        doubted: false,
        answered: false,
    });
    Ok((stream, reader))
}

async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Carries messages both ways until the link is down.
async fn serve(
    worker: &Rc<Worker>,
    handoffs: &Rc<Handoffs>,
    link: &Rc<AgentLink>,
    stream: &TcpStream,
    mut reader: FrameReader,
) -> Down {
    let mut ping = tokio::time::interval(PING_INTERVAL);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut token = 0;
    let mut pinged = Instant::now();
    loop {
        // What was told in one turn goes out together.
        let all = match flush(link, stream) {
            Ok(all) => all,
            Err(error) => return Down::of(&error),
        };
        tokio::select! {
            readable = stream.readable() => {
                let read = readable.and_then(|()| read(worker, handoffs, link, stream, &mut reader));
                if let Err(error) = read {
                    return Down::of(&error);
                }
            }
            _ = stream.writable(), if !all => {}
            () = until(link.due.get()), if all => {}
            () = link.wake.notified() => {}
            _ = ping.tick() => {
                token += 1;
                link.push(&ToAgent::Ping { token });
                // What waits to be read was said in time, if this worker is the one that was late.
                if let Err(error) = read(worker, handoffs, link, stream, &mut reader) {
                    return Down::of(&error);
                }
                let late = std::mem::replace(&mut pinged, Instant::now()).elapsed() > 2 * PING_INTERVAL;
                let heard = link.up.borrow().as_ref().map(|up| up.heard);
                if !late && heard.is_none_or(|at| at.elapsed() > SILENCE) {
                    return Down::Silent;
                }
                if link.retired.get() && handoffs.retire(link) {
                    return Down::Closed;
                }
            }
        }
    }
}

/// Waits until `time`; for ever without one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Sends what waits, if something is due; false when the system takes no more now.
fn flush(link: &AgentLink, stream: &TcpStream) -> io::Result<bool> {
    let mut up = link.up.borrow_mut();
    let (Some(up), Some(due)) = (&mut *up, link.due.get()) else { return Ok(true) };
    if due > Instant::now() {
        return Ok(true);
    }
    loop {
        let bytes = up.writer.finish();
        if bytes.is_empty() {
            link.due.set(None);
            return Ok(true);
        }
        match stream.try_write(bytes) {
            Ok(n) => up.writer.consume(n),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// Takes what has come.
fn read(
    worker: &Rc<Worker>,
    handoffs: &Rc<Handoffs>,
    link: &Rc<AgentLink>,
    stream: &TcpStream,
    reader: &mut FrameReader,
) -> io::Result<()> {
    let mut left = READ_TURN_BYTES;
    loop {
        while let Some(frame) = reader.next_frame().map_err(io::Error::other)? {
            for message in codec::messages::<FromAgent<'_>>(frame) {
                messages::take(worker, handoffs, link, &message.map_err(io::Error::other)?);
            }
        }
        if left == 0 {
            return Ok(());
        }
        match stream.try_read(reader.space()) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                reader.filled(n);
                left = left.saturating_sub(n);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
