//! Turns the bytes of one chunk back into events.

use plimsoll_policy::{
    BackendId, Completion, Decision, LoadReport, Nanos, Outcome, Phase, PollAnswer, Request, TargetId, Time,
};

use crate::bytes::{ByteCursor, Malformed, unzigzag};
use crate::code::{self, Recent};
use crate::event::{Event, RunHeader, What};
use crate::header_code::{self, HeaderForm};
use crate::request_code;
use crate::sniffed_code;

/// The head of a chunk.
pub(crate) struct ChunkStart {
    /// Its number in the recorder's sequence, from 0.
    pub(crate) sequence: u64,
    /// The time of the event before.
    pub(crate) now: Time,
    /// The run as it was at the start of the chunk; `None` before the first run.
    pub(crate) run: Option<RunHeader>,
}

/// Decodes chunk after chunk.
pub(crate) struct EventDecoder {
    bytes: Vec<u8>,
    at: usize,
    now: Time,
    next_number: u64,
    last_client: u64,
    recent: Recent,
}

impl EventDecoder {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            at: 0,
            now: Time::ZERO,
            next_number: 0,
            last_client: 0,
            recent: Recent::new(),
        }
    }

    /// Where the next event starts in its chunk.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Begins a chunk.
    pub(crate) fn begin(&mut self, bytes: Vec<u8>) -> Result<ChunkStart, Malformed> {
        self.at = bytes.len();
        let mut cursor = ByteCursor::new(&bytes, 0);
        let sequence = cursor.varint()?;
        self.now = Time::from_nanos(cursor.varint()?);
        self.next_number = cursor.varint()?;
        let run = match cursor.byte()? {
            0 => None,
            1 => Some(header_code::read_header(&mut cursor, HeaderForm::Plain)?),
            2 => Some(header_code::read_header(&mut cursor, HeaderForm::WithClasses)?),
            3 => Some(header_code::read_header(&mut cursor, HeaderForm::WithLimits)?),
            _ => return Err(Malformed("it does not start like a chunk")),
        };
        self.at = cursor.at();
        self.bytes = bytes;
        self.last_client = 0;
        self.recent.begin_chunk(sequence);
        Ok(ChunkStart { sequence, now: self.now, run })
    }

    /// The next event of the chunk; `None` at its end.
    pub(crate) fn event(&mut self) -> Result<Option<Event>, Malformed> {
        if self.at >= self.bytes.len() {
            return Ok(None);
        }
        let bytes = std::mem::take(&mut self.bytes);
        let mut cursor = ByteCursor::new(&bytes, self.at);
        let event = self.read(&mut cursor);
        self.at = cursor.at();
        self.bytes = bytes;
        event.map(Some)
    }

    fn read(&mut self, cursor: &mut ByteCursor<'_>) -> Result<Event, Malformed> {
        let tag = cursor.byte()?;
        self.now = Time::from_nanos(unzigzag(self.now.as_nanos(), cursor.varint()?));
        let what = if tag & code::OFFER != 0 {
            self.offer(tag, cursor)?
        } else if tag & code::DONE != 0 {
            self.completed(tag, cursor)?
        } else if matches!(tag, code::ANSWERED..=code::TAKEN) {
            self.later(tag, cursor)?
        } else {
            rare(tag, cursor)?
        };
        Ok(Event { now: self.now, what })
    }

    fn offer(&mut self, tag: u8, cursor: &mut ByteCursor<'_>) -> Result<What, Malformed> {
        let mut number = self.next_number;
        if tag & code::OFFER_NUMBER != 0 {
            number = unzigzag(number, cursor.varint()?);
        }
        let mut request = Request::of(number, TargetId(cursor.word()?));
        request.client = if tag & code::OFFER_CLIENT == 0 { self.last_client } else { cursor.word()? };
        let more = tag & code::OFFER_MORE != 0;
        let flags = if more { request_code::read_usual(&mut request, cursor)? } else { 0 };
        let decision = code::read_decision(tag >> code::OFFER_DECISION_SHIFT & 3, cursor)?;
        let options = request_code::read_rare(&mut request, flags, cursor)?;
        if let Decision::Assign(b) = decision {
            self.recent.assigned(number, request.target, b, self.now);
        }
        self.last_client = request.client;
        if number >= self.next_number {
            self.next_number = number.wrapping_add(1);
        }
        Ok(What::Offered { request, options, decision })
    }

    /// Reads a request number, stored as difference to the next one.
    fn number(&self, cursor: &mut ByteCursor<'_>) -> Result<u64, Malformed> {
        Ok(unzigzag(self.next_number, cursor.varint()?))
    }

    /// Decodes events about requests offered before.
    fn later(&self, tag: u8, cursor: &mut ByteCursor<'_>) -> Result<What, Malformed> {
        let number = self.number(cursor)?;
        Ok(match tag {
            code::ANSWERED => {
                let decision = code::read_decision(cursor.byte()?, cursor)?;
                let mut answers = Vec::new();
                for _ in 0..cursor.varint()? {
                    let (backend, load, latency) = code::read_load(cursor)?;
                    answers.push(PollAnswer { backend, load, latency });
                }
                What::Answered { number, answers, decision }
            }
            code::STARTED => What::Started { number, decision: code::read_decision(cursor.byte()?, cursor)? },
            code::GAVE_UP => What::GaveUp { number },
            code::MOVED => {
                let backend = BackendId(cursor.small()?);
                let from = request_code::read_phase(cursor)?;
                let (own, there) = match cursor.byte()? {
                    bits @ 0..=3 => (bits & 1 != 0, bits & 2 != 0),
                    _ => return Err(Malformed("a phase is told in no known way")),
                };
                let to = if there { Some(request_code::read_phase(cursor)?) } else { None };
                What::Moved { number, backend, from, to, own }
            }
            _ => What::Taken { number, request: request_code::read_waiting(cursor)?.request },
        })
    }

    fn completed(&mut self, tag: u8, cursor: &mut ByteCursor<'_>) -> Result<What, Malformed> {
        let number = unzigzag(self.next_number, cursor.varint()?);
        let unknown = Malformed("a request ends that the chunk does not know");
        let (target, backend) = if tag & code::DONE_WHAT == 0 {
            let place = self.recent.find(number).ok_or(unknown)?;
            (place.target, place.backend)
        } else {
            (TargetId(cursor.word()?), BackendId(cursor.small()?))
        };
        let response_ns = if tag & code::DONE_TIME == 0 {
            let place = self.recent.find(number).ok_or(unknown)?;
            self.now.as_nanos().wrapping_sub(place.at.as_nanos())
        } else {
            cursor.varint()?
        };
        let size_bytes = if tag & code::DONE_SIZE == 0 { None } else { Some(cursor.varint()?) };
        let outcome = if tag & code::DONE_FAILED == 0 { Outcome::Completed } else { Outcome::Failed };
        let response_time = Nanos::new(response_ns);
        let there = tag & code::DONE_PHASE != 0;
        let phase = if there { request_code::read_phase(cursor)? } else { Phase::Active };
        let hit = if tag & code::DONE_HIT == 0 { None } else { Some(read_hit(cursor)?) };
        Ok(What::Completed {
            number,
            phase,
            completion: Completion { target, backend, outcome, size_bytes, hit, response_time, class: 0 },
        })
    }
}

fn read_hit(cursor: &mut ByteCursor<'_>) -> Result<bool, Malformed> {
    match cursor.byte()? {
        told @ 0..=1 => Ok(told == 1),
        _ => Err(Malformed("a hit is told in no known way")),
    }
}

fn rare(tag: u8, cursor: &mut ByteCursor<'_>) -> Result<What, Malformed> {
    Ok(match tag {
        code::RUN => What::Run(Box::new(header_code::read_header(cursor, HeaderForm::Plain)?)),
        code::RUN_WITH_CLASSES => {
            What::Run(Box::new(header_code::read_header(cursor, HeaderForm::WithClasses)?))
        }
        code::RUN_WITH_LIMITS => {
            What::Run(Box::new(header_code::read_header(cursor, HeaderForm::WithLimits)?))
        }
        code::MOST_REQUESTS => {
            What::MostRequests { backend: BackendId(cursor.small()?), most: header_code::read_most(cursor)? }
        }
        code::FOREIGN => What::CompletedForeign {
            backend: BackendId(cursor.small()?),
            phase: request_code::read_phase(cursor)?,
        },
        code::HEALTH => {
            What::Health { backend: BackendId(cursor.small()?), health: code::read_health(cursor)? }
        }
        code::WEIGHT => {
            What::Weight { backend: BackendId(cursor.small()?), weight: code::read_weight(cursor)? }
        }
        code::JOINED => What::Joined {
            backend: BackendId(cursor.small()?),
            name: cursor.text()?,
            key: cursor.word()?,
            weight: code::read_weight(cursor)?,
        },
        code::TICKED => What::Ticked,
        code::STAYED => What::Stayed { backend: BackendId(cursor.small()?) },
        code::REPORTED => {
            let (backend, load, latency) = code::read_load(cursor)?;
            What::Reported(LoadReport { backend, load, latency })
        }
        code::SNIFFED => What::Sniffed(sniffed_code::read_sniffed(cursor)?),
        code::HOST_METRICS => What::HostMetrics(sniffed_code::read_metrics(cursor)?),
        code::SHARED => {
            let mut sum = Vec::new();
            for _ in 0..cursor.varint()? {
                sum.push((cursor.varint()?, cursor.varint()?));
            }
            What::Shared(sum)
        }
        code::LEFT => What::Left { backend: BackendId(cursor.small()?) },
        code::ADMISSION => What::Admission(request_code::read_admission(cursor)?),
        _ => return Err(Malformed("an event is of no known kind")),
    })
}
