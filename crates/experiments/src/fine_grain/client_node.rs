//! A client node: accesses at given times, the choice of a server for each, and the response times.
//!
//! One thread waits for whatever is next: an arrival, an answer, the end of a poll. So no lock and no scheduler is between a datagram
//! and the decision.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use plimsoll_policy::{Assigned, Ending, Offered, PollAnswer, Request, TargetId, Time};
use plimsoll_wire::load::{DATAGRAM_BYTES, IndexAnswer, InquiryLimits, LoadInquirer, LoadKeys, LoadTaken};
use plimsoll_wire::{Key, random};

use super::access::{AnsweredAccess, ClientTally, PlannedAccess};
use super::choosing::{Chooser, HowToChoose, NOTHING_DISCARDED_NS, failed};
use super::wire::{ANSWER_BYTES, MessageStream, access_bytes, is_empty, number_at, since_ns, wait};
use crate::ExperimentError;

/// What the load index manager has not answered is said again after this time.
const REPEAT_NS: u64 = 200_000_000;

/// How a client knows a server.
struct ServerLink {
    accesses: MessageStream,
    agent: UdpSocket,
    /// One for each server: an agent keeps the latest numbers of those who ask it, and late inquiries are to be among them.
    inquirer: LoadInquirer,
    /// Polls by the numbers of their inquiries.
    asked: BTreeMap<u64, usize>,
}

/// An access under way, by its place in the plan.
#[derive(Default)]
struct AccessUnderWay {
    begun_ns: u64,
    asking_ns: u64,
    answers: Vec<PollAnswer>,
    /// Servers whose answer is waited for, with the number of the inquiry.
    unanswered: Vec<(usize, u64)>,
    assigned: Option<Assigned>,
    /// The number by which the load index manager knows it.
    granted: Option<u64>,
}

/// A client that is connected to all servers.
pub(super) struct ClientNode {
    servers: Vec<ServerLink>,
    chooser: Chooser,
    discard_after_ns: u64,
    origin: Instant,
    plan: Vec<PlannedAccess>,
    under_way: BTreeMap<usize, AccessUnderWay>,
    /// When polls end.
    due: VecDeque<(u64, usize)>,
    /// Accesses by the numbers that the load index manager knows them by.
    acquired: BTreeMap<u64, usize>,
    repeats: VecDeque<(u64, u64)>,
    tally: ClientTally,
}

impl ClientNode {
    /// Opens its connections, in the network of the calling thread.
    pub(super) fn connect(
        servers: &[(SocketAddr, SocketAddr)],
        how: &HowToChoose,
        key: &Key,
        seed: u64,
    ) -> Result<Self, ExperimentError> {
        let link = |&(accesses, agent): &(SocketAddr, SocketAddr)| -> io::Result<ServerLink> {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            socket.connect(agent)?;
            socket.set_nonblocking(true)?;
            let inquirer = LoadInquirer::new(LoadKeys::new(key), random()?, InquiryLimits::default());
            let accesses = MessageStream::new(TcpStream::connect(accesses)?, ANSWER_BYTES)?;
            Ok(ServerLink { accesses, agent: socket, inquirer, asked: BTreeMap::new() })
        };
        let links = servers.iter().map(link).collect::<io::Result<_>>();
        let discard_after_ns = match how {
            HowToChoose::Policy { discard_after_ns, .. } => *discard_after_ns,
            _ => NOTHING_DISCARDED_NS,
        };
        Ok(Self {
            servers: links.map_err(failed("cannot reach the servers"))?,
            chooser: Chooser::new(how, servers.len(), key, seed)?,
            discard_after_ns,
            origin: Instant::now(),
            plan: Vec::new(),
            under_way: BTreeMap::new(),
            due: VecDeque::new(),
            acquired: BTreeMap::new(),
            repeats: VecDeque::new(),
            tally: ClientTally::default(),
        })
    }

    /// Makes these accesses, in order of time from `start` on, and waits for their answers, `patience` after the last arrival at
    /// most.
    pub(super) fn run(
        mut self,
        plan: Vec<PlannedAccess>,
        start: Instant,
        patience: Duration,
    ) -> Result<ClientTally, ExperimentError> {
        let over = |error| failed("a client of the prototype")(error);
        self.plan = plan;
        self.greet();
        // Times are since the origin; the plan's are since the start.
        let start_ns = since_ns(self.origin)
            .max(u64::try_from(start.saturating_duration_since(self.origin).as_nanos()).unwrap_or(u64::MAX));
        self.plan.iter_mut().for_each(|access| access.due_ns = access.due_ns.saturating_add(start_ns));
        let last_ns = self.plan.last().map_or(0, |access| access.due_ns);
        let end_ns = last_ns.saturating_add(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
        let mut next = 0;
        loop {
            let now_ns = since_ns(self.origin);
            while self.plan.get(next).is_some_and(|access| access.due_ns <= now_ns) {
                self.arrive(next).map_err(over)?;
                next += 1;
            }
            self.end_polls().map_err(over)?;
            self.say_again();
            if next == self.plan.len() && (self.under_way.is_empty() || now_ns > end_ns) {
                break;
            }
            self.serve(self.plan.get(next).map_or(end_ns, |access| access.due_ns)).map_err(over)?;
        }
        self.tally.answered.iter_mut().for_each(|access| access.due_ns -= start_ns);
        Ok(self.tally)
    }

    /// Has every agent tell its boot id, so that the first poll is answered with loads.
    fn greet(&mut self) {
        let now_ns = since_ns(self.origin);
        for server in 0..self.servers.len() {
            self.inquire(server, now_ns);
        }
        if let Chooser::Manager(manager, socket) = &mut self.chooser {
            let _ = socket.send(&manager.keep(now_ns));
        }
    }

    /// Sends an inquiry; its number. One that is not sent is as one that is lost.
    fn inquire(&mut self, server: usize, now_ns: u64) -> Option<u64> {
        let link = self.servers.get_mut(server)?;
        let (sequence, datagram) = link.inquirer.ask(0, now_ns)?;
        let _ = link.agent.send(&datagram);
        Some(sequence)
    }

    fn now(&self) -> Time {
        Time::from_nanos(since_ns(self.origin))
    }

    fn arrive(&mut self, number: usize) -> io::Result<()> {
        let now = self.now();
        let access = AccessUnderWay { begun_ns: now.as_nanos(), ..AccessUnderWay::default() };
        self.under_way.insert(number, access);
        match &mut self.chooser {
            Chooser::Told => {
                let server = self.plan[number].server.unwrap_or(0);
                self.send(number, server)
            }
            Chooser::Core(core) => {
                let offered = core.offer(&Request::of(number as u64, TargetId(number as u64)), now);
                self.follow(number, offered)
            }
            Chooser::Manager(..) => self.acquire(number),
        }
    }

    /// Asks the manager for a server.
    fn acquire(&mut self, number: usize) -> io::Result<()> {
        let now_ns = since_ns(self.origin);
        let Chooser::Manager(manager, socket) = &mut self.chooser else { return Ok(()) };
        let Some((sequence, datagram)) = manager.acquire(now_ns) else {
            return Err(io::Error::other("too many accesses are under way"));
        };
        self.acquired.insert(sequence, number);
        self.repeats.push_back((now_ns + REPEAT_NS, sequence));
        let _ = socket.send(&datagram);
        Ok(())
    }

    fn follow(&mut self, number: usize, offered: Offered) -> io::Result<()> {
        match offered {
            Offered::Assigned(assigned) => {
                if let Some(access) = self.under_way.get_mut(&number) {
                    access.assigned = Some(assigned);
                }
                self.send(number, assigned.backend.index())
            }
            Offered::Poll(candidates) => {
                let now_ns = since_ns(self.origin);
                self.tally.polls += 1;
                for backend in candidates.as_slice() {
                    let server = backend.index();
                    let Some(sequence) = self.inquire(server, now_ns) else { continue };
                    self.tally.inquiries += 1;
                    self.servers[server].asked.insert(sequence, number);
                    if let Some(access) = self.under_way.get_mut(&number) {
                        access.unanswered.push((server, sequence));
                    }
                }
                self.due.push_back((now_ns + self.discard_after_ns, number));
                Ok(())
            }
            Offered::Waits | Offered::Rejected(_) => {
                Err(io::Error::other("the policy assigned an access to no server"))
            }
        }
    }

    /// The loads that are known are all that will be.
    fn decide(&mut self, number: usize) -> io::Result<()> {
        let now = self.now();
        let Some(access) = self.under_way.get_mut(&number) else { return Ok(()) };
        let answers = std::mem::take(&mut access.answers);
        for (server, sequence) in std::mem::take(&mut access.unanswered) {
            self.tally.discarded += 1;
            self.servers[server].asked.remove(&sequence);
            self.servers[server].inquirer.give_up(sequence);
        }
        let Chooser::Core(core) = &mut self.chooser else { return Ok(()) };
        // The core knows it no more if it was decided already.
        core.answer(number as u64, &answers, now).map_or(Ok(()), |offered| self.follow(number, offered))
    }

    fn send(&mut self, number: usize, server: usize) -> io::Result<()> {
        let now_ns = since_ns(self.origin);
        let service_ns = self.plan[number].service_ns;
        if let Some(access) = self.under_way.get_mut(&number) {
            access.asking_ns = now_ns.saturating_sub(access.begun_ns);
        }
        self.tally.sent += 1;
        let link = self.servers.get_mut(server).ok_or_else(|| io::Error::other("there is no such server"))?;
        link.accesses.stream.write_all(&access_bytes(number as u64, service_ns))
    }

    fn finish(&mut self, number: usize) {
        let now = self.now();
        let Some(access) = self.under_way.remove(&number) else { return };
        let due_ns = self.plan[number].due_ns;
        let response_ns = now.as_nanos().saturating_sub(due_ns);
        self.tally.answered.push(AnsweredAccess { due_ns, response_ns, asking_ns: access.asking_ns });
        match (&mut self.chooser, access.assigned, access.granted) {
            (Chooser::Core(core), Some(assigned), _) => core.complete(&assigned, Ending::answered(None), now),
            (Chooser::Manager(manager, socket), _, Some(sequence)) => {
                if let Some(datagram) = manager.release(sequence, now.as_nanos()) {
                    let _ = socket.send(&datagram);
                    self.repeats.push_back((now.as_nanos() + REPEAT_NS, sequence));
                }
            }
            _ => {}
        }
    }

    fn end_polls(&mut self) -> io::Result<()> {
        let now_ns = since_ns(self.origin);
        while let Some(&(due_ns, number)) = self.due.front() {
            let decided = self.under_way.get(&number).is_none_or(|access| access.unanswered.is_empty());
            if !decided && due_ns > now_ns {
                break;
            }
            self.due.pop_front();
            if !decided {
                self.decide(number)?;
            }
        }
        Ok(())
    }

    fn say_again(&mut self) {
        let now_ns = since_ns(self.origin);
        let Chooser::Manager(manager, socket) = &mut self.chooser else { return };
        while let Some(&(due_ns, sequence)) = self.repeats.front().filter(|(due_ns, _)| *due_ns <= now_ns) {
            self.repeats.pop_front();
            if let Some(datagram) = manager.repeat(sequence, now_ns) {
                let _ = socket.send(&datagram);
                self.repeats.push_back((due_ns + REPEAT_NS, sequence));
            }
        }
    }

    /// Waits until `until_ns`, or the end of a poll, or something comes, and takes it.
    fn serve(&mut self, until_ns: u64) -> io::Result<()> {
        let next = [self.due.front().map(|(ns, _)| *ns), self.repeats.front().map(|(ns, _)| *ns)];
        let until_ns = next.into_iter().flatten().fold(until_ns, u64::min);
        let left = Duration::from_nanos(until_ns.saturating_sub(since_ns(self.origin)));
        let ready = {
            let agents = self.servers.iter().map(|link| link.agent.as_fd());
            let accesses = self.servers.iter().map(|link| link.accesses.stream.as_fd());
            let mut sources: Vec<BorrowedFd<'_>> = agents.chain(accesses).collect();
            if let Chooser::Manager(_, socket) = &self.chooser {
                sources.push(socket.as_fd());
            }
            wait(&sources, left)?
        };
        let servers = self.servers.len();
        for place in ready {
            match place {
                agent if agent < servers => self.take_loads(agent)?,
                stream if stream < 2 * servers => self.take_answers(stream - servers)?,
                _ => self.take_grants()?,
            }
        }
        Ok(())
    }

    fn take_answers(&mut self, server: usize) -> io::Result<()> {
        let mut ended = Vec::new();
        let is_open =
            self.servers[server].accesses.read(|answer| ended.push(number_at(answer, 0) as usize))?;
        ended.into_iter().for_each(|number| self.finish(number));
        if is_open { Ok(()) } else { Err(io::Error::other("a server has closed a connection")) }
    }

    fn take_loads(&mut self, server: usize) -> io::Result<()> {
        let mut buffer = [0; DATAGRAM_BYTES + 1];
        while let Some(bytes) = received(&self.servers[server].agent, &mut buffer)? {
            let now_ns = since_ns(self.origin);
            let link = &mut self.servers[server];
            let (sequence, load) = match link.inquirer.take(&buffer[..bytes], now_ns) {
                Ok(LoadTaken::Load { sequence, load, .. }) => (sequence, Some(load)),
                Ok(LoadTaken::Renewed { sequence, .. }) => (sequence, None),
                // Late: nobody waits for it any more.
                Ok(LoadTaken::Implausible { .. }) | Err(_) => continue,
            };
            let Some(number) = link.asked.remove(&sequence) else { continue };
            // The agent did not know this client any more: it is asked again, once more by the same poll.
            let again = if load.is_none() { self.inquire(server, now_ns) } else { None };
            if let Some(sequence) = again {
                self.servers[server].asked.insert(sequence, number);
            }
            let Some(access) = self.under_way.get_mut(&number) else { continue };
            access.unanswered.retain(|&(_, asked)| asked != sequence);
            access.unanswered.extend(again.map(|sequence| (server, sequence)));
            access
                .answers
                .extend(load.map(|load| PollAnswer::of(plimsoll_policy::BackendId::new(server), load)));
            if access.unanswered.is_empty() {
                self.decide(number)?;
            }
        }
        Ok(())
    }

    fn take_grants(&mut self) -> io::Result<()> {
        let mut buffer = [0; DATAGRAM_BYTES + 1];
        loop {
            let now_ns = since_ns(self.origin);
            let Chooser::Manager(manager, socket) = &mut self.chooser else { return Ok(()) };
            let Some(bytes) = received(socket, &mut buffer)? else { return Ok(()) };
            match manager.take(&buffer[..bytes], now_ns) {
                Ok(IndexAnswer::Granted { sequence, backend }) => {
                    let Some(number) = self.acquired.remove(&sequence) else { continue };
                    if let Some(access) = self.under_way.get_mut(&number) {
                        access.granted = Some(sequence);
                    }
                    self.send(number, backend)?;
                }
                Ok(IndexAnswer::Renewed { sequence }) => {
                    if let Some(datagram) = manager.repeat(sequence, now_ns) {
                        let _ = socket.send(&datagram);
                    }
                }
                Ok(IndexAnswer::TooLate { sequence }) => {
                    if let Some(number) = self.acquired.remove(&sequence) {
                        self.acquire(number)?;
                    }
                }
                Ok(IndexAnswer::Released { .. }) | Err(_) => {}
            }
        }
    }
}

/// The length of a datagram that has come; `None` if there is none.
fn received(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match socket.recv(buffer) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_empty(&error) || error.kind() == io::ErrorKind::ConnectionRefused => Ok(None),
        Err(error) => Err(error),
    }
}
