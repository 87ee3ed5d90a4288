//! One connection of a client, request by request.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, ready};
use std::time::Instant;

use plimsoll_config::Config;

use super::outcome::{Outcome, Tried, failed};
use super::pass::{Answered, Exchange, Failure};
use super::read_head::{NoHead, read_head};
use crate::backend::Backend;
use crate::dispatch::{Assignment, Offer};
use crate::handoff::Handing;
use crate::http::request::{self, RequestHead};
use crate::http::{Framing, Refusal, Version};
use crate::net::deadline::Deadline;
use crate::net::stream::ClientStream;
use crate::observe::{Record, Times};
use crate::pool::{self, BackendConnection, NoConnection};
use crate::worker::{Accepted, Scratch, Worker};

/// A small body that has arrived with its head goes to the back-end in one piece with it.
const JOINED_BODY_BYTES: u64 = 4096;

/// Why a request is refused that a front-end beside this one has placed.
const PLACED: &str =
    "the request was placed already: the address of a back-end leads to a front-end beside this one";

/// How a connection begins here.
#[derive(Default)]
pub(crate) struct Start {
    /// Requests on it that have been answered.
    pub(crate) requests: u64,
    /// The back-end that has been chosen for its next request, which is not handed off any more.
    pub(crate) given: Option<Assignment>,
    /// Whether its next request stays here, whatever the mechanism.
    pub(crate) stays: bool,
    /// What has been read from it and not answered.
    pub(crate) input: Vec<u8>,
}

/// What becomes of the client's connection after a request.
pub(super) enum Then {
    Keep,
    /// Closed in good order, the rest of what the client sends thrown away.
    Close,
    /// Already over.
    Over,
    /// Cut, so that nobody takes what came for a whole response.
    Cut,
    /// A back-end gets it, with the request.
    HandOff(Box<Handing>),
}

pub(super) struct Client<'a> {
    pub(super) worker: Rc<Worker>,
    pub(super) stream: &'a mut ClientStream,
    pub(super) accepted: Rc<Accepted>,
    pub(super) deadline: Deadline,
    pub(super) config: Arc<Config>,
    pub(super) start: Start,
    /// The request's head as it came, kept where the connection may be handed off.
    pub(super) raw: Vec<u8>,
    /// A response is under way: if the connection ends now, nobody must take what came for a whole one.
    answering: bool,
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        if self.answering {
            self.cut();
        }
    }
}

/// Serves a connection until it ends; or until it is to be handed off, which the caller does.
pub(crate) async fn serve(
    worker: &Rc<Worker>,
    stream: &mut ClientStream,
    accepted: &Rc<Accepted>,
    start: Start,
) -> Option<Box<Handing>> {
    let deadline = worker.deadlines.add();
    let config = worker.config();
    let (worker, accepted) = (Rc::clone(worker), Rc::clone(accepted));
    let raw = Vec::new();
    let mut client = Client { worker, stream, accepted, deadline, config, start, raw, answering: false };
    client.run().await
}

impl Client<'_> {
    async fn run(&mut self) -> Option<Box<Handing>> {
        let mut scratch: Option<Scratch> = None;
        if !self.start.input.is_empty() {
            let mut lent = self.worker.scratch();
            if !lent.input.put(&std::mem::take(&mut self.start.input)) {
                return None;
            }
            scratch = Some(lent);
        }
        loop {
            // An idle connection holds no buffer.
            scratch = scratch.filter(|s| !s.input.is_empty());
            let mut lent = match scratch.take() {
                Some(scratch) => scratch,
                None => match self.begin().await {
                    Some(scratch) => scratch,
                    None => return None,
                },
            };
            match self.request(&mut lent).await {
                Then::Keep => {
                    scratch = Some(lent);
                    continue;
                }
                Then::HandOff(handing) => return Some(handing),
                Then::Close => self.close(lent).await,
                Then::Over => {}
                Then::Cut => self.cut(),
            }
            return None;
        }
    }

    /// Waits for a request to begin, and reads what there is of it; nothing when the connection ends instead.
    async fn begin(&mut self) -> Option<Scratch> {
        let idle = match self.start.requests {
            0 => self.config.timeouts.head,
            _ => self.config.timeouts.idle,
        };
        self.deadline.set(idle);
        self.deadline.set_idle(true);
        let (stream, worker) = (&mut *self.stream, &self.worker);
        let begun = self.deadline.guard(|cx| {
            ready!(stream.poll_read_ready(cx))?;
            // A connection can be taken for readable and not be: a new one is. Then the buffer goes back at once.
            let mut scratch = worker.scratch();
            let n = ready!(scratch.input.poll_fill(cx, stream))?;
            Poll::Ready(Ok::<_, io::Error>((n > 0).then_some(scratch)))
        });
        let begun = begun.await;
        self.deadline.set_idle(false);
        begun.ok()?.ok()?
    }

    async fn request(&mut self, scratch: &mut Scratch) -> Then {
        self.worker.refresh(&mut self.config);
        self.deadline.set(self.config.timeouts.head);
        let most_bytes = self.config.limits.head_bytes;
        let length = match read_head(self.stream, &mut scratch.input, most_bytes, &self.deadline).await {
            Ok(length) => length,
            Err(NoHead::Gone) => return Then::Over,
            Err(NoHead::Refused(refusal)) => return self.refuse_head(refusal, scratch).await,
        };
        let received = Instant::now();
        self.start.requests += 1;
        let context = request::Context {
            key: &self.config.target.key,
            dynamic: &self.config.target.dynamic,
            fields: self.config.limits.fields,
            peer: self.accepted.peer_text.as_bytes(),
            trusted: self.accepted.trusted,
        };
        let head = match request::rewrite(&scratch.input.data()[..length], &context, &mut scratch.head) {
            Ok(head) => head,
            Err(refusal) => return self.refuse_head(refusal, scratch).await,
        };
        if let Some(peers) = &self.worker.shared.peers {
            // It has been placed by this front-end or one beside it; to pass it on again could go on for ever.
            if !request::mark_placed(peers.local(), &mut scratch.head) {
                return self.refuse_head(Refusal::of(508, PLACED), scratch).await;
            }
        }
        self.keep_raw(&scratch.input.data()[..length]);
        scratch.input.consume(length);
        if let (Framing::Length(length), Some(most)) = (head.framing, self.config.limits.body_bytes)
            && length > most
        {
            return self
                .refuse_head(Refusal::of(413, "the request's body is larger than allowed"), scratch)
                .await;
        }
        self.answer(&head, scratch, received).await
    }

    /// A request that has been understood: finds it a back-end, and another one while that fails and may be repeated.
    async fn answer(&mut self, head: &RequestHead, scratch: &mut Scratch, received: Instant) -> Then {
        let framing = join_body(head, scratch);
        if framing != Framing::None {
            self.stream.acknowledge();
        }
        let keep = head.keep_alive
            && !self.accepted.closing.load(Ordering::Relaxed)
            && self.start.requests < self.config.limits.requests_per_connection;
        let mut times = Times { received, assigned: None, first_byte: None };
        let mut tried = Tried::default();
        let outcome = self.try_backends(head, framing, keep, scratch, &mut times, &mut tried).await;
        if let Outcome::HandOff(assignment, link) = outcome {
            return Then::HandOff(self.handing(head, scratch, assignment, link, times, &tried));
        }
        let mut record = Record {
            peer: &self.accepted.peer_text,
            head: Some(head),
            head_bytes: &scratch.head,
            status: 0,
            content_bytes: 0,
            backend: tried.backend.as_deref(),
            reason: tried.reason,
            handed_off: false,
            attempts: tried.attempts,
            waited: tried.waited,
            times,
        };
        match outcome {
            Outcome::Answered(answered) => {
                record.status = answered.head.status;
                record.content_bytes = answered.content_bytes;
                record.times.first_byte = Some(answered.first_byte_at);
                self.worker.observe(&record);
                if answered.keep_client { Then::Keep } else { Then::Close }
            }
            Outcome::Refused(refusal, retry_after_s) => {
                record.status = refusal.status;
                self.worker.observe(&record);
                // A body that was not read would be taken for the next request. HTTP/1.0 closes unless told otherwise.
                let keep = keep && framing == Framing::None && head.version == Version::Http11;
                self.write_refusal(refusal, retry_after_s, head.is_head, keep, &mut scratch.out).await
            }
            Outcome::Cut { status, content_bytes } => {
                record.status = status;
                record.content_bytes = content_bytes;
                self.worker.observe(&record);
                Then::Cut
            }
            Outcome::HandOff(..) => Then::Over,
        }
    }

    async fn try_backends(
        &mut self,
        head: &RequestHead,
        framing: Framing,
        keep: bool,
        scratch: &mut Scratch,
        times: &mut Times,
        tried: &mut Tried,
    ) -> Outcome {
        const UNAVAILABLE: Refusal = Refusal::of(503, "no back-end can take the request now");
        let retry_after_s = Some(self.config.admission.retry_after_s);
        // A body cannot be read a second time.
        let repeatable = head.is_safe && head.framing == Framing::None;
        loop {
            let Some(assignment) = self.assign(head, tried).await else {
                return Outcome::Refused(UNAVAILABLE, retry_after_s);
            };
            times.assigned = Some(Instant::now());
            tried.attempts += 1;
            tried.reason = Some(assignment.reason());
            let more = tried.attempts <= self.config.limits.retries;
            let Some(backend) = self.worker.backend(assignment.backend()) else {
                return Outcome::Refused(UNAVAILABLE, retry_after_s);
            };
            tried.backend = Some(Arc::clone(&backend));
            if let Some(link) = self.link_for(head, framing, keep, &assignment) {
                return Outcome::HandOff(assignment, link);
            }
            let before = backend.turns();
            let mut connection = match self.connect(&backend, !repeatable || tried.attempts > 1).await {
                Ok(connection) => connection,
                Err(why) => {
                    drop(assignment);
                    if let NoConnection::Failed(error) = why {
                        self.worker.connect_failed(&backend, &error, tried.failed == Some(backend.id));
                        tried.failed = Some(backend.id);
                    }
                    if more {
                        continue;
                    }
                    return Outcome::Refused(UNAVAILABLE, retry_after_s);
                }
            };
            if backend.went_down_since(before) && more {
                // It went down while a connection was waited for; nothing has been sent.
                tried.failed = Some(backend.id);
                continue;
            }
            let watched = (repeatable && more).then_some(before);
            match self.pass(head, framing, keep, scratch, &mut connection, watched).await {
                Ok(answered) => {
                    let whole = head.is_get && answered.head.status == 200;
                    assignment.complete(whole.then_some(answered.content_bytes));
                    if answered.keep_backend {
                        self.worker.pool.put(connection);
                    }
                    return Outcome::Answered(answered);
                }
                // Should it be chosen again and refuse a connection, it is taken for down.
                Err(Failure::Lost | Failure::BackendDown) if repeatable && more => {
                    tried.failed = Some(backend.id);
                }
                Err(failure) => return failed(failure),
            }
        }
    }

    /// A back-end for the request, after a wait where the admission limit asks for one.
    async fn assign(&mut self, head: &RequestHead, tried: &mut Tried) -> Option<Assignment> {
        if let Some(given) = self.start.given.take() {
            return Some(given);
        }
        match self.worker.shared.dispatch.offer(head.target, head.kind, self.accepted.client) {
            Offer::Assigned(assignment) => Some(assignment),
            Offer::Refused => None,
            Offer::Waits(mut ticket) => {
                tried.waited = true;
                // Not the deadline of the connection: that one may be late by more than this wait is long.
                let wait = std::future::poll_fn(|cx| ticket.poll(cx));
                tokio::time::timeout(self.config.admission.queue_timeout, wait).await.ok().flatten()
            }
        }
    }

    async fn connect(&self, backend: &Arc<Backend>, surely: bool) -> Result<BackendConnection, NoConnection> {
        match self.worker.pool.take(backend, surely) {
            Some(connection) => Ok(connection),
            None => {
                let opened = pool::connect(backend, self.config.timeouts.connect).await;
                opened.inspect(|_| self.worker.connected(backend))
            }
        }
    }

    async fn pass(
        &mut self,
        head: &RequestHead,
        framing: Framing,
        keep: bool,
        scratch: &mut Scratch,
        to: &mut BackendConnection,
        watched: Option<u32>,
    ) -> Result<Answered, Failure> {
        let date = self.worker.date();
        let mut response = self.worker.response_buffer();
        let client = self.stream.watched().map_err(|_| Failure::ClientGone)?;
        let mut exchange = Exchange {
            client,
            input: &mut scratch.input,
            deadline: &self.deadline,
            config: &self.config,
            head,
            head_bytes: &scratch.head,
            framing,
            out: &mut scratch.out,
            response: &mut response,
            date: &date,
            keep,
            watched,
        };
        self.answering = true;
        let passed = exchange.pass(to).await;
        self.answering = false;
        passed
    }
}

/// Puts a small body that is there behind the head; the framing of what is left to read.
fn join_body(head: &RequestHead, scratch: &mut Scratch) -> Framing {
    match head.framing {
        Framing::Length(length) if length <= JOINED_BODY_BYTES && length as usize <= scratch.input.len() => {
            scratch.head.extend_from_slice(&scratch.input.data()[..length as usize]);
            scratch.input.consume(length as usize);
            Framing::None
        }
        framing => framing,
    }
}
