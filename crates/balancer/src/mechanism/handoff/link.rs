//! A link: one connection from this worker to an agent, and the messages that wait to be sent on it.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_datapath::NextHop;
use plimsoll_policy::BackendId;
use plimsoll_wire::lease::{AgentClock, Lease};
use plimsoll_wire::message::ToAgent;
use plimsoll_wire::session::FrameWriter;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

use super::last_look::LastLook;
use crate::backend::Backend;
use crate::worker::Worker;

/// How long a message waits at most for others to go with.
const LATER: Duration = Duration::from_millis(2);
/// Bytes that may wait to be sent before nothing more is handed off.
const MOST_QUEUED_BYTES: usize = 8 << 20;

/// Why a link is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Down {
    /// The agent's end was closed: its process is gone, and the kernel there has closed what it had.
    Closed,
    /// Nothing was heard of it: its machine may be gone, and its connections hang.
    Silent,
}

impl Down {
    /// Why a link failed with this error.
    pub(super) fn of(error: &io::Error) -> Self {
        match error.kind() {
            // The kernel found nobody to send to.
            io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                Self::Silent
            }
            _ => Self::Closed,
        }
    }
}

/// A link to an agent, up or down.
pub(super) struct AgentLink {
    /// The back-end whose agent this link leads to.
    pub(super) id: BackendId,
    backend: RefCell<Arc<Backend>>,
    /// Where the agent listens.
    pub(super) address: SocketAddr,
    up: RefCell<Option<Up>>,
    sessions: Cell<u32>,
    wake: Notify,
    /// When what is queued is to be sent.
    due: Cell<Option<Instant>>,
    retired: Cell<bool>,
    /// What was seen of its connections while the back-end is down.
    pub(super) last_look: RefCell<Option<LastLook>>,
}

/// The state of a link that is up.
struct Up {
    writer: FrameWriter,
    /// Counts the times that the link came up.
    session: u32,
    hop: NextHop,
    clock: AgentClock,
    heard: Instant,
    window: u32,
    unanswered: u32,
    /// Whether the agent left a handoff unanswered and has not been heard since.
    doubted: bool,
    /// Whether the agent has answered on this link.
    answered: bool,
    /// The term with which it was told last that this front-end is active.
    term: Option<u64>,
    /// Whether the agent has said that it is stopping.
    stopping: bool,
}

impl AgentLink {
    /// A link that is down.
    pub(super) fn new(backend: Arc<Backend>, address: SocketAddr) -> Rc<Self> {
        Rc::new(Self {
            id: backend.id,
            backend: RefCell::new(backend),
            address,
            up: RefCell::new(None),
            sessions: Cell::new(0),
            wake: Notify::new(),
            due: Cell::new(None),
            retired: Cell::new(false),
            last_look: RefCell::new(None),
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
                !up.doubted
                    && !up.stopping
                    && up.unanswered < up.window
                    && up.writer.queued_bytes() < MOST_QUEUED_BYTES
            })
    }

    /// Keeps the link for a back-end whose configuration has changed. Returns false if the link leads elsewhere.
    pub(super) fn succeeded_by(&self, backend: &Arc<Backend>, agent: SocketAddr) -> bool {
        let same = self.address == agent && self.id == backend.id;
        if same {
            *self.backend.borrow_mut() = Arc::clone(backend);
        }
        same
    }

    /// Whether the index of its back-end is not another one's by now.
    pub(super) fn has_index(&self, worker: &Worker) -> bool {
        worker.backend(self.id).is_some_and(|now| now.name == self.backend.borrow().name)
    }

    /// Where packets for the back-end go, if the link is up.
    pub(super) fn hop(&self) -> Option<NextHop> {
        self.up.borrow().as_ref().map(|up| up.hop)
    }

    /// Queues a message, to be sent at once. Returns false when the link is down or the message too long.
    pub(super) fn push(&self, message: &ToAgent<'_>) -> bool {
        let mut up = self.up.borrow_mut();
        let pushed = up.as_mut().is_some_and(|up| up.writer.push(message).is_ok());
        if pushed {
            self.due.set(Some(Instant::now()));
            self.wake.notify_one();
        }
        pushed
    }

    /// Queues a message that nobody waits for: it is sent with the next one, or alone after [`LATER`].
    pub(super) fn push_later(&self, message: &ToAgent<'_>) {
        let mut up = self.up.borrow_mut();
        let pushed = up.as_mut().is_some_and(|up| up.writer.push(message).is_ok());
        if pushed && self.due.get().is_none() {
            self.due.set(Some(Instant::now() + LATER));
            self.wake.notify_one();
        }
    }

    /// A lease of this length that starts now. When the link is down, the lease is over already.
    pub(super) fn lease(&self, now_ns: u64, duration: Duration) -> Lease {
        let duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let up = self.up.borrow();
        up.as_ref()
            .map_or(Lease { until_ns: 0, over_at_ns: now_ns }, |up| up.clock.lease(now_ns, duration_ns))
    }

    /// Counts a handoff that was sent. Returns the session in which it was; `None` when the link is down.
    pub(super) fn unanswered(&self) -> Option<u32> {
        let mut up = self.up.borrow_mut();
        let up = up.as_mut()?;
        up.unanswered += 1;
        Some(up.session)
    }

    /// Counts a handoff of this session that was answered, or whose answer is no longer waited for.
    pub(super) fn answered(&self, session: Option<u32>) {
        self.with_session(session, |up| up.unanswered = up.unanswered.saturating_sub(1));
    }

    /// Hands nothing more to the agent until it is heard again, as it left a handoff of this session unanswered.
    pub(super) fn doubt(&self, session: Option<u32>) {
        self.with_session(session, |up| up.doubted = true);
    }

    /// Changes the link's state, unless the session is over: a new one begins without what the last one left.
    fn with_session(&self, session: Option<u32>, change: impl FnOnce(&mut Up)) {
        if let Some(up) = self.up.borrow_mut().as_mut().filter(|up| Some(up.session) == session) {
            change(up);
        }
    }

    /// Notes that the agent answered a ping and told its clock. Returns the next hop if this was its first answer on this link.
    pub(super) fn pong(&self, clock_ns: u64, now_ns: u64) -> Option<NextHop> {
        let mut up = self.up.borrow_mut();
        let up = up.as_mut()?;
        up.clock.observe(clock_ns, now_ns);
        up.heard = Instant::now();
        up.doubted = false;
        let first = !std::mem::replace(&mut up.answered, true);
        first.then_some(up.hop)
    }

    /// Notes that the agent has been told that this front-end is active with this term, or that it is not.
    pub(super) fn set_term(&self, term: Option<u64>) {
        if let Some(up) = self.up.borrow_mut().as_mut() {
            up.term = term;
        }
    }

    /// What the agent was told last; `None` also when the link is down.
    pub(super) fn term(&self) -> Option<u64> {
        self.up.borrow().as_ref()?.term
    }

    /// Notes that the agent is stopping: it ends the requests under way itself.
    pub(super) fn set_stopping(&self) {
        if let Some(up) = self.up.borrow_mut().as_mut() {
            up.stopping = true;
        }
    }

    /// Whether the agent is there and has said that it is stopping.
    pub(super) fn is_stopping(&self) -> bool {
        self.up.borrow().as_ref().is_some_and(|up| up.stopping)
    }

    /// Hands nothing more to the back-end, which is no longer configured, or elsewhere.
    pub(super) fn retire(&self) {
        self.retired.set(true);
        self.wake.notify_one();
    }

    /// Whether [`AgentLink::retire`] was called.
    pub(super) fn is_retired(&self) -> bool {
        self.retired.get()
    }

    /// Marks the link as up. `hop` is where packets for the back-end go, and `window` how many unanswered handoffs the agent
    /// allows.
    pub(super) fn set_up(&self, writer: FrameWriter, hop: NextHop, clock: AgentClock, window: u32) {
        let session = self.sessions.get().wrapping_add(1);
        self.sessions.set(session);
        *self.up.borrow_mut() = Some(Up {
            writer,
            session,
            hop,
            clock,
            heard: Instant::now(),
            window,
            unanswered: 0,
            doubted: false,
            answered: false,
            term: None,
            stopping: false,
        });
    }

    /// Marks the link as down.
    pub(super) fn set_down(&self) {
        *self.up.borrow_mut() = None;
    }

    /// When the agent will not have been heard for this long.
    pub(super) fn silent_at(&self, longest: Duration) -> Instant {
        self.up.borrow().as_ref().map_or_else(Instant::now, |up| up.heard + longest)
    }

    /// Whether the agent has not been heard for this long.
    pub(super) fn is_silent(&self, longest: Duration) -> bool {
        Instant::now() >= self.silent_at(longest)
    }

    /// When queued messages are to be sent.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due.get()
    }

    /// Waits until a message is queued or the link is retired.
    pub(super) fn woken(&self) -> Notified<'_> {
        self.wake.notified()
    }

    /// Sends queued messages, if they are due. Returns false when the system takes no more now.
    pub(super) fn flush(&self, stream: &TcpStream) -> io::Result<bool> {
        let mut up = self.up.borrow_mut();
        let (Some(up), Some(due)) = (&mut *up, self.due.get()) else { return Ok(true) };
        if due > Instant::now() {
            return Ok(true);
        }
        loop {
            let bytes = up.writer.finish();
            if bytes.is_empty() {
                self.due.set(None);
                return Ok(true);
            }
            match stream.try_write(bytes) {
                Ok(n) => up.writer.consume(n),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::Key;
    use plimsoll_wire::session::{AgentHandshake, AgentTerms, FrontEndHandshake, FrontEndId};

    use super::*;

    fn writer() -> FrameWriter {
        let key = Key::new([3; 32]);
        let id = FrontEndId { name: "fe1".to_owned(), instance: 77 };
        let terms = AgentTerms { name: "b1".to_owned(), window: 2, most_state_bytes: 1 << 20 };
        let (mut front_end, hello) = FrontEndHandshake::new(&key, &id, [1; 32]).unwrap();
        let mut agent = AgentHandshake::new(&key, terms, [2; 32]).unwrap();
        let welcome = agent.feed(&hello, 0).unwrap();
        front_end.feed(&welcome.send).unwrap().done.unwrap().keys.writer
    }

    #[test]
    fn a_handoff_of_an_earlier_session_makes_no_room_in_this_one() {
        let address = Ok(([10, 0, 0, 2], 80).into());
        let backend = Backend::new(BackendId(0), "b1".into(), address, "b1".to_owned(), 8, 1);
        let link = AgentLink::new(Arc::new(backend), ([10, 0, 0, 2], 7400).into());
        assert_eq!((link.unanswered(), link.has_room()), (None, false));
        let hop = NextHop { ifindex: 1, mac: [2; 6], own_mac: [4; 6] };
        let come_up = || link.set_up(writer(), hop, AgentClock::new(0, 0), 2);
        come_up();
        let earlier = link.unanswered();
        assert!(earlier.is_some());
        link.set_down();
        link.answered(earlier);
        come_up();
        let (first, second) = (link.unanswered(), link.unanswered());
        link.answered(earlier);
        link.answered(None);
        assert!(!link.has_room(), "two handoffs are unanswered, as many as the agent allows");
        link.answered(first);
        assert!(link.has_room());
        link.doubt(earlier);
        assert!(link.has_room(), "the agent has been heard since");
        link.doubt(second);
        assert!(!link.has_room());
    }
}
