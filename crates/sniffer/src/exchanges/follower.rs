//! One connection: the requests that wait for their answers, and the answer that is under way.

use super::answer_reader::AnswerReader;
use super::exchange::SeenExchange;
use super::request_reader::RequestReader;
use super::segment::{Ends, Segment};
use super::waiting::{UnansweredRequest, WaitingRequests};
use crate::request_start::RequestStart;

/// Longest target that is kept.
const MOST_TARGET_BYTES: usize = 8 << 10;

/// What is known of one connection.
#[derive(Debug)]
pub(super) struct Follower {
    ends: Ends,
    number: u64,
    pub(super) last_ns: u64,
    requests: RequestReader,
    answers: AnswerReader,
    waiting: WaitingRequests,
    /// How much of the answers the client had received at its last request.
    asked_at: Option<u64>,
    /// Whether the client has ever sent a request before the answer to the one before was over.
    sends_ahead: bool,
    over: [bool; 2],
}

impl Follower {
    pub(super) fn new(ends: Ends, number: u64) -> Self {
        Self {
            ends,
            number,
            last_ns: 0,
            requests: RequestReader::default(),
            answers: AnswerReader::new(),
            waiting: WaitingRequests::default(),
            asked_at: None,
            sends_ahead: false,
            over: [false; 2],
        }
    }

    /// Takes a segment in, and passes on the exchanges that are over.
    pub(super) fn take(&mut self, segment: &Segment<'_>, done: &mut dyn FnMut(SeenExchange)) {
        self.last_ns = segment.at_ns;
        if segment.data_bytes > 0 && !segment.syn {
            match segment.from_client {
                true => self.requests(segment, done),
                false => self.answers.read(segment, &mut self.waiting, done),
            }
        }
        self.over[usize::from(segment.from_client)] |= segment.end;
    }

    /// Whether both sides have ended it.
    pub(super) fn is_over(&self) -> bool {
        self.over == [true; 2]
    }

    fn requests(&mut self, segment: &Segment<'_>, done: &mut dyn FnMut(SeenExchange)) {
        let Self { ends, number, requests, answers, waiting, asked_at, sends_ahead, .. } = self;
        let received = answers.received(segment.ack);
        *sends_ahead |= answers.is_unexpected();
        requests.read(segment, &mut |start, gap| {
            *sends_ahead |= *asked_at == Some(received) || answers.owes(received, waiting);
            if !*sends_ahead {
                // It has waited for what it asked for before, so that nothing is left of that.
                // If another one was lost, its answer may have passed behind the one under way.
                answers.waited(received, gap.lost, waiting, done);
            }
            *asked_at = Some(received);
            let server_at = answers.position();
            let request = UnansweredRequest {
                is_head: start.method == b"HEAD",
                after_gap: gap.missed && *sends_ahead,
                server_at,
                exchange: Some(Box::new(asked(*ends, *number, start, segment.at_ns))),
            };
            waiting.push(request, done);
        });
        self.sends_ahead |= self.requests.has_followed();
        self.waiting.more_behind = self.requests.has_missed() && self.sends_ahead;
    }

    /// Passes on everything that is left.
    pub(super) fn close(&mut self, done: &mut dyn FnMut(SeenExchange)) {
        self.answers.close(&mut self.waiting, done);
    }
}

fn asked(ends: Ends, connection: u64, start: &RequestStart<'_>, at_ns: u64) -> SeenExchange {
    let target = start.path_and_query;
    SeenExchange {
        at_ns,
        ends,
        connection,
        method: start.method.into(),
        target: target[..target.len().min(MOST_TARGET_BYTES)].into(),
        http11: start.http11,
        status: None,
        size_bytes: None,
        unread: false,
        first_byte_ns: None,
    }
}
