//! The inquiries under way: a state machine without sockets.
//!
//! A poll asks a few agents, for an access or ahead of one. It ends when all have answered, or when its time is up: what comes later
//! is discarded. An agent that left three inquiries in a row unanswered is silent: it is asked like the others, so that its return is
//! noticed, but no access waits for its answer.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use plimsoll_policy::{BackendId, Candidates, Nanos, PollAnswer};
use plimsoll_wire::load::{Datagram, LoadInquirer, LoadTaken};
use tokio::sync::oneshot;

/// Unanswered inquiries in a row that make an agent silent.
const SILENT_AFTER: u32 = 3;

/// Whom an answer of a probe is for.
pub(crate) type OnAnswer = Box<dyn Fn(PollAnswer) + Send>;

/// What becomes of answers.
pub(crate) enum AskedFor {
    /// An access waits for all of them.
    Access(oneshot::Sender<Vec<PollAnswer>>),
    /// Nobody waits. Each is passed on as it comes.
    Probe(OnAnswer),
}

struct PollEntry {
    /// `None` once the access waits no more.
    asked_for: Option<AskedFor>,
    answers: Vec<PollAnswer>,
    /// Answers that the access still waits for.
    left: usize,
    /// Of the inquiries.
    sequences: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct AskedAgent {
    poll: u64,
    peer: usize,
    backend: BackendId,
    awaited: bool,
}

#[derive(Debug)]
struct AgentEntry {
    address: SocketAddr,
    /// Unanswered inquiries in a row.
    unanswered: u32,
}

pub(crate) struct AskTable {
    inquirer: LoadInquirer,
    next: u64,
    polls: BTreeMap<u64, PollEntry>,
    /// By sequence number of the inquiry.
    asked: BTreeMap<u64, AskedAgent>,
    /// When polls end: in that order, as all take the same time.
    due: VecDeque<(u64, u64)>,
    /// By the number that the inquirer knows them by.
    agents: Vec<Option<AgentEntry>>,
    numbers: BTreeMap<SocketAddr, usize>,
    discard_after_ns: u64,
    /// Answers that came too late, or never.
    pub(crate) discarded: u64,
}

/// Datagrams to be sent.
pub(crate) type ToSend = Vec<(SocketAddr, Datagram)>;

impl AskTable {
    pub(crate) fn new(inquirer: LoadInquirer, discard_after_ns: u64) -> Self {
        Self {
            inquirer,
            next: 0,
            polls: BTreeMap::new(),
            asked: BTreeMap::new(),
            due: VecDeque::new(),
            agents: Vec::new(),
            numbers: BTreeMap::new(),
            discard_after_ns,
            discarded: 0,
        }
    }

    /// Only these agents are there now.
    pub(crate) fn retain(&mut self, is_there: impl Fn(&SocketAddr) -> bool) {
        let (inquirer, agents) = (&mut self.inquirer, &mut self.agents);
        self.numbers.retain(|address, &mut number| {
            let stays = is_there(address);
            if !stays {
                inquirer.forget(number);
                agents[number] = None;
            }
            stays
        });
    }

    fn number_of(&mut self, address: SocketAddr) -> usize {
        if let Some(&number) = self.numbers.get(&address) {
            return number;
        }
        let number = self.agents.iter().position(Option::is_none).unwrap_or(self.agents.len());
        let entry = Some(AgentEntry { address, unanswered: 0 });
        if number == self.agents.len() {
            self.agents.push(entry);
        } else {
            self.agents[number] = entry;
        }
        self.numbers.insert(address, number);
        number
    }

    fn is_silent(&self, number: usize) -> bool {
        self.agents[number].as_ref().is_some_and(|agent| agent.unanswered >= SILENT_AFTER)
    }

    /// Asks these agents. An access for which nobody is asked has its answer at once. The back-ends are those whose agents are silent.
    pub(crate) fn begin(
        &mut self,
        asked_for: AskedFor,
        agents: &[(BackendId, SocketAddr)],
        now_ns: u64,
    ) -> (u64, ToSend, Candidates) {
        self.expire(now_ns);
        let poll = self.next;
        self.next += 1;
        let is_access = matches!(asked_for, AskedFor::Access(_));
        let mut entry =
            PollEntry { asked_for: Some(asked_for), answers: Vec::new(), left: 0, sequences: Vec::new() };
        let mut outgoing = ToSend::with_capacity(Candidates::MOST);
        let mut silent = Candidates::NONE;
        for &(backend, address) in agents {
            let peer = self.number_of(address);
            let Some((sequence, datagram)) = self.inquirer.ask(peer, now_ns) else { continue };
            let is_silent = self.is_silent(peer);
            let awaited = is_access && !is_silent;
            if is_silent {
                silent.push(backend);
            }
            entry.left += usize::from(awaited);
            entry.sequences.push(sequence);
            self.asked.insert(sequence, AskedAgent { poll, peer, backend, awaited });
            outgoing.push((address, datagram));
        }
        finish(&mut entry);
        if !outgoing.is_empty() {
            self.polls.insert(poll, entry);
            self.due.push_back((now_ns.saturating_add(self.discard_after_ns), poll));
        }
        (poll, outgoing, silent)
    }

    /// Takes a datagram that came in; what is to be sent, if anything.
    pub(crate) fn take(&mut self, datagram: &[u8], now_ns: u64) -> Option<(SocketAddr, Datagram)> {
        let (peer, sequence, answer) = match self.inquirer.take(datagram, now_ns).ok()? {
            LoadTaken::Load { peer, sequence, load, latency_us, .. } => {
                let latency = (latency_us > 0).then(|| Nanos::from_micros(u64::from(latency_us)));
                (peer, sequence, Some((load, latency)))
            }
            LoadTaken::Implausible { peer, sequence } => (peer, sequence, None),
            LoadTaken::Renewed { peer, sequence } => return self.ask_again(peer, sequence, now_ns),
        };
        if let Some(agent) = &mut self.agents[peer] {
            agent.unanswered = if answer.is_some() { 0 } else { SILENT_AFTER };
        }
        let asked = self.asked.remove(&sequence)?;
        let answer = answer.map(|(load, latency)| PollAnswer { backend: asked.backend, load, latency });
        self.answered(asked, answer);
        None
    }

    /// The agent did not know us, and does now.
    fn ask_again(&mut self, peer: usize, sequence: u64, now_ns: u64) -> Option<(SocketAddr, Datagram)> {
        let asked = self.asked.remove(&sequence)?;
        let address = self.agents[peer].as_ref()?.address;
        match self.inquirer.ask(peer, now_ns) {
            Some((again, datagram)) => {
                self.asked.insert(again, asked);
                if let Some(poll) = self.polls.get_mut(&asked.poll) {
                    poll.sequences.push(again);
                }
                Some((address, datagram))
            }
            None => {
                self.answered(asked, None);
                None
            }
        }
    }

    fn answered(&mut self, asked: AskedAgent, answer: Option<PollAnswer>) {
        let Some(poll) = self.polls.get_mut(&asked.poll) else { return };
        poll.left -= usize::from(asked.awaited);
        match (&poll.asked_for, answer) {
            (Some(AskedFor::Probe(on_answer)), Some(answer)) => on_answer(answer),
            (_, Some(answer)) => poll.answers.push(answer),
            (_, None) => {}
        }
        finish(poll);
    }

    /// Ends a poll whose time is up; the answers that came.
    pub(crate) fn end(&mut self, poll: u64) -> Vec<PollAnswer> {
        let Some(entry) = self.polls.remove(&poll) else { return Vec::new() };
        for sequence in entry.sequences {
            if let Some(asked) = self.asked.remove(&sequence) {
                self.discarded += 1;
                self.inquirer.give_up(sequence);
                if let Some(agent) = &mut self.agents[asked.peer] {
                    agent.unanswered = agent.unanswered.saturating_add(1);
                }
            }
        }
        entry.answers
    }

    fn expire(&mut self, now_ns: u64) {
        while let Some(&(due_ns, poll)) = self.due.front()
            && due_ns <= now_ns
        {
            self.due.pop_front();
            self.end(poll);
        }
    }
}

/// Ends the wait of the poll's access, if it waits for nobody.
fn finish(poll: &mut PollEntry) {
    if poll.left == 0
        && let Some(AskedFor::Access(sender)) = poll.asked_for.take_if(|f| matches!(f, AskedFor::Access(_)))
    {
        // It may have gone away.
        drop(sender.send(std::mem::take(&mut poll.answers)));
    }
}
