//! Encodes events: a few nanoseconds each, no allocation except for the buffer, no input or output.

mod chunks;
mod members;

use plimsoll_policy::{
    AdmissionControl, Assigned, BackendId, Completion, Decision, Health, HostMetrics, LoadReport,
    OfferOptions, Outcome, Phase, PollAnswer, Request, SniffedRequest, Time, WaitingRequest, Weight, Witness,
};

use crate::bytes::{StackBytes, put_text, put_varint, zigzag};
use crate::code::{self, Recent};
use crate::event::{BackendEntry, RunHeader};
use crate::header_code::{self, CountedLoad, HeaderForm};
use crate::request_code;
use crate::sniffed_code;

/// Records every input of a core, as its witness, under the lock that guards the core.
///
/// Its owner takes the buffer ([`Recorder::take`]) when it has reached the size of a chunk, and passes it to
/// a [`crate::LogWriter`]. Each chunk can be read on its own.
pub struct Recorder {
    buffer: Vec<u8>,
    /// Length of the buffer that makes a chunk.
    full_bytes: usize,
    spare: Option<Vec<u8>>,
    /// Of the next chunk, or of the one begun.
    sequence: u64,
    last_time: Time,
    next_number: u64,
    last_client: u64,
    recent: Recent,
    /// The run as it is now, except for loads and waiting requests.
    run: Option<RunHeader>,
    loads: Vec<CountedLoad>,
    /// How many back-ends have left so far; numbers them in order of leaving.
    left: u32,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// The size of a chunk in bytes: large enough that its head does not matter, small enough to allocate and
    /// to lose.
    pub const CHUNK_BYTES: usize = 64 << 10;

    /// An empty recorder.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buffer: Vec::new(),
            full_bytes: Self::CHUNK_BYTES,
            spare: None,
            sequence: 0,
            last_time: Time::ZERO,
            next_number: 0,
            last_client: 0,
            recent: Recent::new(),
            run: None,
            loads: Vec::new(),
            left: 0,
        }
    }

    /// A fresh policy object begins: at the start, or because another policy was configured. Back-ends beyond
    /// 65,535, the most that a cluster holds, are left out.
    pub fn run_started(&mut self, header: &RunHeader, now: Time) {
        let mut header = header.clone();
        let tag = match HeaderForm::of(&header) {
            HeaderForm::Plain => code::RUN,
            HeaderForm::WithClasses => code::RUN_WITH_CLASSES,
            HeaderForm::WithLimits => code::RUN_WITH_LIMITS,
        };
        self.put(&mut StackBytes::new(tag), now);
        header.backends.truncate(usize::from(u16::MAX));
        self.loads = header.backends.iter().map(CountedLoad::of).collect();
        header_code::put_header(&mut self.buffer, &header, &self.loads);
        // A chunk's head does not repeat the waiting requests: they would be out of date.
        header.waiting = Vec::new();
        self.left = header.backends.iter().filter_map(|b| b.left).max().map_or(0, |place| place + 1);
        self.run = Some(header);
    }

    /// Whether what was recorded makes a chunk. In a large cluster, whose state heads each chunk, chunks are longer than
    /// [`Recorder::CHUNK_BYTES`]: most of a chunk is events.
    #[must_use]
    #[inline]
    pub fn is_chunk_full(&self) -> bool {
        self.buffer.len() >= self.full_bytes
    }

    /// Takes the recorded bytes as a chunk for [`crate::LogWriter::push`]; empty when there are none.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        if self.buffer.is_empty() {
            return Vec::new();
        }
        self.sequence += 1;
        // The slack keeps the last event before the chunk is taken from growing the buffer.
        let fresh =
            self.spare.take().unwrap_or_else(|| Vec::with_capacity(self.full_bytes + (self.full_bytes >> 4)));
        std::mem::replace(&mut self.buffer, fresh)
    }

    /// Returns a used buffer, so that the next [`Recorder::take`] need not allocate.
    pub fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        if (self.full_bytes..=4 * self.full_bytes).contains(&buffer.capacity()) {
            self.spare = Some(buffer);
        }
    }

    /// Writes a tag, the time, and the number of a request that was offered before.
    fn put_later(&mut self, tag: u8, number: u64, now: Time) {
        let mut out = StackBytes::new(tag);
        self.begin_chunk_if_new();
        out.varint(zigzag(self.last_time.as_nanos(), now.as_nanos()));
        out.varint(zigzag(self.next_number, number));
        self.last_time = now;
        self.buffer.extend_from_slice(out.as_slice());
    }

    /// Counts an assignment in this phase.
    #[inline]
    fn counts(&mut self, backend: BackendId, phase: Phase) {
        if phase.is_load() {
            if let Some(load) = self.loads.get_mut(backend.index()) {
                load.assign();
            }
        } else if phase == Phase::Connecting
            && let Some(run) = &mut self.run
        {
            run.reserved += 1;
        }
    }

    /// Undoes [`Self::counts`].
    #[inline]
    fn uncounts(&mut self, backend: BackendId, phase: Phase) {
        if phase.is_load() {
            if let Some(load) = self.loads.get_mut(backend.index()) {
                load.complete();
            }
        } else if phase == Phase::Connecting
            && let Some(run) = &mut self.run
        {
            run.reserved = run.reserved.saturating_sub(1);
        }
    }

    /// Writes a tag and the time.
    fn put(&mut self, out: &mut StackBytes, now: Time) {
        self.begin_chunk_if_new();
        out.varint(zigzag(self.last_time.as_nanos(), now.as_nanos()));
        self.last_time = now;
        self.buffer.extend_from_slice(out.as_slice());
    }

    fn entry(&mut self, backend: BackendId) -> Option<&mut BackendEntry> {
        self.run.as_mut()?.backends.get_mut(backend.index())
    }
}

impl Witness for Recorder {
    #[inline]
    fn offered(&mut self, request: &Request, options: &OfferOptions, decision: Decision, now: Time) {
        self.begin_chunk_if_new();
        let mut tag = code::OFFER | code::decision_code(decision) << code::OFFER_DECISION_SHIFT;
        let mut out = StackBytes::new(tag);
        out.varint(zigzag(self.last_time.as_nanos(), now.as_nanos()));
        if request.number != self.next_number {
            tag |= code::OFFER_NUMBER;
            out.varint(zigzag(self.next_number, request.number));
        }
        out.word(request.target.0);
        if request.client != self.last_client {
            tag |= code::OFFER_CLIENT;
            out.word(request.client);
        }
        let flags = request_code::flags(request, options);
        if flags != 0 {
            tag |= code::OFFER_MORE;
            request_code::put_usual(&mut out, request, flags);
        }
        match decision {
            Decision::Assign(b) => {
                out.varint(u64::from(b.0));
                self.recent.assigned(request.number, request.target, b, now);
                self.counts(b, options.begins);
            }
            Decision::Poll(candidates) => {
                out.byte(candidates.as_slice().len() as u8);
                candidates.as_slice().iter().for_each(|b| out.varint(u64::from(b.0)));
            }
            Decision::Wait | Decision::Reject => {}
        }
        out.set_tag(tag);
        self.last_time = now;
        self.last_client = request.client;
        if request.number >= self.next_number {
            self.next_number = request.number.wrapping_add(1);
        }
        self.buffer.extend_from_slice(out.as_slice());
        if flags >= code::MORE_FEATURES {
            request_code::put_rare(&mut self.buffer, request, options);
        }
    }

    fn answered(&mut self, of: &WaitingRequest, answers: &[PollAnswer], decision: Decision, now: Time) {
        self.put_later(code::ANSWERED, of.request.number, now);
        code::put_decided(&mut self.buffer, decision);
        put_varint(&mut self.buffer, answers.len() as u64);
        for answer in answers {
            code::put_load(&mut self.buffer, answer.backend, answer.load, answer.latency);
            self.has_told(answer.backend, answer.load);
        }
        if let Decision::Assign(b) = decision {
            self.counts(b, of.options.begins);
        }
    }

    fn started(&mut self, waited: &WaitingRequest, decision: Decision, now: Time) {
        self.put_later(code::STARTED, waited.request.number, now);
        code::put_decided(&mut self.buffer, decision);
        if let Decision::Assign(b) = decision {
            self.counts(b, waited.options.begins);
        }
    }

    fn gave_up(&mut self, number: u64, now: Time) {
        self.put_later(code::GAVE_UP, number, now);
    }

    fn moved(&mut self, assigned: &Assigned, from: Phase, to: Option<Phase>, own: bool, now: Time) {
        self.put_later(code::MOVED, assigned.number, now);
        put_varint(&mut self.buffer, u64::from(assigned.backend.0));
        self.buffer.push(request_code::phase_code(from));
        self.buffer.push(u8::from(own) | u8::from(to.is_some()) << 1);
        self.uncounts(assigned.backend, from);
        if let Some(to) = to {
            self.buffer.push(request_code::phase_code(to));
            self.counts(assigned.backend, to);
        }
    }

    fn taken(&mut self, assigned: &Assigned, request: &Request, now: Time) {
        self.put_later(code::TAKEN, assigned.number, now);
        let waiting = WaitingRequest { request: request.clone(), options: OfferOptions::PLAIN };
        request_code::put_waiting(&mut self.buffer, &waiting);
    }

    #[inline]
    fn completed(&mut self, assigned: &Assigned, completion: &Completion, now: Time) {
        self.begin_chunk_if_new();
        let number = assigned.number;
        let mut tag = code::DONE;
        let mut out = StackBytes::new(tag);
        out.varint(zigzag(self.last_time.as_nanos(), now.as_nanos()));
        out.varint(zigzag(self.next_number, number));
        let known = self.recent.find(number);
        let known = known.filter(|p| p.target == completion.target && p.backend == completion.backend);
        if known.is_none() {
            tag |= code::DONE_WHAT;
            out.word(completion.target.0);
            out.varint(u64::from(completion.backend.0));
        }
        if known.is_none_or(|p| {
            now.as_nanos().wrapping_sub(p.at.as_nanos()) != completion.response_time.as_nanos()
        }) {
            tag |= code::DONE_TIME;
            out.varint(completion.response_time.as_nanos());
        }
        if let Some(size_bytes) = completion.size_bytes {
            tag |= code::DONE_SIZE;
            out.varint(size_bytes);
        }
        if completion.outcome == Outcome::Failed {
            tag |= code::DONE_FAILED;
        }
        if assigned.phase() != Phase::Active {
            tag |= code::DONE_PHASE;
            out.byte(request_code::phase_code(assigned.phase()));
        }
        if let Some(hit) = completion.hit {
            tag |= code::DONE_HIT;
            out.byte(u8::from(hit));
        }
        out.set_tag(tag);
        self.last_time = now;
        self.buffer.extend_from_slice(out.as_slice());
        self.uncounts(completion.backend, assigned.phase());
    }

    fn completed_foreign(&mut self, assigned: &Assigned, _: &Completion, now: Time) {
        self.put(&mut StackBytes::new(code::FOREIGN), now);
        put_varint(&mut self.buffer, u64::from(assigned.backend.0));
        self.buffer.push(request_code::phase_code(assigned.phase()));
        self.uncounts(assigned.backend, assigned.phase());
    }

    fn stayed(&mut self, assigned: &Assigned, now: Time) {
        self.put(&mut StackBytes::new(code::STAYED), now);
        put_varint(&mut self.buffer, u64::from(assigned.backend.0));
        self.counts(assigned.backend, assigned.phase());
    }

    fn reported(&mut self, report: &LoadReport, now: Time) {
        self.put(&mut StackBytes::new(code::REPORTED), now);
        code::put_load(&mut self.buffer, report.backend, report.load, report.latency);
        self.has_told(report.backend, report.load);
    }

    fn sniffed(&mut self, sniffed: &SniffedRequest, now: Time) {
        self.put(&mut StackBytes::new(code::SNIFFED), now);
        sniffed_code::put_sniffed(&mut self.buffer, sniffed);
    }

    fn host_metrics(&mut self, metrics: &HostMetrics, now: Time) {
        self.put(&mut StackBytes::new(code::HOST_METRICS), now);
        sniffed_code::put_metrics(&mut self.buffer, metrics);
    }

    fn shared(&mut self, sum: &[(u64, u64)], now: Time) {
        self.put(&mut StackBytes::new(code::SHARED), now);
        put_varint(&mut self.buffer, sum.len() as u64);
        for &(key, amount) in sum {
            put_varint(&mut self.buffer, key);
            put_varint(&mut self.buffer, amount);
        }
    }

    fn health(&mut self, backend: BackendId, health: Health, now: Time) {
        self.put(&mut StackBytes::new(code::HEALTH), now);
        put_varint(&mut self.buffer, u64::from(backend.0));
        self.buffer.push(code::health_code(health));
        self.note(backend, |entry| entry.health = health);
    }

    fn weight(&mut self, backend: BackendId, weight: Weight, now: Time) {
        self.put(&mut StackBytes::new(code::WEIGHT), now);
        put_varint(&mut self.buffer, u64::from(backend.0));
        put_varint(&mut self.buffer, u64::from(weight.steps()));
        self.note(backend, |entry| entry.weight = weight);
    }

    fn most_requests(&mut self, backend: BackendId, most: Option<u32>, now: Time) {
        self.put(&mut StackBytes::new(code::MOST_REQUESTS), now);
        put_varint(&mut self.buffer, u64::from(backend.0));
        header_code::put_most(&mut self.buffer, most);
        self.note(backend, |entry| entry.most = most);
    }

    fn joined(&mut self, backend: BackendId, name: &str, key: u64, weight: Weight, now: Time) {
        self.put(&mut StackBytes::new(code::JOINED), now);
        put_varint(&mut self.buffer, u64::from(backend.0));
        put_text(&mut self.buffer, name);
        self.buffer.extend_from_slice(&key.to_le_bytes());
        put_varint(&mut self.buffer, u64::from(weight.steps()));
        self.has_joined(backend, BackendEntry::joined(name, key, weight));
    }

    fn left(&mut self, backend: BackendId, now: Time) {
        self.put(&mut StackBytes::new(code::LEFT), now);
        put_varint(&mut self.buffer, u64::from(backend.0));
        self.has_left(backend);
    }

    fn admission(&mut self, admission: AdmissionControl, now: Time) {
        self.put(&mut StackBytes::new(code::ADMISSION), now);
        request_code::put_admission(&mut self.buffer, admission);
        if let Some(run) = &mut self.run {
            run.admission = admission;
        }
    }

    fn ticked(&mut self, now: Time) {
        self.put(&mut StackBytes::new(code::TICKED), now);
    }
}
