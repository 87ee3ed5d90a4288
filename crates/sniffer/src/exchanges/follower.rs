//! One connection: the requests that wait for their answers, and the answer that is under way.

use std::collections::VecDeque;

use super::answer_start::{AnswerStart, BodyLength, content_length};
use super::exchange::SeenExchange;
use super::segment::{Ends, Segment};
use crate::request_start::RequestStart;

/// Most requests of a connection that wait for answers.
const MOST_WAITING: usize = 64;
/// Longest target that is kept.
const MOST_TARGET_BYTES: usize = 8 << 10;

/// A direction of the stream: how far it has come, without the wrap of 32 bits.
#[derive(Debug, Clone, Copy, Default)]
struct Stream {
    /// Position after the last byte that was seen, and its sequence number.
    reached: Option<(u64, u32)>,
}

impl Stream {
    /// The position of a segment, and moves on to its end. `None` for one that came before.
    fn advance(&mut self, seq: u32, data_bytes: u32) -> Option<u64> {
        let (reached, next) = self.reached.unwrap_or((1 << 40, seq));
        let ahead = i64::from(seq.wrapping_sub(next).cast_signed());
        let at = reached.saturating_add_signed(ahead);
        let end = at + u64::from(data_bytes);
        if self.reached.is_some() && end <= reached {
            return None;
        }
        self.reached = Some((end, seq.wrapping_add(data_bytes)));
        Some(at)
    }

    fn position(self) -> u64 {
        self.reached.map_or(0, |(at, _)| at)
    }
}

/// An answer of which a part has been seen.
#[derive(Debug)]
struct Answering {
    exchange: SeenExchange,
    body_at: u64,
    body: BodyLength,
}

/// Whether a request's first line may begin so.
fn may_begin(data: &[u8]) -> bool {
    data.first().is_some_and(u8::is_ascii_uppercase) && memchr::memchr(b'\n', data).is_none()
}

/// What is known of one connection.
#[derive(Debug)]
pub(super) struct Follower {
    ends: Ends,
    number: u64,
    pub(super) last_ns: u64,
    client: Stream,
    server: Stream,
    /// Up to where what the client sends is the body of a request.
    body_until: u64,
    /// The beginning of a request whose first line has not come as a whole.
    begun: Box<[u8]>,
    waiting: VecDeque<SeenExchange>,
    answering: Option<Answering>,
    over: [bool; 2],
}

impl Follower {
    pub(super) fn new(ends: Ends, number: u64) -> Self {
        Self {
            ends,
            number,
            last_ns: 0,
            client: Stream::default(),
            server: Stream::default(),
            body_until: 0,
            begun: Box::default(),
            waiting: VecDeque::new(),
            answering: None,
            over: [false; 2],
        }
    }

    /// Takes a segment in, and passes on the exchanges that are over.
    pub(super) fn take(&mut self, segment: &Segment<'_>, done: &mut dyn FnMut(SeenExchange)) {
        self.last_ns = segment.at_ns;
        if segment.data_bytes > 0 && !segment.syn {
            match segment.from_client {
                true => self.requests(segment, done),
                false => self.answers(segment, done),
            }
        }
        self.over[usize::from(segment.from_client)] |= segment.end;
    }

    /// Whether both sides have ended it.
    pub(super) fn is_over(&self) -> bool {
        self.over == [true; 2]
    }

    fn requests(&mut self, segment: &Segment<'_>, done: &mut dyn FnMut(SeenExchange)) {
        let before = self.client.position();
        let Some(at) = self.client.advance(segment.seq, segment.data_bytes) else { return };
        let begun = std::mem::take(&mut self.begun);
        // Some clients write a line in pieces.
        let joined = if at == before { [&*begun, segment.data].concat() } else { segment.data.to_vec() };
        let at = if at == before { at - begun.len() as u64 } else { at };
        let mut from = usize::try_from(self.body_until.saturating_sub(at)).unwrap_or(usize::MAX);
        while let Some(data) = joined.get(from..) {
            let Some(start) = RequestStart::read(data) else {
                let is_whole = segment.data.len() == segment.data_bytes as usize;
                if is_whole && data.len() < MOST_TARGET_BYTES && may_begin(data) {
                    self.begun = data.into();
                }
                return;
            };
            // The client has waited for what it asked for before, unless it sends requests ahead.
            if self.waiting.is_empty()
                && self.answering.as_ref().is_some_and(|answer| answer.body == BodyLength::Told)
            {
                self.finish(done);
            }
            self.waiting.push_back(self.asked(&start, segment.at_ns));
            if self.waiting.len() > MOST_WAITING
                && let Some(oldest) = self.waiting.pop_front()
            {
                done(oldest);
            }
            let Some(head) = memchr::memmem::find(data, b"\r\n\r\n") else { return };
            let body = content_length(&data[..head + 2]).unwrap_or(0);
            self.body_until = (at + from as u64 + head as u64 + 4).saturating_add(body);
            from = usize::try_from(self.body_until - at).unwrap_or(usize::MAX);
        }
    }

    fn asked(&self, start: &RequestStart<'_>, at_ns: u64) -> SeenExchange {
        let target = start.path_and_query;
        SeenExchange {
            at_ns,
            ends: self.ends,
            connection: self.number,
            method: start.method.into(),
            target: target[..target.len().min(MOST_TARGET_BYTES)].into(),
            http11: start.http11,
            status: None,
            size_bytes: None,
            first_byte_ns: None,
        }
    }

    fn answers(&mut self, segment: &Segment<'_>, done: &mut dyn FnMut(SeenExchange)) {
        let before = self.server.position();
        let Some(at) = self.server.advance(segment.seq, segment.data_bytes) else { return };
        let mut from = 0;
        loop {
            if let Some(answer) = &self.answering {
                match answer.body {
                    BodyLength::Known(bytes) => {
                        let end = answer.body_at.saturating_add(bytes);
                        if end > at + u64::from(segment.data_bytes) {
                            return;
                        }
                        from = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
                        self.finish(done);
                    }
                    // Its end is where the next answer begins.
                    BodyLength::Told if from == 0 && segment.data.starts_with(b"HTTP/1.") => {
                        self.finish_at(before.min(at), done);
                    }
                    BodyLength::Told => return,
                }
            }
            let Some(data) = segment.data.get(from..) else { return };
            let to_head = self.waiting.front().is_some_and(|asked| asked.method[..] == *b"HEAD");
            let Some(start) = AnswerStart::read(data, to_head) else { return };
            let head_bytes = start.head_bytes.unwrap_or(data.len());
            if start.is_interim() {
                from += head_bytes;
                continue;
            }
            let Some(mut exchange) = self.waiting.pop_front() else { return };
            exchange.status = Some(start.status);
            exchange.first_byte_ns = Some(segment.at_ns.saturating_sub(exchange.at_ns));
            let body_at = at + from as u64 + head_bytes as u64;
            self.answering = Some(Answering { exchange, body_at, body: start.body });
            if start.body == BodyLength::Told {
                return;
            }
        }
    }

    /// Passes on the answer under way, with what has been seen of it.
    fn finish(&mut self, done: &mut dyn FnMut(SeenExchange)) {
        self.finish_at(self.server.position(), done);
    }

    fn finish_at(&mut self, end: u64, done: &mut dyn FnMut(SeenExchange)) {
        let Some(Answering { mut exchange, body_at, body }) = self.answering.take() else { return };
        let seen = end.saturating_sub(body_at);
        exchange.size_bytes = Some(match body {
            BodyLength::Known(bytes) => bytes.min(seen),
            BodyLength::Told => seen,
        });
        done(exchange);
    }

    /// Passes on everything that is left.
    pub(super) fn close(&mut self, done: &mut dyn FnMut(SeenExchange)) {
        self.finish(done);
        self.waiting.drain(..).for_each(done);
    }
}
