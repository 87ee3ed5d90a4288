//! A front-end that does what a test tells it, step by step: real packets, real handoffs, no policy.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use plimsoll_datapath::tcp::{Frozen, QueueLimits, TcpState};
use plimsoll_datapath::{Flow, Forwarder, ForwarderConfig, neighbor, now_ns};
use plimsoll_testkit::uninterrupted;
use plimsoll_wire::codec::messages;
use plimsoll_wire::lease::AgentClock;
use plimsoll_wire::message::{AgentCounts, AnswerReport, Conn, FromAgent, Refusal, ToAgent};
use plimsoll_wire::session::{FrontEndHandshake, FrontEndId, Keys};
use plimsoll_wire::{Key, random};

use super::network::{Machine, Segment, VIP, unique};

const WAIT: Duration = plimsoll_testkit::PATIENCE;

/// What an agent says, kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Taken(u64),
    Refused(u64, Refusal),
    Ask { conn: u64, request: u32, portable: bool, head: String },
    Began { conn: u64, request: u32, head: String },
    Ended(u64, AnswerReport),
    Returned { conn: u64, request: u32, state: Vec<u8> },
    Kept(u64, u32),
    Closed(u64),
    Adopt { orphan: u64, flow: Flow, request: u32, active: bool },
    Stray(Flow),
    Pong { token: u64, clock_ns: u64 },
    Counted(AgentCounts),
    Active { term: u64, instance: u64 },
    Stopping,
}

impl From<FromAgent<'_>> for Said {
    fn from(message: FromAgent<'_>) -> Self {
        let text = |head: &[u8]| String::from_utf8_lossy(head).into_owned();
        match message {
            FromAgent::Taken { conn } => Self::Taken(conn.0),
            FromAgent::Refused { conn, why } => Self::Refused(conn.0, why),
            FromAgent::Ask { conn, request, portable, head } => {
                Self::Ask { conn: conn.0, request, portable, head: text(head) }
            }
            FromAgent::Began { conn, request, head } => {
                Self::Began { conn: conn.0, request, head: text(head) }
            }
            FromAgent::Ended { conn, ended } => Self::Ended(conn.0, ended),
            FromAgent::Returned { conn, request, state } => {
                Self::Returned { conn: conn.0, request, state: state.to_vec() }
            }
            FromAgent::Kept { conn, request } => Self::Kept(conn.0, request),
            FromAgent::Closed { conn } => Self::Closed(conn.0),
            FromAgent::Adopt { orphan, flow, request, active } => {
                Self::Adopt { orphan, flow, request, active }
            }
            FromAgent::Stray { flow } => Self::Stray(flow),
            FromAgent::Pong { token, clock_ns } => Self::Pong { token, clock_ns },
            FromAgent::Counted { counts } => Self::Counted(counts),
            FromAgent::Active { term, instance } => Self::Active { term, instance },
            FromAgent::Stopping => Self::Stopping,
        }
    }
}

/// A link to an agent.
pub(crate) struct Link {
    stream: TcpStream,
    keys: Keys,
    pub(crate) clock: AgentClock,
    /// What the agent has told of its counters.
    pub(crate) counted: Vec<AgentCounts>,
    said: std::collections::VecDeque<Said>,
}

pub(crate) fn key() -> Key {
    Key::new([9; 32])
}

impl Link {
    /// Opens one; why not, if not.
    pub(crate) fn open(segment: &Segment, agent: SocketAddr, key: &Key, name: &str) -> Result<Self, String> {
        Self::open_from(&segment.front_end, agent, key, (name, 1))
    }

    /// The same from another machine, as the process with this number.
    pub(crate) fn open_from(
        machine: &Machine,
        agent: SocketAddr,
        key: &Key,
        (name, instance): (&str, u64),
    ) -> Result<Self, String> {
        machine.run(|| {
            let mut stream = TcpStream::connect(agent).map_err(|error| error.to_string())?;
            stream.set_read_timeout(Some(WAIT)).unwrap();
            stream.set_nodelay(true).unwrap();
            let id = FrontEndId { name: name.to_owned(), instance };
            let (mut handshake, hello) = FrontEndHandshake::new(key, &id, random().unwrap()).unwrap();
            stream.write_all(&hello).map_err(|error| error.to_string())?;
            let mut byte = [0];
            loop {
                match uninterrupted(|| stream.read(&mut byte)) {
                    Ok(1) => {}
                    Ok(_) => return Err("closed".to_owned()),
                    Err(error) => return Err(error.to_string()),
                }
                let progress = handshake.feed(&byte).map_err(|error| error.to_string())?;
                stream.write_all(&progress.send).map_err(|error| error.to_string())?;
                if let Some(done) = progress.done {
                    let clock = AgentClock::new(done.clock_ns, now_ns());
                    return Ok(Self {
                        stream,
                        keys: done.keys,
                        clock,
                        counted: Vec::new(),
                        said: Default::default(),
                    });
                }
            }
        })
    }

    pub(crate) fn say(&mut self, message: &ToAgent<'_>) {
        self.keys.writer.push(message).unwrap();
        let bytes = self.keys.writer.finish();
        self.stream.write_all(bytes).unwrap();
        let count = bytes.len();
        self.keys.writer.consume(count);
    }

    /// What the agent says next; `None` when it closes the link.
    pub(crate) fn hear(&mut self) -> Option<Said> {
        self.hear_within(WAIT).expect("the agent says something")
    }

    /// The same, or an error if it says nothing in time.
    pub(crate) fn hear_within(&mut self, wait: Duration) -> Result<Option<Said>, String> {
        let deadline = Instant::now() + wait;
        loop {
            if let Some(said) = self.said.pop_front() {
                return Ok(Some(said));
            }
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.stream.set_read_timeout(Some(left)).unwrap();
            match uninterrupted(|| self.stream.read(self.keys.reader.space())) {
                Ok(0) => return Ok(None),
                Ok(count) => self.keys.reader.filled(count),
                Err(error) if Instant::now() >= deadline => return Err(error.to_string()),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return Ok(None),
            }
            while let Some(area) = self.keys.reader.next_frame().unwrap() {
                for said in messages::<FromAgent<'_>>(area).map(|message| Said::from(message.unwrap())) {
                    match said {
                        Said::Counted(counts) => self.counted.push(counts),
                        said => self.said.push_back(said),
                    }
                }
            }
        }
    }

    /// Offers a connection with a lease of this length.
    pub(crate) fn offer(&mut self, conn: u64, request: u32, lease: Duration, state: &[u8]) {
        let lease_ns = u64::try_from(lease.as_nanos()).unwrap();
        let lease_until_ns = self.clock.lease(now_ns(), lease_ns).until_ns;
        self.say(&ToAgent::Handoff { conn: Conn(conn), request, lease_until_ns, ask: true, state });
    }

    /// Offers and confirms.
    pub(crate) fn hand_off(&mut self, conn: u64, request: u32, state: &[u8]) {
        self.offer(conn, request, Duration::from_secs(2), state);
        assert_eq!(self.hear(), Some(Said::Taken(conn)));
        self.say(&ToAgent::Confirm { conn: Conn(conn) });
    }

    /// Hears how a request ended.
    pub(crate) fn ended(&mut self, conn: u64, request: u32) -> AnswerReport {
        match self.hear() {
            Some(Said::Ended(of, ended)) if of == conn && ended.request == request => ended,
            other => panic!("not the end of request {request} of {conn}: {other:?}"),
        }
    }

    /// Hears a question, and answers that the request stays.
    pub(crate) fn stay(&mut self, conn: u64, request: u32) {
        match self.hear() {
            Some(Said::Ask { conn: of, request: number, .. }) if of == conn && number == request => {}
            other => panic!("not request {request} of {conn}: {other:?}"),
        }
        self.say(&ToAgent::Stay { conn: Conn(conn), request });
    }
}

/// The front-end's kernel, and its listening socket.
pub(crate) struct FrontEnd {
    pub(crate) forwarder: Forwarder,
    listener: TcpListener,
}

impl FrontEnd {
    pub(crate) fn new(segment: &Segment) -> Self {
        segment.front_end.run(|| {
            let config = ForwarderConfig {
                instance: unique("fe"),
                interfaces: vec!["eth0".to_owned()],
                vips: vec![VIP],
                flows: 1000,
            };
            let forwarder = Forwarder::open(&config).expect("these tests need root");
            Self { forwarder, listener: TcpListener::bind(VIP).unwrap() }
        })
    }

    /// A client's connection, and the front-end's end of it.
    pub(crate) fn accept(&self, segment: &Segment) -> (Client, TcpStream) {
        let client = segment.client.run(|| Client::connect(VIP));
        let (accepted, _) = self.listener.accept().unwrap();
        (client, accepted)
    }

    /// Leads a flow to a machine.
    pub(crate) fn lead(&self, segment: &Segment, flow: &Flow, to: IpAddr) {
        let hop = segment.front_end.run(|| neighbor(to, WAIT)).unwrap();
        self.forwarder.insert(flow, &hop, 1).unwrap();
    }

    /// Reads the request, leads the flow to a machine, and takes the connection's state out of the kernel.
    pub(crate) fn extract(&self, segment: &Segment, mut accepted: TcpStream, to: IpAddr) -> TcpState {
        let flow = Flow::new(accepted.peer_addr().unwrap(), accepted.local_addr().unwrap());
        let mut head = Vec::new();
        let mut buffer = [0; 4096];
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            let count = uninterrupted(|| accepted.read(&mut buffer)).unwrap();
            assert_ne!(count, 0);
            head.extend_from_slice(&buffer[..count]);
        }
        self.lead(segment, &flow, to);
        let frozen = Frozen::freeze(OwnedFd::from(accepted)).unwrap();
        let state = frozen.snapshot(&flow, &head, QueueLimits::default()).unwrap();
        frozen.close();
        state
    }

    /// A connection with this request on it, out of the kernel: the client, and the encoded state.
    pub(crate) fn request(&self, segment: &Segment, request: &str, to: IpAddr) -> (Client, Vec<u8>) {
        let (mut client, accepted) = self.accept(segment);
        client.send(request);
        let state = self.extract(segment, accepted, to);
        (client, encoded(&state))
    }
}

pub(crate) fn encoded(state: &TcpState) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    bytes
}

impl Drop for FrontEnd {
    fn drop(&mut self) {
        let _ = self.forwarder.clear_and_detach();
    }
}

/// A client.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    input: Vec<u8>,
}

impl Client {
    /// One that connects from this thread's machine.
    pub(crate) fn connect(to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(WAIT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, input: Vec::new() }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    fn fill(&mut self) -> std::io::Result<usize> {
        let mut buffer = [0; 65_536];
        let count = uninterrupted(|| self.stream.read(&mut buffer))?;
        self.input.extend_from_slice(&buffer[..count]);
        Ok(count)
    }

    /// Exactly so many bytes.
    pub(crate) fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.input.len() < count {
            assert_ne!(self.fill().unwrap(), 0, "the connection ends too early");
        }
        self.input.drain(..count).collect()
    }

    /// The next head, and the length of the content that it tells of.
    pub(crate) fn head(&mut self) -> (String, usize) {
        let end = loop {
            if let Some(end) = self.input.windows(4).position(|end| end == b"\r\n\r\n") {
                break end + 4;
            }
            assert_ne!(self.fill().unwrap(), 0, "the connection ends before a response");
        };
        let head = String::from_utf8(self.input.drain(..end).collect()).unwrap().to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.parse().unwrap());
        (head, length)
    }

    /// The next response: its head, and its content by its `content-length`.
    pub(crate) fn response(&mut self) -> (String, Vec<u8>) {
        let (head, length) = self.head();
        (head, self.exactly(length))
    }

    /// Everything up to the end of the connection.
    pub(crate) fn rest(&mut self) -> std::io::Result<Vec<u8>> {
        while self.fill()? > 0 {}
        Ok(std::mem::take(&mut self.input))
    }

    /// Whether nothing comes for a while.
    pub(crate) fn is_silent(&mut self, wait: Duration) -> bool {
        self.stream.set_read_timeout(Some(wait)).unwrap();
        let silent = matches!(self.fill(), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock);
        self.stream.set_read_timeout(Some(WAIT)).unwrap();
        silent
    }
}
