//! What the server sends: where its answers begin, and to which requests they belong.
//!
//! Packets are copied in part, and hardware joins segments to packets of up to 64 KB, so a head may stand in bytes that were not
//! copied. The length of each answer tells where the next head begins. Where that place was not copied, nobody knows how many answers
//! pass until a head is seen again. That head is read only if a single request can be the one that it answers.

use super::answer_start::{AnswerStart, BodyLength};
use super::exchange::SeenExchange;
use super::frame::ChunkFrame;
use super::request_reader::MOST_BEGUN_BYTES;
use super::segment::Segment;
use super::stream::{Stream, joined};
use super::waiting::WaitingRequests;

/// Most bytes that a client is believed to have received beyond what was seen.
const MOST_LOST_BYTES: u64 = 16 << 20;

/// What the server sends next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerPlace {
    /// A head, where its first segment begins.
    First,
    /// A head, here.
    Head(u64),
    /// A frame of the body under way, here.
    Frame(u64),
    /// Not known.
    Lost {
        /// Where a head stands that was not copied; it may come again.
        head: Option<u64>,
        /// From here on another head may begin.
        after: u64,
    },
}

/// How far the body of the answer under way goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyEnd {
    /// Up to here.
    At(u64),
    /// Up to where the next answer begins.
    Next,
    /// Up to the end of the connection.
    Connection,
    /// Its head was cut: so many bytes, if it told them, but where they begin is not known.
    Cut(Option<u64>),
}

/// An answer of which a part has been seen.
#[derive(Debug)]
struct AnswerUnderWay {
    exchange: Option<Box<SeenExchange>>,
    body_at: u64,
    end: BodyEnd,
}

/// Reads what a server sends.
#[derive(Debug)]
pub(super) struct AnswerReader {
    stream: Stream,
    place: AnswerPlace,
    /// The beginning of the head or frame at `place` that has not come as a whole, and when it came.
    begun: Box<[u8]>,
    begun_ns: u64,
    answering: Option<AnswerUnderWay>,
    /// Whether something else stood where a head was expected.
    unexpected: bool,
}

/// A segment at its place in the stream.
#[derive(Clone, Copy)]
struct StreamPart<'a> {
    at: u64,
    end: u64,
    at_ns: u64,
    data: &'a [u8],
}

impl<'a> StreamPart<'a> {
    /// What was copied of it from `position` on; `None` where that was not.
    fn from(&self, position: u64) -> Option<&'a [u8]> {
        let offset = usize::try_from(position.checked_sub(self.at)?).ok()?;
        self.data.get(offset..).filter(|data| !data.is_empty())
    }

    fn is_whole(&self) -> bool {
        self.at + self.data.len() as u64 == self.end
    }
}

impl AnswerReader {
    pub(super) fn new() -> Self {
        let (stream, place) = (Stream::default(), AnswerPlace::First);
        Self { stream, place, begun: Box::default(), begun_ns: 0, answering: None, unexpected: false }
    }

    /// How far the server has come.
    pub(super) fn position(&self) -> u64 {
        self.stream.position()
    }

    /// Up to where a client has received all that the server has sent, by the number in its segment.
    pub(super) fn received(&mut self, ack: u32) -> u64 {
        self.stream.locate(ack)
    }

    /// Whether a client that has `received` so much surely has not got the end of an answer.
    pub(super) fn owes(&self, received: u64, waiting: &WaitingRequests) -> bool {
        let begun = self.begun.len() as u64;
        match self.place {
            _ if received < self.position() => true,
            AnswerPlace::First => !waiting.is_empty(),
            AnswerPlace::Head(at) => at > received || !waiting.is_empty() && at + begun >= received,
            AnswerPlace::Frame(at) => at.saturating_add(begun) >= received,
            AnswerPlace::Lost { .. } => false,
        }
    }

    /// The client has waited for all its answers, of which it has `received` the last byte: the answer to its next request begins
    /// there. `after_lost`: another request of it may have been lost.
    pub(super) fn waited(
        &mut self,
        received: u64,
        after_lost: bool,
        waiting: &mut WaitingRequests,
        done: &mut dyn FnMut(SeenExchange),
    ) {
        // Anybody can write any number into a segment.
        let is_near = received.saturating_sub(self.position()) <= MOST_LOST_BYTES;
        self.finish((is_near && !after_lost).then_some(received), done);
        waiting.give_up(Some(self.position()), done);
        self.begun = Box::default();
        self.place = AnswerPlace::Head(received);
    }

    /// Whether no head stood where one has to stand if the client had waited.
    pub(super) fn is_unexpected(&self) -> bool {
        self.unexpected
    }

    /// Takes a segment in, and passes on the exchanges that are over.
    pub(super) fn read(
        &mut self,
        segment: &Segment<'_>,
        waiting: &mut WaitingRequests,
        done: &mut dyn FnMut(SeenExchange),
    ) {
        let at = self.stream.place(segment.seq, segment.data_bytes);
        let end = at + u64::from(segment.data_bytes);
        if self.place == AnswerPlace::First {
            self.place = AnswerPlace::Head(at);
        }
        let part = StreamPart { at, end, at_ns: segment.at_ns, data: segment.data };
        loop {
            self.settle(done);
            let goes_on = match self.place {
                AnswerPlace::Head(at) | AnswerPlace::Frame(at) => self.read_at(at, &part, waiting),
                AnswerPlace::Lost { head, after } => {
                    let found = finds(head, after, &part, waiting);
                    if let Some(found) = found {
                        if Some(found) != head {
                            // Interim answers may stand between the one under way and this one.
                            self.finish(None, done);
                        }
                        self.place = AnswerPlace::Head(found);
                    }
                    found.is_some()
                }
                AnswerPlace::First => false,
            };
            if !goes_on {
                break;
            }
        }
        self.settle(done);
    }

    /// Reads the head or frame that stands at `at`; whether there may be more to read.
    fn read_at(&mut self, at: u64, part: &StreamPart<'_>, waiting: &mut WaitingRequests) -> bool {
        let wanted = at.saturating_add(self.begun.len() as u64);
        if part.end <= wanted {
            // What comes late may tell of a place that has passed meanwhile.
            if wanted < self.position() {
                self.lose(at, waiting);
            }
            return false;
        }
        let Some(data) = part.from(wanted) else {
            self.lose(at, waiting);
            return true;
        };
        if self.begun.is_empty() {
            self.begun_ns = part.at_ns;
        }
        let joined = joined(&self.begun, data);
        let keeps = part.is_whole() && joined.len() < MOST_BEGUN_BYTES;
        match self.place {
            AnswerPlace::Frame(_) => self.read_frame(at, &joined, keeps),
            _ => self.read_head(at, &joined, keeps, waiting),
        }
    }

    fn read_head(&mut self, at: u64, joined: &[u8], keeps: bool, waiting: &mut WaitingRequests) -> bool {
        let start = AnswerStart::read(joined, waiting.first_is_head());
        let is_begun = start.map_or(AnswerStart::may_begin(joined), |start| start.head_bytes.is_none());
        if is_begun && keeps {
            self.begun = joined.into();
            return false;
        }
        match start {
            Some(start) => return self.begin((at, joined.len()), start, waiting),
            None if is_begun => self.lose(at, waiting),
            None => {
                self.unexpected = true;
                self.lose_at(None, at + 1);
            }
        }
        false
    }

    fn read_frame(&mut self, at: u64, joined: &[u8], keeps: bool) -> bool {
        let (place, end) = match ChunkFrame::read(joined) {
            ChunkFrame::More if keeps => {
                self.begun = joined.into();
                return false;
            }
            ChunkFrame::More | ChunkFrame::Bad => {
                self.lose_at(None, at);
                return true;
            }
            ChunkFrame::Next(bytes) => (AnswerPlace::Frame(at.saturating_add(bytes)), BodyEnd::Next),
            ChunkFrame::Last(bytes) => (AnswerPlace::Head(at + bytes), BodyEnd::At(at + bytes)),
        };
        self.begun = Box::default();
        self.place = place;
        if let Some(answering) = &mut self.answering {
            answering.end = end;
        }
        true
    }

    /// An answer begins at `at`, of which so many bytes were looked at.
    fn begin(
        &mut self,
        (at, looked_at): (u64, usize),
        start: AnswerStart,
        waiting: &mut WaitingRequests,
    ) -> bool {
        self.begun = Box::default();
        let body_at = at + start.head_bytes.unwrap_or(looked_at) as u64;
        if start.is_interim() && start.head_bytes.is_some() {
            self.place = AnswerPlace::Head(body_at);
            return true;
        }
        self.lose_at(None, body_at);
        if start.is_interim() {
            return false;
        }
        let Some(asked) = waiting.answered() else { return false };
        let end = match (start.head_bytes, start.body) {
            (Some(_), BodyLength::Known(bytes)) => BodyEnd::At(body_at.saturating_add(bytes)),
            (Some(_), BodyLength::Chunks) => BodyEnd::Next,
            (Some(_), _) => BodyEnd::Connection,
            (None, BodyLength::Known(bytes)) => BodyEnd::Cut(Some(bytes)),
            (None, _) => BodyEnd::Cut(None),
        };
        match end {
            BodyEnd::At(end) => self.place = AnswerPlace::Head(end),
            BodyEnd::Next => self.place = AnswerPlace::Frame(body_at),
            BodyEnd::Connection | BodyEnd::Cut(_) => {}
        }
        let exchange = asked.exchange.map(|mut exchange| {
            exchange.status = Some(start.status);
            exchange.first_byte_ns = Some(self.begun_ns.saturating_sub(exchange.at_ns));
            exchange
        });
        self.answering = Some(AnswerUnderWay { exchange, body_at, end });
        true
    }

    /// What stands at `at` was not copied, or not all of it.
    fn lose(&mut self, at: u64, waiting: &mut WaitingRequests) {
        let is_head = matches!(self.place, AnswerPlace::Head(_));
        let begun = std::mem::take(&mut self.begun);
        match AnswerStart::read(&begun, waiting.first_is_head()) {
            Some(start) if is_head => {
                self.begin((at, begun.len()), start, waiting);
            }
            _ if is_head => self.lose_at(Some(at), at + 1),
            _ => self.lose_at(None, at),
        }
    }

    fn lose_at(&mut self, head: Option<u64>, after: u64) {
        self.begun = Box::default();
        self.place = AnswerPlace::Lost { head, after };
    }

    /// Passes on the answer under way if all of it has passed.
    fn settle(&mut self, done: &mut dyn FnMut(SeenExchange)) {
        let end = self.answering.as_ref().map(|answering| answering.end);
        if matches!(end, Some(BodyEnd::At(end)) if end <= self.position()) {
            self.finish(None, done);
        }
    }

    /// Passes on the answer under way, with what has been seen of it. `until` is where it ends, if that is known.
    fn finish(&mut self, until: Option<u64>, done: &mut dyn FnMut(SeenExchange)) {
        let Some(AnswerUnderWay { exchange, body_at, end }) = self.answering.take() else { return };
        let seen = |until: u64| until.saturating_sub(body_at);
        let reached = self.position().max(until.unwrap_or(0));
        if let Some(mut exchange) = exchange {
            exchange.size_bytes = match end {
                BodyEnd::At(end) => Some(seen(end.min(reached))),
                BodyEnd::Next | BodyEnd::Connection => until.map(seen),
                BodyEnd::Cut(bytes) => bytes.map(|bytes| bytes.min(seen(reached))),
            };
            exchange.unread = exchange.size_bytes.is_none();
            done(*exchange);
        }
    }

    /// Passes on everything that is left.
    pub(super) fn close(&mut self, waiting: &mut WaitingRequests, done: &mut dyn FnMut(SeenExchange)) {
        let reached = self.position();
        let is_lost = matches!(self.place, AnswerPlace::Lost { .. });
        let to_end = self.answering.as_ref().is_some_and(|answering| answering.end == BodyEnd::Connection);
        let is_last = !is_lost || to_end || waiting.are_surely(0);
        self.finish(is_last.then_some(reached), done);
        waiting.give_up(is_lost.then_some(reached), done);
    }
}

/// Where a head stands in this segment that surely answers the first request that waits.
fn finds(head: Option<u64>, after: u64, part: &StreamPart<'_>, waiting: &WaitingRequests) -> Option<u64> {
    let is_head = |at: &u64| part.from(*at).is_some_and(|data| AnswerStart::read(data, false).is_some());
    let next = match head {
        // It comes again, or late. Behind it another one may be that of the same request, if it was an interim answer's, or of the next.
        Some(_) => head,
        None => Some(part.at).filter(|at| *at >= after && waiting.are_surely(1)),
    };
    next.filter(is_head)
}
