//! A server node: a queue in order of arrival with one worker, which sleeps for the service time, and answers to load inquiries.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_client::{PoolSizes, WorkerPool};
use plimsoll_wire::load::{AnswerLimits, BootId, DATAGRAM_BYTES, LoadAnswerer, LoadGauge, LoadKeys};
use plimsoll_wire::{Key, random};

use super::late::{LateInquiries, Lateness};
use super::wire::{ACCESS_BYTES, MessageStream, is_empty, number_at, since_ns, wait};

/// How often a server looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// Accesses that wait at most: more than any load here makes.
const QUEUE: usize = 100_000;

/// A server whose sockets are open.
#[derive(Debug)]
pub(super) struct PreparedServer {
    listener: TcpListener,
    agent: UdpSocket,
}

/// A running server.
#[derive(Debug)]
pub(super) struct ServerNode {
    stopping: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<ServerCounts>>,
}

/// What a server has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ServerCounts {
    /// Accesses that it took.
    pub(super) accesses: u64,
    /// Inquiries that it answered with a load.
    pub(super) inquiries: u64,
    /// Inquiries that it read late.
    pub(super) late: u64,
}

impl PreparedServer {
    /// Opens the sockets, in the network of the calling thread.
    pub(super) fn bind(address: Ipv4Addr) -> io::Result<Self> {
        let (listener, agent) = (TcpListener::bind((address, 0))?, UdpSocket::bind((address, 0))?);
        agent.set_nonblocking(true)?;
        Ok(Self { listener, agent })
    }

    /// Where it takes accesses, and where inquiries.
    pub(super) fn addresses(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        Ok((self.listener.local_addr()?, self.agent.local_addr()?))
    }

    /// Starts to serve `clients` clients, which have connected already.
    pub(super) fn start(
        self,
        clients: usize,
        key: &Key,
        lateness: Option<Lateness>,
        seed: u64,
    ) -> io::Result<ServerNode> {
        let accept = |_| MessageStream::new(self.listener.accept()?.0, ACCESS_BYTES);
        let connections = (0..clients).map(accept).collect::<io::Result<Vec<_>>>()?;
        let replies = connections.iter().map(|c| c.stream.try_clone().map(Arc::new));
        let replies = replies.collect::<io::Result<Vec<_>>>()?;
        let gauge = LoadGauge::new();
        let secret = u64::from_le_bytes(random()?);
        let limits = AnswerLimits::default();
        let answerer = LoadAnswerer::new(LoadKeys::new(key), BootId::new(random()?), limits, secret);
        let stopping = Arc::<AtomicBool>::default();
        let serving = Serving {
            connections: connections.into_iter().map(Some).collect(),
            replies,
            agent: self.agent,
            pool: WorkerPool::new(PoolSizes { workers: 1, queue: QUEUE }, gauge.clone())?,
            gauge,
            answerer,
            late: LateInquiries::new(lateness, seed),
            free_from_ns: Arc::default(),
            origin: Instant::now(),
            counts: ServerCounts::default(),
        };
        let stop = Arc::clone(&stopping);
        let thread =
            std::thread::Builder::new().name("server".to_owned()).spawn(move || serving.run(&stop))?;
        Ok(ServerNode { stopping, thread })
    }
}

impl ServerNode {
    /// Ends it.
    pub(super) fn stop(self) -> io::Result<ServerCounts> {
        self.stopping.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the server's thread has failed")))
    }
}

struct Serving {
    /// `None` where the client has gone.
    connections: Vec<Option<MessageStream>>,
    replies: Vec<Arc<TcpStream>>,
    agent: UdpSocket,
    pool: WorkerPool,
    gauge: LoadGauge,
    answerer: LoadAnswerer,
    late: LateInquiries<Vec<u8>>,
    /// When the worker has done what it was given.
    free_from_ns: Arc<AtomicU64>,
    origin: Instant,
    counts: ServerCounts,
}

impl Serving {
    fn run(mut self, stopping: &AtomicBool) -> io::Result<ServerCounts> {
        while !stopping.load(Ordering::Relaxed) {
            let next_ns = self.late.next_ns().unwrap_or(u64::MAX);
            let left = Duration::from_nanos(next_ns.saturating_sub(since_ns(self.origin)));
            let (places, ready) = {
                let open = self.connections.iter().enumerate();
                let open = open.filter_map(|(place, c)| Some((place, c.as_ref()?.stream.as_fd())));
                let (places, mut sources): (Vec<usize>, Vec<_>) = open.unzip();
                sources.push(self.agent.as_fd());
                let ready = wait(&sources, left.min(LOOK))?;
                (places, ready)
            };
            for place in ready {
                match places.get(place) {
                    Some(&connection) => self.take_accesses(connection)?,
                    None => self.take_inquiries()?,
                }
            }
            let now_ns = since_ns(self.origin);
            while let Some((from, inquiry)) = self.late.pop(now_ns) {
                self.answer(from, &inquiry);
            }
        }
        self.counts.late = self.late.count();
        Ok(self.counts)
    }

    fn take_accesses(&mut self, connection: usize) -> io::Result<()> {
        let Some(from) = self.connections.get_mut(connection).and_then(Option::as_mut) else {
            return Ok(());
        };
        let mut accesses = Vec::new();
        let is_open = from.read(|access| accesses.push((number_at(access, 0), number_at(access, 1))))?;
        if !is_open {
            self.connections[connection] = None;
        }
        let now_ns = since_ns(self.origin);
        for (number, service_ns) in accesses {
            self.counts.accesses += 1;
            let (free_from_ns, origin) = (Arc::clone(&self.free_from_ns), self.origin);
            let reply = Arc::clone(&self.replies[connection]);
            let work = move || {
                // The service ends at the right time even if the worker woke up late: what other programs on this machine
                // delay costs a response, and not the capacity of the server.
                let ends_ns = free_from_ns.load(Ordering::Relaxed).max(now_ns).saturating_add(service_ns);
                free_from_ns.store(ends_ns, Ordering::Relaxed);
                std::thread::sleep(Duration::from_nanos(ends_ns.saturating_sub(since_ns(origin))));
                // A client that has gone needs no answer.
                let _ = (&*reply).write_all(&number.to_le_bytes());
            };
            self.pool.submit(work).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn take_inquiries(&mut self) -> io::Result<()> {
        let mut buffer = [0; DATAGRAM_BYTES + 1];
        loop {
            match self.agent.recv_from(&mut buffer) {
                Ok((bytes, from)) => {
                    let is_busy = self.gauge.load() > 0;
                    let inquiry = buffer[..bytes].to_vec();
                    if let Some(inquiry) = self.late.come(inquiry, from, is_busy, since_ns(self.origin)) {
                        self.answer(from, &inquiry);
                    }
                }
                Err(error) if is_empty(&error) => return Ok(()),
                // Of a client that has gone.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn answer(&mut self, from: SocketAddr, inquiry: &[u8]) {
        let gauge = &self.gauge;
        let inquiries = &mut self.counts.inquiries;
        let load = || {
            *inquiries += 1;
            (gauge.load(), 0)
        };
        let reply = self.answerer.answer(from.ip(), inquiry, since_ns(self.origin), load);
        if let Some(reply) = reply {
            // One that is not sent is as one that is lost.
            let _ = self.agent.send_to(&reply, from);
        }
    }
}
