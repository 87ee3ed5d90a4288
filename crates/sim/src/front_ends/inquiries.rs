//! Inquiries that take their time: to back-ends and back, and longer where a back-end is busy.

use std::collections::VecDeque;

use plimsoll_policy::{BackendId, Candidates, Nanos, PollAnswer, Rng, Time};

use super::Quiet;
use crate::arrivals::Arrived;
use crate::event_queue::{EventQueue, key, time_of};
use crate::load_information::PollParams;
use crate::outcome::LoadMessages;

mod poll;

use poll::PollUnderWay;
pub(super) use poll::PolledFor;

/// Stream of the run's seed that late answers are drawn from.
const STREAM: u64 = 0x6C61_7465;

/// What back-ends say when they are asked.
pub(super) trait Asked {
    /// The requests that `b` has now.
    fn load(&self, b: BackendId) -> u32;
    /// The answer of `b` that has `load`; `None` when it is down.
    fn answer(&self, b: BackendId, load: u32) -> Option<PollAnswer>;
    /// `b` spends CPU time on an inquiry; how much.
    fn spend(&mut self, b: BackendId) -> Nanos;
}

/// An inquiry that is read late.
#[derive(Clone, Copy)]
struct LateInquiry {
    serial: u64,
    place: u32,
    backend: BackendId,
}

/// The answer to one.
#[derive(Clone, Copy)]
struct LateAnswer {
    serial: u64,
    place: u32,
    answer: PollAnswer,
}

/// See the module's documentation.
pub(super) struct InquiriesUnderWay {
    how: PollParams,
    rng: Rng,
    polls: Vec<PollUnderWay>,
    free: Vec<u32>,
    /// The time of the next event.
    next: Time,
    next_serial: u64,
    /// Polls of requests.
    requests: usize,
    /// On their way to back-ends, and prompt answers on their way back: in order, for all take equally long.
    flying: VecDeque<(Time, u32, u64)>,
    /// Ends of patience, in order.
    deadlines: VecDeque<(Time, u32, u64)>,
    late: EventQueue<LateInquiry>,
    /// Answers to them, with their keys among these: in order, for all take equally long.
    late_answers: VecDeque<(u128, LateAnswer)>,
}

impl InquiriesUnderWay {
    pub(super) fn new(how: PollParams, seed: u64) -> Self {
        Self {
            how,
            rng: Rng::new(seed, STREAM),
            polls: Vec::new(),
            free: Vec::new(),
            next: Time::MAX,
            next_serial: 0,
            requests: 0,
            flying: VecDeque::new(),
            deadlines: VecDeque::new(),
            late: EventQueue::default(),
            late_answers: VecDeque::new(),
        }
    }

    /// Whether requests wait for loads.
    pub(super) fn holds_requests(&self) -> bool {
        self.requests > 0
    }

    /// Returns the poll's place until it ends.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        polled_for: PolledFor,
        front_end: u16,
        candidates: &Candidates,
        messages: &mut LoadMessages,
        now: Time,
    ) -> u32 {
        let place = self.begin(front_end, candidates, messages, now);
        self.polls[place as usize].candidates = *candidates;
        self.fly(place, now + self.how.latency_s);
        self.wait(place, polled_for);
        place
    }

    /// The same for a request; lets the poll come to its end at once where nothing else happens before. Returns its place then, and
    /// else lets it come as far as that. `asked` is at the time when the inquiries arrive.
    #[inline]
    pub(super) fn send_ahead(
        &mut self,
        arrived: &Arrived,
        front_end: u16,
        candidates: &Candidates,
        asked: &mut impl Asked,
        messages: &mut LoadMessages,
        quiet: &mut Quiet,
    ) -> Option<u32> {
        let sent = quiet.now;
        let (arrive, answered) = (sent + self.how.latency_s, sent + self.how.latency_s + self.how.latency_s);
        let mut ends = quiet.ends.min(self.next);
        if !self.how.discard_after_s.is_zero() {
            ends = ends.min(sent + self.how.discard_after_s);
        }
        let place = self.begin(front_end, candidates, messages, sent);
        if arrive >= ends {
            self.polls[place as usize].candidates = *candidates;
            self.fly(place, arrive);
            self.wait(place, PolledFor::Request(*arrived));
            return None;
        }
        quiet.now = arrive;
        self.ask(place, candidates, asked, messages, arrive);
        let poll = &mut self.polls[place as usize];
        if answered >= ends.min(time_of(self.late.first_key())) {
            self.fly(place, answered);
        } else {
            quiet.now = answered;
            poll.heard = std::mem::take(&mut poll.prompt);
            if poll.outstanding == 0 {
                poll.serial = u64::MAX;
                self.free.push(place);
                messages.polls += 1;
                messages.poll_ns.record(answered.since(sent).as_nanos());
                return Some(place);
            }
        }
        self.wait(place, PolledFor::Request(*arrived));
        self.find_next();
        None
    }

    #[inline(always)]
    fn begin(
        &mut self,
        front_end: u16,
        candidates: &Candidates,
        messages: &mut LoadMessages,
        now: Time,
    ) -> u32 {
        let serial = self.next_serial;
        self.next_serial += 1;
        let count = candidates.as_slice().len();
        let place = self.free.pop().unwrap_or_else(|| {
            self.polls.push(PollUnderWay::VOID);
            (self.polls.len() - 1) as u32
        });
        // The answers of the poll that was here before are overwritten as new ones come.
        let poll = &mut self.polls[place as usize];
        (poll.front_end, poll.sent, poll.serial) = (front_end, now, serial);
        (poll.heard, poll.prompt, poll.outstanding) = (0, 0, count as u8);
        poll.asked = false;
        messages.messages += count as u64;
        messages.inquiries += count as u64;
        place
    }

    /// What this poll has sent, or what it is answered, arrives at this time.
    #[inline]
    fn fly(&mut self, place: u32, arrives: Time) {
        self.flying.push_back((arrives, place, self.polls[place as usize].serial));
        self.next = self.next.min(arrives);
    }

    /// For this a poll that has begun is under way.
    #[inline]
    fn wait(&mut self, place: u32, polled_for: PolledFor) {
        self.requests += usize::from(matches!(polled_for, PolledFor::Request(_)));
        let poll = &mut self.polls[place as usize];
        poll.polled_for = polled_for;
        if !self.how.discard_after_s.is_zero() {
            let ends = poll.sent + self.how.discard_after_s;
            self.deadlines.push_back((ends, place, poll.serial));
            self.next = self.next.min(ends);
        }
    }

    /// The time of the next event; [`Time::MAX`] where there is none.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    #[inline]
    fn find_next(&mut self) {
        let mut next = time_of(self.late.first_key());
        if let Some(&(key, _)) = self.late_answers.front() {
            next = next.min(time_of(key));
        }
        if let Some(&(time, ..)) = self.flying.front() {
            next = next.min(time);
        }
        // Most polls end long before the end of patience.
        while let Some(&(time, place, serial)) = self.deadlines.front()
            && time < next
        {
            if self.polls[place as usize].serial == serial {
                next = time;
            } else {
                self.deadlines.pop_front();
            }
        }
        self.next = next;
    }

    /// A poll that has ended, until the next one is sent.
    pub(super) fn ended(&self, place: u32) -> &PollUnderWay {
        &self.polls[place as usize]
    }

    /// The event of `now`. Returns the place of a poll that has ended.
    #[inline]
    pub(super) fn handle(
        &mut self,
        asked: &mut impl Asked,
        messages: &mut LoadMessages,
        now: Time,
    ) -> Option<u32> {
        let ended = self.handle_event(asked, messages, now);
        self.find_next();
        ended
    }

    #[inline]
    fn handle_event(
        &mut self,
        asked: &mut impl Asked,
        messages: &mut LoadMessages,
        now: Time,
    ) -> Option<u32> {
        if let Some(&(time, place, serial)) = self.flying.front()
            && time <= now
        {
            self.flying.pop_front();
            let poll = self.under_way(place, serial)?;
            if !poll.asked {
                let candidates = poll.candidates;
                self.ask(place, &candidates, asked, messages, now);
                self.flying.push_back((now + self.how.latency_s, place, serial));
                return None;
            }
            poll.heard += poll.prompt;
            poll.prompt = 0;
            return self.end_if_complete(place, messages, now);
        }
        let inquiry = self.late.first_key();
        if let Some(&(answer, late)) = self.late_answers.front()
            && time_of(answer) <= now
            && answer < inquiry
        {
            self.late_answers.pop_front();
            return self.take_late(late, messages, now);
        }
        if time_of(inquiry) <= now {
            return self.read_late(asked, messages, now);
        }
        let (_, place, serial) = self.deadlines.pop_front()?;
        let poll = self.under_way(place, serial)?;
        messages.discarded += u64::from(poll.outstanding) + u64::from(poll.prompt);
        Some(self.end(place, messages, now))
    }

    #[inline]
    fn under_way(&mut self, place: u32, serial: u64) -> Option<&mut PollUnderWay> {
        self.polls.get_mut(place as usize).filter(|poll| poll.serial == serial)
    }

    /// The inquiries of a poll reach their back-ends.
    #[inline]
    fn ask(
        &mut self,
        place: u32,
        candidates: &Candidates,
        asked: &mut impl Asked,
        messages: &mut LoadMessages,
        now: Time,
    ) {
        let poll = &mut self.polls[place as usize];
        poll.asked = true;
        let serial = poll.serial;
        for &backend in candidates.as_slice() {
            if !self.how.cpu_s.is_zero() {
                messages.cpu += asked.spend(backend);
            }
            let load = asked.load(backend);
            let late = self.how.late_share > 0.0 && load > 0 && self.rng.unit() < self.how.late_share;
            if late {
                let wait = self.how.late_mean_s.scaled(self.rng.exponential());
                self.late.push(now + wait, LateInquiry { serial, place, backend });
            } else {
                let poll = &mut self.polls[place as usize];
                poll.outstanding -= 1;
                // Nobody answers for a back-end that is down: a refusal comes back as fast.
                if let Some(answer) = asked.answer(backend, load) {
                    poll.answers[usize::from(poll.heard + poll.prompt)] = answer;
                    poll.prompt += 1;
                    messages.messages += 1;
                }
            }
        }
    }

    /// A back-end reads a late inquiry.
    fn read_late(&mut self, asked: &impl Asked, messages: &mut LoadMessages, now: Time) -> Option<u32> {
        let (_, LateInquiry { serial, place, backend }) = self.late.pop()?;
        let Some(answer) = asked.answer(backend, asked.load(backend)) else {
            self.under_way(place, serial)?.outstanding -= 1;
            return self.end_if_complete(place, messages, now);
        };
        messages.messages += 1;
        let key = key(now + self.how.latency_s, self.late.ticket());
        self.late_answers.push_back((key, LateAnswer { serial, place, answer }));
        None
    }

    fn take_late(
        &mut self,
        LateAnswer { serial, place, answer }: LateAnswer,
        messages: &mut LoadMessages,
        now: Time,
    ) -> Option<u32> {
        let poll = self.under_way(place, serial)?;
        // Behind those that are under way together.
        let end = usize::from(poll.heard + poll.prompt);
        poll.answers[end] = poll.answers[usize::from(poll.heard)];
        poll.answers[usize::from(poll.heard)] = answer;
        poll.heard += 1;
        poll.outstanding -= 1;
        self.end_if_complete(place, messages, now)
    }

    #[inline(always)]
    fn end_if_complete(&mut self, place: u32, messages: &mut LoadMessages, now: Time) -> Option<u32> {
        let poll = &self.polls[place as usize];
        (poll.outstanding == 0 && poll.prompt == 0).then(|| self.end(place, messages, now))
    }

    #[inline]
    fn end(&mut self, place: u32, messages: &mut LoadMessages, now: Time) -> u32 {
        let poll = &mut self.polls[place as usize];
        // What is still under way to it finds another serial.
        poll.serial = u64::MAX;
        self.free.push(place);
        if matches!(poll.polled_for, PolledFor::Request(_)) {
            self.requests -= 1;
            messages.polls += 1;
            messages.polls_cut_short += u64::from(poll.outstanding + poll.prompt > 0);
            messages.poll_ns.record(now.since(poll.sent).as_nanos());
        }
        place
    }
}
