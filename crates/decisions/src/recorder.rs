//! Turns events into bytes: a few nanoseconds each, no allocation but for the buffer, no input or output.

use plimsoll_policy::{
    BackendId, Completion, Decision, Health, Kind, Outcome, PollAnswer, Request, Time, Weight,
};

use crate::bytes::{Scratch, put_text, put_varint, zigzag};
use crate::code::{self, Recent};
use crate::event::{BackendEntry, RunHeader};

/// Records every input of a policy, under the lock that guards the policy.
///
/// Whoever holds it takes the buffer away ([`Recorder::take`]) when it has grown to what a chunk should be, and gives
/// it to a [`crate::LogWriter`]; each such chunk can be read on its own.
pub struct Recorder {
    buffer: Vec<u8>,
    spare: Option<Vec<u8>>,
    /// Of the next chunk, or of the one begun.
    sequence: u64,
    last_time: Time,
    next_number: u64,
    last_client: u64,
    recent: Recent,
    /// The run as it is now, but for the loads.
    run: Option<RunHeader>,
    loads: Vec<u32>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// What a chunk should be, in bytes: large enough that its head does not matter, small enough to allocate and to
    /// lose.
    pub const CHUNK_BYTES: usize = 64 << 10;

    /// A recorder that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buffer: Vec::new(),
            spare: None,
            sequence: 0,
            last_time: Time::ZERO,
            next_number: 0,
            last_client: 0,
            recent: Recent::new(),
            run: None,
            loads: Vec::new(),
        }
    }

    /// A fresh policy object begins: at the start, or because another policy was configured. Of more than 65,535
    /// back-ends the rest is left out; a cluster holds no more.
    pub fn run_started(&mut self, header: &RunHeader, now: Time) {
        self.put(&mut Scratch::new(code::RUN), now);
        let mut header = header.clone();
        header.backends.truncate(usize::from(u16::MAX));
        self.loads = header.backends.iter().map(|b| b.load).collect();
        code::put_header(&mut self.buffer, &header, &self.loads);
        self.run = Some(header);
    }

    /// The front-end was asked about a request; `Assign` has been counted.
    #[inline]
    pub fn offered(&mut self, request: &Request, decision: Decision, now: Time) {
        self.offer(code::OFFER, request, decision, now);
    }

    /// The policy was given the answers to its poll.
    pub fn polled(&mut self, request: &Request, answers: &[PollAnswer], decision: Decision, now: Time) {
        self.offer(code::OFFER | code::OFFER_POLLED, request, decision, now);
        put_varint(&mut self.buffer, answers.len() as u64);
        for answer in answers {
            put_varint(&mut self.buffer, u64::from(answer.backend.0));
            put_varint(&mut self.buffer, u64::from(answer.load));
        }
    }

    /// The request of this number ended.
    #[inline]
    pub fn completed(&mut self, number: u64, completion: &Completion, now: Time) {
        self.begin_chunk_if_new();
        let mut tag = code::DONE;
        let mut out = Scratch::new(tag);
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
        out.set_tag(tag);
        self.last_time = now;
        self.buffer.extend_from_slice(out.as_slice());
        self.ended(completion.backend);
    }

    /// A back-end has a further request on its connection, about which the policy is not asked; its end is
    /// [`Recorder::completed_foreign`].
    pub fn stayed(&mut self, backend: BackendId, now: Time) {
        self.put(&mut Scratch::new(code::STAYED), now);
        put_varint(&mut self.buffer, u64::from(backend.0));
        if let Some(load) = self.loads.get_mut(backend.index()) {
            *load = load.saturating_add(1);
        }
    }

    /// A request that the present policy did not assign ended.
    pub fn completed_foreign(&mut self, backend: BackendId, now: Time) {
        self.put(&mut Scratch::new(code::FOREIGN), now);
        put_varint(&mut self.buffer, u64::from(backend.0));
        self.ended(backend);
    }

    /// The health of a back-end is now this.
    pub fn health(&mut self, backend: BackendId, health: Health, now: Time) {
        self.put(&mut Scratch::new(code::HEALTH), now);
        put_varint(&mut self.buffer, u64::from(backend.0));
        self.buffer.push(code::health_code(health));
        if let Some(entry) = self.entry(backend) {
            entry.health = health;
        }
    }

    /// The weight of a back-end is now this.
    pub fn weight(&mut self, backend: BackendId, weight: Weight, now: Time) {
        self.put(&mut Scratch::new(code::WEIGHT), now);
        put_varint(&mut self.buffer, u64::from(backend.0));
        put_varint(&mut self.buffer, u64::from(weight.steps()));
        if let Some(entry) = self.entry(backend) {
            entry.weight = weight;
        }
    }

    /// A back-end joined and got this index.
    pub fn joined(&mut self, backend: BackendId, name: &str, key: u64, weight: Weight, now: Time) {
        self.put(&mut Scratch::new(code::JOINED), now);
        put_varint(&mut self.buffer, u64::from(backend.0));
        put_text(&mut self.buffer, name);
        self.buffer.extend_from_slice(&key.to_le_bytes());
        put_varint(&mut self.buffer, u64::from(weight.steps()));
        if let Some(run) = self.run.as_mut().filter(|run| run.backends.len() < usize::from(u16::MAX)) {
            run.backends.push(BackendEntry {
                name: name.to_owned(),
                key,
                weight,
                health: Health::Up,
                load: 0,
            });
            self.loads.push(0);
        }
    }

    /// The policy's tick.
    pub fn ticked(&mut self, now: Time) {
        self.put(&mut Scratch::new(code::TICKED), now);
    }

    /// Bytes recorded and not taken.
    #[must_use]
    #[inline]
    pub fn buffered_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Takes what was recorded, as a chunk for [`crate::LogWriter::push`]; empty when there is nothing.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        if self.buffer.is_empty() {
            return Vec::new();
        }
        self.sequence += 1;
        // The slack keeps the last event before the chunk is taken from growing the buffer.
        let fresh = self
            .spare
            .take()
            .unwrap_or_else(|| Vec::with_capacity(Self::CHUNK_BYTES + (Self::CHUNK_BYTES >> 4)));
        std::mem::replace(&mut self.buffer, fresh)
    }

    /// Gives back a buffer that is no longer needed, so that the next [`Recorder::take`] need not allocate.
    pub fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        if buffer.capacity() >= Self::CHUNK_BYTES && buffer.capacity() <= 4 * Self::CHUNK_BYTES {
            self.spare = Some(buffer);
        }
    }

    #[inline]
    fn offer(&mut self, mut tag: u8, request: &Request, decision: Decision, now: Time) {
        self.begin_chunk_if_new();
        let mut out = Scratch::new(tag);
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
        let dynamic = request.kind == Kind::Dynamic;
        if request.size_bytes.is_some() || dynamic || request.class != 0 {
            tag |= code::OFFER_MORE;
            put_more(&mut out, request);
        }
        let decided = match decision {
            Decision::Assign(b) => {
                out.varint(u64::from(b.0));
                self.recent.assigned(request.number, request.target, b, now);
                if let Some(load) = self.loads.get_mut(b.index()) {
                    *load = load.saturating_add(1);
                }
                0
            }
            Decision::Poll(candidates) => {
                out.byte(candidates.as_slice().len() as u8);
                for b in candidates.as_slice() {
                    out.varint(u64::from(b.0));
                }
                1
            }
            Decision::Wait => 2,
            Decision::Reject => 3,
        };
        out.set_tag(tag | decided << code::OFFER_DECISION_SHIFT);
        self.last_time = now;
        self.last_client = request.client;
        if request.number >= self.next_number {
            self.next_number = request.number.wrapping_add(1);
        }
        self.buffer.extend_from_slice(out.as_slice());
    }

    /// Writes a tag and the time.
    fn put(&mut self, out: &mut Scratch, now: Time) {
        self.begin_chunk_if_new();
        out.varint(zigzag(self.last_time.as_nanos(), now.as_nanos()));
        self.last_time = now;
        self.buffer.extend_from_slice(out.as_slice());
    }

    #[inline]
    fn begin_chunk_if_new(&mut self) {
        if self.buffer.is_empty() {
            self.begin_chunk();
        }
    }

    #[cold]
    fn begin_chunk(&mut self) {
        self.recent.begin_chunk(self.sequence);
        self.last_client = 0;
        let out = &mut self.buffer;
        for value in [self.sequence, self.last_time.as_nanos(), self.next_number] {
            put_varint(out, value);
        }
        out.push(u8::from(self.run.is_some()));
        if let Some(run) = &self.run {
            code::put_header(out, run, &self.loads);
        }
    }

    fn entry(&mut self, backend: BackendId) -> Option<&mut BackendEntry> {
        self.run.as_mut()?.backends.get_mut(backend.index())
    }

    #[inline]
    fn ended(&mut self, backend: BackendId) {
        if let Some(load) = self.loads.get_mut(backend.index()) {
            *load = load.saturating_sub(1);
        }
    }
}

fn put_more(out: &mut Scratch, request: &Request) {
    let mut flags = 0;
    flags |= if request.size_bytes.is_some() { code::MORE_SIZE } else { 0 };
    flags |= if request.kind == Kind::Dynamic { code::MORE_DYNAMIC } else { 0 };
    flags |= if request.class == 0 { 0 } else { code::MORE_CLASS };
    out.byte(flags);
    if let Some(size_bytes) = request.size_bytes {
        out.varint(size_bytes);
    }
    if request.class != 0 {
        out.varint(u64::from(request.class));
    }
}
