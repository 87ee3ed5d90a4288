//! A man in the middle: frames between front-end and agent pass him, and he repeats or reorders some.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use plimsoll_lab::{NamespaceEntry, Node};
use plimsoll_testkit::uninterrupted;
use plimsoll_wire::codec::messages;
use plimsoll_wire::message::{FromAgent, ToAgent};

use super::bed::Bed;

/// Of a handshake's message: the last two are the length of its rest.
const HANDSHAKE_HEADER_BYTES: usize = 13;
/// Before the messages of a frame, and behind them.
const LENGTH_BYTES: usize = 4;
const CODE_BYTES: usize = 16;

/// Which way frames go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    ToAgent,
    FromAgent,
}

/// A frame that has passed.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    /// Number of the session, from 0.
    pub(super) session: usize,
    pub(super) way: Way,
    bytes: Vec<u8>,
}

impl Recorded {
    /// Its messages.
    fn area(&self) -> &[u8] {
        &self.bytes[LENGTH_BYTES..self.bytes.len() - CODE_BYTES]
    }

    /// How many such messages to the agent it has.
    pub(super) fn told(&self, wanted: impl Fn(&ToAgent<'_>) -> bool) -> usize {
        match self.way {
            Way::ToAgent => {
                messages::<ToAgent<'_>>(self.area()).filter(|m| wanted(m.as_ref().unwrap())).count()
            }
            Way::FromAgent => 0,
        }
    }

    /// Whether it has such a message to the agent.
    pub(super) fn tells(&self, wanted: impl Fn(&ToAgent<'_>) -> bool) -> bool {
        self.told(wanted) > 0
    }

    /// Whether it has such a message from the agent.
    pub(super) fn reports(&self, wanted: impl Fn(&FromAgent<'_>) -> bool) -> bool {
        self.way == Way::FromAgent && messages::<FromAgent<'_>>(self.area()).any(|m| wanted(&m.unwrap()))
    }
}

/// What he does to the next frame of a session.
#[derive(Debug, Clone)]
pub(super) enum Trick {
    /// Sends this one before it.
    Insert(Vec<u8>),
    /// Sends it after the one that follows it.
    Swap,
}

#[derive(Default)]
struct RelayState {
    sessions: usize,
    recorded: Vec<Recorded>,
    tricks: Vec<(usize, Way, Trick)>,
}

/// See the module's documentation.
pub(super) struct Relay {
    address: SocketAddr,
    state: Arc<Mutex<RelayState>>,
}

fn locked(state: &Mutex<RelayState>) -> MutexGuard<'_, RelayState> {
    state.lock().unwrap()
}

impl Relay {
    /// Stands before the agent of the first back-end, on its machine. Ends with the lab.
    pub(super) fn start(bed: &Bed, port: u16) -> Self {
        let agent = bed.agent_address(0);
        let address = SocketAddr::new(agent.ip(), port);
        let node = bed.lab.node(Node::Backend(0)).unwrap();
        let listener = node.run(|| TcpListener::bind(address).unwrap()).unwrap();
        let entry = node.entry().unwrap();
        let state = Arc::new(Mutex::new(RelayState::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || accept(&listener, &entry, agent, &shared));
        Self { address, state }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many sessions have begun.
    pub(super) fn sessions(&self) -> usize {
        locked(&self.state).sessions
    }

    /// The frames that have passed of which this is true.
    pub(super) fn recorded(&self, wanted: impl Fn(&Recorded) -> bool) -> Vec<Recorded> {
        locked(&self.state).recorded.iter().filter(|frame| wanted(frame)).cloned().collect()
    }

    /// Does this to the next frame of this session that goes this way.
    pub(super) fn play(&self, session: usize, way: Way, trick: Trick) {
        locked(&self.state).tricks.push((session, way, trick));
    }

    /// Sends a recorded frame again in this session.
    pub(super) fn repeat(&self, frame: &Recorded, session: usize) {
        self.play(session, frame.way, Trick::Insert(frame.bytes.clone()));
    }

    /// Whether all that was to be played has been.
    pub(super) fn has_played(&self) -> bool {
        locked(&self.state).tricks.is_empty()
    }
}

fn accept(listener: &TcpListener, entry: &NamespaceEntry, agent: SocketAddr, state: &Arc<Mutex<RelayState>>) {
    entry.enter().unwrap();
    while let Ok((front_end, _)) = uninterrupted(|| listener.accept()) {
        let Ok(agent) = TcpStream::connect(agent) else { continue };
        let session = locked(state).sessions;
        locked(state).sessions += 1;
        for (way, from, to) in [(Way::ToAgent, &front_end, &agent), (Way::FromAgent, &agent, &front_end)] {
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let state = Arc::clone(state);
            std::thread::spawn(move || {
                let _ = pass(&from, &to, &state, (session, way));
                let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            });
        }
    }
}

fn read_exactly(mut from: &TcpStream, bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut buffer = vec![0; bytes];
    from.read_exact(&mut buffer)?;
    Ok(buffer)
}

fn read_frame(from: &TcpStream) -> std::io::Result<Vec<u8>> {
    let length = read_exactly(from, LENGTH_BYTES)?;
    let rest = u32::from_le_bytes(length[..].try_into().unwrap()) as usize + CODE_BYTES;
    Ok([length, read_exactly(from, rest)?].concat())
}

/// Passes one direction of a session on, to its end.
fn pass(
    from: &TcpStream,
    mut to: &TcpStream,
    state: &Mutex<RelayState>,
    (session, way): (usize, Way),
) -> std::io::Result<()> {
    // Hello and Proof, or Welcome.
    for _ in 0..if way == Way::ToAgent { 2 } else { 1 } {
        let header = read_exactly(from, HANDSHAKE_HEADER_BYTES)?;
        let rest = u16::from_le_bytes([header[11], header[12]]);
        to.write_all(&[header, read_exactly(from, rest.into())?].concat())?;
    }
    loop {
        let frame = read_frame(from)?;
        let trick = {
            let mut state = locked(state);
            state.recorded.push(Recorded { session, way, bytes: frame.clone() });
            let wanted = |(of, by, _): &(usize, Way, Trick)| (*of, *by) == (session, way);
            let found = state.tricks.iter().position(wanted);
            found.map(|index| state.tricks.remove(index).2)
        };
        match trick {
            None => to.write_all(&frame)?,
            Some(Trick::Insert(other)) => to.write_all(&[other, frame].concat())?,
            Some(Trick::Swap) => to.write_all(&[read_frame(from)?, frame].concat())?,
        }
    }
}
