//! The polls under way: a state machine without sockets.
//!
//! A poll asks a few back-ends, for a request or ahead of one, and ends when all of them have answered, or when its time is up.
//! A back-end that left three inquiries in a row unanswered is silent: it is asked like the others, so that its return is noticed,
//! but no request waits for its answer.
//!
//! A poll that is to ask a back-end which was asked a moment ago and has not answered yet shares that answer: two datagrams that would
//! tell the same cost as much as the rest of a request. So an answer may be older than its poll, by `max_age` at most.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_policy::{BackendId, Candidates, LoadReport, Nanos};
use plimsoll_wire::load::{Datagram, LoadInquirer, LoadTaken};

/// Unanswered inquiries in a row that make a back-end silent.
const SILENT_AFTER: u32 = 3;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PollEvent {
    /// The request of this number waits no more: these have told their loads, so long after they were asked.
    Answered {
        /// The request's.
        number: u64,
        /// Who has told.
        heard: Candidates,
        /// Since they were asked, in nanoseconds.
        took_ns: u64,
    },
    /// A back-end has told its load.
    Told(LoadReport),
    /// A back-end did not answer.
    Discarded(BackendId),
    /// Nothing that it told counts any more: it does not answer.
    Silent(BackendId),
    /// Nothing that it told counts any more: no back-end has such a load.
    Implausible(BackendId),
}

#[derive(Debug)]
struct PollUnderWay {
    /// Of the request that waits; `None` once none does.
    number: Option<u64>,
    heard: Candidates,
    /// Answers that the request still waits for.
    left: usize,
    began_ns: u64,
    /// Sequence numbers of the inquiries that were sent for it.
    sent: Vec<u64>,
    /// How many of them are under way.
    open: usize,
}

impl PollUnderWay {
    /// Whether nothing is left to be waited for, or to be given up.
    fn is_over(&self) -> bool {
        self.number.is_none() && self.open == 0
    }
}

/// An inquiry under way.
#[derive(Debug)]
struct Asked {
    backend: BackendId,
    asked_ns: u64,
    /// The poll that it was sent for, and those that share it; with whether a request waits for the answer.
    polls: Vec<(u64, bool)>,
}

/// The polls under way: a state machine without sockets.
///
/// A poll asks a few back-ends, for a request or ahead of one, and ends when all of them have answered, or when its time is up.
#[derive(Debug)]
pub struct PollsUnderWay {
    inquirer: LoadInquirer,
    next: u64,
    polls: BTreeMap<u64, PollUnderWay>,
    /// By sequence number of the inquiry.
    asked: BTreeMap<u64, Asked>,
    /// Sequence number of the latest inquiry to each back-end.
    latest: BTreeMap<BackendId, u64>,
    /// When polls end, and inquiries are given up: in that order, as all take the same time.
    due: VecDeque<(u64, u64)>,
    /// Unanswered inquiries in a row, by back-end.
    unanswered: BTreeMap<BackendId, u32>,
    timeout_ns: u64,
    /// For so long after it was sent an inquiry is shared, until it is answered.
    max_age_ns: u64,
}

/// Datagrams to be sent.
pub type Outgoing = Vec<(BackendId, Datagram)>;

impl PollsUnderWay {
    /// With these times in nanoseconds: the longest wait of a request, and for how long an inquiry is shared.
    #[must_use]
    pub fn new(inquirer: LoadInquirer, timeout_ns: u64, max_age_ns: u64) -> Self {
        Self {
            inquirer,
            next: 0,
            polls: BTreeMap::new(),
            asked: BTreeMap::new(),
            latest: BTreeMap::new(),
            due: VecDeque::new(),
            unanswered: BTreeMap::new(),
            timeout_ns,
            // Who joins late still has most of its own time to wait.
            max_age_ns: max_age_ns.min(timeout_ns / 4),
        }
    }

    /// Another agent answers for this back-end from now on: nobody waits for the one before.
    pub fn forget(&mut self, backend: BackendId, now_ns: u64) -> Vec<PollEvent> {
        let (mut events, asked) = (Vec::new(), std::mem::take(&mut self.asked));
        for (sequence, asked) in asked {
            if asked.backend != backend {
                self.asked.insert(sequence, asked);
                continue;
            }
            self.inquirer.give_up(sequence);
            events.push(PollEvent::Discarded(backend));
            self.answered(&asked, None, now_ns, &mut events);
        }
        self.unanswered.remove(&backend);
        self.latest.remove(&backend);
        self.inquirer.forget(backend.index());
        events
    }

    /// Asks these, which have addresses, for the request of this number, or for none.
    pub fn begin(
        &mut self,
        number: Option<u64>,
        backends: impl Iterator<Item = BackendId>,
        now_ns: u64,
    ) -> (Outgoing, Vec<PollEvent>) {
        let poll = self.next;
        self.next += 1;
        let mut under_way = PollUnderWay {
            number,
            heard: Candidates::NONE,
            left: 0,
            began_ns: now_ns,
            sent: Vec::new(),
            open: 0,
        };
        let (mut outgoing, mut asks) = (Outgoing::new(), false);
        for backend in backends {
            let awaited = number.is_some() && !self.is_silent(backend);
            if let Some(asked) = self.shared(backend, now_ns) {
                asked.polls.push((poll, awaited));
            } else {
                let Some((sequence, datagram)) = self.inquirer.ask(backend.index(), now_ns) else { continue };
                let polls = vec![(poll, awaited)];
                self.asked.insert(sequence, Asked { backend, asked_ns: now_ns, polls });
                self.latest.insert(backend, sequence);
                under_way.sent.push(sequence);
                under_way.open += 1;
                outgoing.push((backend, datagram));
            }
            under_way.left += usize::from(awaited);
            asks = true;
        }
        let mut events = Vec::new();
        finish(&mut under_way, now_ns, &mut events);
        if asks {
            self.polls.insert(poll, under_way);
            self.due.push_back((now_ns.saturating_add(self.timeout_ns), poll));
        }
        (outgoing, events)
    }

    /// An inquiry to this back-end that was sent a moment ago and is not answered yet.
    fn shared(&mut self, backend: BackendId, now_ns: u64) -> Option<&mut Asked> {
        let asked = self.asked.get_mut(self.latest.get(&backend)?)?;
        (now_ns.saturating_sub(asked.asked_ns) < self.max_age_ns).then_some(asked)
    }

    fn is_silent(&self, backend: BackendId) -> bool {
        self.unanswered.get(&backend).is_some_and(|&count| count >= SILENT_AFTER)
    }

    /// Takes a datagram that came in, and adds what follows to `events`.
    pub fn take(&mut self, datagram: &[u8], now_ns: u64, events: &mut Vec<PollEvent>) -> Outgoing {
        let mut outgoing = Outgoing::new();
        match self.inquirer.take(datagram, now_ns) {
            Ok(LoadTaken::Load { sequence, load, latency_us, .. }) => {
                if let Some(asked) = self.asked.remove(&sequence) {
                    self.unanswered.remove(&asked.backend);
                    let latency = (latency_us > 0).then(|| Nanos::new(u64::from(latency_us) * 1000));
                    let report = LoadReport { backend: asked.backend, load, latency };
                    self.answered(&asked, Some(report), now_ns, events);
                }
            }
            Ok(LoadTaken::Renewed { sequence, .. }) => {
                if let Some(asked) = self.asked.remove(&sequence) {
                    outgoing.extend(self.ask_again(asked, now_ns, events));
                }
            }
            Ok(LoadTaken::Implausible { sequence, .. }) => {
                if let Some(asked) = self.asked.remove(&sequence) {
                    self.unanswered.insert(asked.backend, SILENT_AFTER);
                    events.push(PollEvent::Implausible(asked.backend));
                    self.answered(&asked, None, now_ns, events);
                }
            }
            // The inquirer has counted it.
            Err(_) => {}
        }
        outgoing
    }

    /// The agent has begun anew: it is asked once more, for the same polls.
    fn ask_again(
        &mut self,
        asked: Asked,
        now_ns: u64,
        events: &mut Vec<PollEvent>,
    ) -> Option<(BackendId, Datagram)> {
        let backend = asked.backend;
        let Some((again, datagram)) = self.inquirer.ask(backend.index(), now_ns) else {
            self.answered(&asked, None, now_ns, events);
            return None;
        };
        let first = asked.polls.first().and_then(|(poll, _)| self.polls.get_mut(poll));
        if let Some(first) = first {
            first.sent.push(again);
        }
        self.asked.insert(again, Asked { asked_ns: now_ns, ..asked });
        self.latest.insert(backend, again);
        Some((backend, datagram))
    }

    /// A back-end has answered, or will not.
    fn answered(
        &mut self,
        asked: &Asked,
        told: Option<LoadReport>,
        now_ns: u64,
        events: &mut Vec<PollEvent>,
    ) {
        // Before anybody chooses by it, and when it comes: what is sent there from now on is added to it.
        events.extend(told.map(PollEvent::Told));
        let first = asked.polls.first().and_then(|(poll, _)| self.polls.get_mut(poll));
        if let Some(first) = first {
            first.open = first.open.saturating_sub(1);
        }
        for (poll, awaited) in &asked.polls {
            let Some(poll) = self.polls.get_mut(poll) else { continue };
            poll.left -= usize::from(*awaited && poll.left > 0);
            if told.is_some() {
                poll.heard.push(asked.backend);
            }
            finish(poll, now_ns, events);
        }
        self.forget_over();
    }

    /// Nothing becomes due of polls that are over, so that no timer goes off for them.
    fn forget_over(&mut self) {
        while let Some((_, poll)) = self.due.front()
            && self.polls.get(poll).is_none_or(PollUnderWay::is_over)
        {
            self.polls.remove(poll);
            self.due.pop_front();
        }
    }

    /// Ends what is due.
    pub fn expire(&mut self, now_ns: u64) -> Vec<PollEvent> {
        let mut events = Vec::new();
        while let Some(&(due_ns, number)) = self.due.front()
            && due_ns <= now_ns
        {
            self.due.pop_front();
            let Some(mut poll) = self.polls.remove(&number) else { continue };
            for sequence in std::mem::take(&mut poll.sent) {
                let Some(asked) = self.asked.remove(&sequence) else { continue };
                self.inquirer.give_up(sequence);
                events.push(PollEvent::Discarded(asked.backend));
                let count = self.unanswered.entry(asked.backend).or_default();
                *count = count.saturating_add(1);
                if *count >= SILENT_AFTER {
                    events.push(PollEvent::Silent(asked.backend));
                }
                // Those that share it began a moment later, and wait for nothing any more.
                self.answered(&asked, None, now_ns, &mut events);
            }
            poll.left = 0;
            finish(&mut poll, now_ns, &mut events);
        }
        events
    }

    /// Whether a request waits for answers of this poll's number.
    pub fn is_waiting(&self, number: u64) -> bool {
        self.polls.values().any(|poll| poll.number == Some(number))
    }

    /// When [`PollsUnderWay::expire`] has something to do.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.due.front().map(|&(due_ns, _)| due_ns)
    }
}

/// Ends the wait of the poll's request, if it waits for nobody.
fn finish(poll: &mut PollUnderWay, now_ns: u64, events: &mut Vec<PollEvent>) {
    if poll.left == 0
        && let Some(number) = poll.number.take()
    {
        let took_ns = now_ns.saturating_sub(poll.began_ns);
        events.push(PollEvent::Answered { number, heard: poll.heard, took_ns });
    }
}

#[cfg(test)]
mod tests;
