//! Inquiries that take their time: to back-ends and back, and longer where a back-end is busy.

use std::collections::VecDeque;

use plimsoll_policy::{BackendId, Candidates, Nanos, PollAnswer, Rng, Time};

use crate::arrivals::Arrived;
use crate::event_queue::EventQueue;
use crate::load_information::PollParams;
use crate::outcome::LoadMessages;

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

/// A request that waits for loads, or a probe for which no request waits.
#[derive(Clone, Copy)]
pub(super) enum PolledFor {
    Request(Arrived),
    Probe,
}

/// One poll of several back-ends.
#[derive(Clone, Copy)]
pub(super) struct PollUnderWay {
    pub(super) polled_for: PolledFor,
    pub(super) front_end: u16,
    sent: Time,
    /// Tells it from later polls in the same place.
    serial: u64,
    candidates: Candidates,
    answers: [PollAnswer; Candidates::MOST],
    /// Answers that have arrived.
    heard: u8,
    /// Answers under way together, stored behind those that have arrived.
    prompt: u8,
    outstanding: u8,
    /// Whether the inquiries have reached their back-ends.
    asked: bool,
}

impl PollUnderWay {
    const VOID: Self = Self {
        polled_for: PolledFor::Probe,
        front_end: 0,
        sent: Time::ZERO,
        serial: u64::MAX,
        candidates: Candidates::NONE,
        answers: [PollAnswer::of(BackendId(0), 0); Candidates::MOST],
        heard: 0,
        prompt: 0,
        outstanding: 0,
        asked: false,
    };

    pub(super) fn answers(&self) -> &[PollAnswer] {
        &self.answers[..usize::from(self.heard)]
    }
}

/// An inquiry that is read late, or its answer.
#[derive(Clone, Copy)]
struct LateInquiry {
    place: u32,
    serial: u64,
    backend: BackendId,
    /// Once it has been read.
    answer: Option<PollAnswer>,
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
        candidates: Candidates,
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
        (poll.polled_for, poll.front_end, poll.sent, poll.serial) = (polled_for, front_end, now, serial);
        (poll.candidates, poll.heard, poll.prompt, poll.outstanding) = (candidates, 0, 0, count as u8);
        poll.asked = false;
        self.requests += usize::from(matches!(polled_for, PolledFor::Request(_)));
        messages.messages += count as u64;
        messages.inquiries += count as u64;
        self.flying.push_back((now + self.how.latency_s, place, serial));
        self.next = self.next.min(now + self.how.latency_s);
        if !self.how.discard_after_s.is_zero() {
            self.deadlines.push_back((now + self.how.discard_after_s, place, serial));
            self.next = self.next.min(now + self.how.discard_after_s);
        }
        place
    }

    /// The time of the next event; [`Time::MAX`] where there is none.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    #[inline]
    fn find_next(&mut self) {
        let mut next = self.late.peek().map_or(Time::MAX, |(time, _)| time);
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
                poll.asked = true;
                self.ask(place, asked, messages, now);
                return None;
            }
            poll.heard += poll.prompt;
            poll.prompt = 0;
            return self.end_if_complete(place, messages, now);
        }
        if let Some((time, _)) = self.late.peek()
            && time <= now
        {
            let (_, late) = self.late.pop()?;
            return self.handle_late(late, asked, messages, now);
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
    fn ask(&mut self, place: u32, asked: &mut impl Asked, messages: &mut LoadMessages, now: Time) {
        let PollUnderWay { candidates, serial, .. } = self.polls[place as usize];
        for &backend in candidates.as_slice() {
            if !self.how.cpu_s.is_zero() {
                messages.cpu += asked.spend(backend);
            }
            let load = asked.load(backend);
            let late = self.how.late_share > 0.0 && load > 0 && self.rng.unit() < self.how.late_share;
            if late {
                let wait = self.how.late_mean_s.scaled(self.rng.exponential());
                self.late.push(now + wait, LateInquiry { place, serial, backend, answer: None });
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
        self.flying.push_back((now + self.how.latency_s, place, serial));
    }

    fn handle_late(
        &mut self,
        late: LateInquiry,
        asked: &impl Asked,
        messages: &mut LoadMessages,
        now: Time,
    ) -> Option<u32> {
        let Some(answer) = late.answer else {
            if let Some(answer) = asked.answer(late.backend, asked.load(late.backend)) {
                messages.messages += 1;
                let answered = LateInquiry { answer: Some(answer), ..late };
                self.late.push(now + self.how.latency_s, answered);
            } else if let Some(poll) = self.under_way(late.place, late.serial) {
                poll.outstanding -= 1;
                return self.end_if_complete(late.place, messages, now);
            }
            return None;
        };
        let poll = self.under_way(late.place, late.serial)?;
        // Behind those that are under way together.
        let end = usize::from(poll.heard + poll.prompt);
        poll.answers[end] = poll.answers[usize::from(poll.heard)];
        poll.answers[usize::from(poll.heard)] = answer;
        poll.heard += 1;
        poll.outstanding -= 1;
        self.end_if_complete(late.place, messages, now)
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
