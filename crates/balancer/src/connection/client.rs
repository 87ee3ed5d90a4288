//! Drives a client's connection, request by request.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, ready};
use std::time::Instant;

use plimsoll_config::Config;

use super::read_body::{NoBody, read_body};
use super::read_head::{NoHead, read_head};
use super::service::ConnectionService;
use crate::accepted::{Accepted, Start};
use crate::account::{Account, End};
use crate::http::class;
use crate::http::placed::mark_placed;
use crate::http::request::{self as http_request, RequestHead};
use crate::http::{Framing, HttpVersion, RequestRefusal};
use crate::mechanism::carry::{ClientRequest, Mechanism};
use crate::net::deadline::{Deadline, Fired};
use crate::net::halves::ClientIo;
use crate::observe::CLIENT_GONE;
use crate::refusal_reason::RefusalReason;
use crate::request::{self, Ended};
use crate::worker::Scratch;

/// A small body that has arrived with its head goes to the back-end in one piece with it.
const JOINED_BODY_BYTES: u64 = 4096;

/// Why a request that a peer has placed is refused.
const PLACED: &str =
    "the request was placed already: the address of a back-end leads to a front-end beside this one";

/// What happens to the client's connection after a request.
pub(super) enum Then<P> {
    Keep,
    /// Closed gracefully, discarding the rest of what the client sends.
    Close,
    /// Already over.
    Over,
    /// Cut, so that nobody takes a partial response for a complete one.
    Cut,
    /// It leaves, with the request.
    Leave(P),
}

pub(super) struct Client<'a, M, C: ClientIo> {
    pub(super) service: &'a ConnectionService<M>,
    pub(super) stream: &'a mut C,
    pub(super) accepted: &'a Accepted,
    pub(super) deadline: Deadline,
    pub(super) config: Arc<Config>,
    start: &'a mut Start,
    /// The request's head as it came, kept where the connection may leave with it.
    raw: Vec<u8>,
    /// A response is under way: if the connection ends now, it must not look complete.
    answering: bool,
}

impl<M, C: ClientIo> Drop for Client<'_, M, C> {
    fn drop(&mut self) {
        if self.answering {
            self.stream.reset();
        }
    }
}

/// Serves a connection until it ends or leaves. The caller makes it leave.
pub(crate) async fn serve<M: Mechanism, C: ClientIo>(
    service: &ConnectionService<M>,
    stream: &mut C,
    accepted: &Accepted,
    start: &mut Start,
) -> Option<M::Parcel> {
    let deadline = service.worker.deadlines.add();
    let config = service.worker.config();
    let raw = Vec::new();
    let mut client = Client { service, stream, accepted, deadline, config, start, raw, answering: false };
    client.run().await
}

impl<M: Mechanism, C: ClientIo> Client<'_, M, C> {
    async fn run(&mut self) -> Option<M::Parcel> {
        let mut scratch: Option<Scratch> = None;
        if !self.start.input.is_empty() {
            let mut lent = self.service.worker.scratch();
            if !lent.input.put(&std::mem::take(&mut self.start.input)) {
                return None;
            }
            scratch = Some(lent);
        }
        loop {
            // An idle connection holds no buffers.
            scratch = scratch.filter(|s| !s.input.is_empty());
            let mut lent = match scratch.take() {
                Some(scratch) => {
                    self.deadline.set_incomplete(true);
                    scratch
                }
                None => match self.begin().await {
                    Some(scratch) => scratch,
                    None => return None,
                },
            };
            // In a box, which an idle connection does not hold: it takes most of what a busy one needs.
            match Box::pin(self.request(&mut lent)).await {
                Then::Keep => {
                    scratch = Some(lent);
                    continue;
                }
                Then::Leave(parcel) => return Some(parcel),
                Then::Close => self.close(lent).await,
                Then::Over => {}
                Then::Cut => self.stream.reset(),
            }
            return None;
        }
    }

    /// Waits for a request to begin and reads its first bytes; `None` when the connection ends instead.
    async fn begin(&mut self) -> Option<Scratch> {
        let idle = match self.start.requests {
            0 => self.config.timeouts.head,
            _ => self.config.timeouts.idle,
        };
        self.deadline.set(idle);
        self.deadline.set_idle(true);
        self.deadline.set_incomplete(true);
        let (stream, worker) = (&mut *self.stream, &self.service.worker);
        let begun = self.deadline.guard(|cx| {
            ready!(stream.poll_begun(cx))?;
            // A connection can be taken for readable and not be: a new one is. Then the buffer goes back at once.
            let mut scratch = worker.scratch();
            let n = ready!(scratch.input.poll_fill(cx, stream))?;
            Poll::Ready(Ok::<_, io::Error>((n > 0).then_some(scratch)))
        });
        let begun = begun.await;
        self.deadline.set_idle(false);
        if matches!(begun, Err(Fired::MadeRoom)) {
            worker.count_made_room(&self.accepted.peer_text, None);
        }
        begun.ok()?.ok()?
    }

    async fn request(&mut self, scratch: &mut Scratch) -> Then<M::Parcel> {
        self.service.worker.refresh(&mut self.config);
        self.deadline.set(self.config.timeouts.head);
        let most_bytes = self.config.limits.head_bytes;
        let length = match read_head(self.stream, &mut scratch.input, most_bytes, &self.deadline).await {
            Ok(length) => length,
            Err(NoHead::Gone) => return Then::Over,
            Err(NoHead::MadeRoom) => {
                self.service.worker.count_made_room(&self.accepted.peer_text, None);
                return Then::Over;
            }
            Err(NoHead::Refused(refusal)) => {
                self.deadline.set_incomplete(false);
                return self.refuse_head(refusal, scratch).await;
            }
        };
        self.deadline.set_incomplete(false);
        let received = Instant::now();
        self.start.requests += 1;
        let identity = self.stream.identity();
        let context = http_request::RequestContext {
            key: &self.config.target.key,
            hash: &self.service.worker.shared.hash,
            dynamic: &self.config.target.dynamic,
            classes: self.config.classes.as_ref(),
            fields: self.config.limits.fields,
            peer: self.accepted.peer_text.as_bytes(),
            trusted: self.accepted.trusted,
            secure: self.accepted.way.secure,
            identity: identity.as_deref(),
        };
        let head = match http_request::rewrite(&scratch.input.data()[..length], &context, &mut scratch.head) {
            Ok(head) => head,
            Err(refusal) => return self.refuse_head(refusal, scratch).await,
        };
        if let Some(peers) = &self.service.worker.shared.peers {
            // This front-end or a peer has placed it; passing it on again could loop for ever.
            if !mark_placed(peers.local(), &mut scratch.head) {
                return self.refuse_head(RequestRefusal::of(508, PLACED), scratch).await;
            }
        }
        self.keep_raw(&scratch.input.data()[..length]);
        scratch.input.consume(length);
        if let (Framing::Length(length), Some(most)) = (head.framing, self.config.limits.body_bytes)
            && length > most
        {
            return self
                .refuse_head(RequestRefusal::of(413, "the request's body is larger than allowed"), scratch)
                .await;
        }
        if let Some(port) = self.accepted.way.redirect_port {
            return self.send_to_https(&head, port, scratch, received).await;
        }
        self.answer(head, scratch, received).await
    }

    /// Requests on the connection so far.
    pub(super) fn requests(&self) -> u64 {
        self.start.requests
    }

    /// Answers a parsed request.
    async fn answer(
        &mut self,
        mut head: RequestHead,
        scratch: &mut Scratch,
        received: Instant,
    ) -> Then<M::Parcel> {
        if let Some(then) = self.small_body(&head, scratch, received).await {
            return then;
        }
        if head.class.asks_body {
            self.look_into_body(&mut head, scratch);
        }
        let head = &head;
        let framing = join_body(head, scratch);
        if framing != Framing::None {
            self.stream.acknowledge();
        }
        let keep = head.keep_alive
            && !self.accepted.closing.load(Ordering::Relaxed)
            && self.start.requests < self.config.limits.requests_per_connection;
        let mut request = ClientRequest {
            worker: &self.service.worker,
            config: &self.config,
            accepted: self.accepted,
            stream: &mut *self.stream,
            deadline: &self.deadline,
            scratch,
            head,
            raw: &mut self.raw,
            framing,
            keep,
            requests: self.start.requests,
            answering: &mut self.answering,
            account: Account::new(received),
            repeatable: false,
            more: false,
        };
        if let Some(given) = self.start.given.take() {
            request.account.take_over(*given);
        }
        match request::answer(&*self.service.mechanism, &mut request).await {
            Ended::Answered { keep: true } => Then::Keep,
            Ended::Answered { keep: false } => Then::Close,
            Ended::Refused(refusal, retry_after_s) => {
                // A body that was not read would be taken for the next request. HTTP/1.0 closes unless told otherwise.
                let keep = keep && framing == Framing::None && head.version == HttpVersion::Http11;
                self.write_refusal(refusal, retry_after_s, head.is_head, keep, &mut scratch.out).await
            }
            Ended::Cut => Then::Cut,
            Ended::Leaves(parcel) => Then::Leave(parcel),
        }
    }

    /// Reads a body that fits into the buffer, unless the client waits to be asked for it. Returns what happens
    /// otherwise when it does not come.
    async fn small_body(
        &mut self,
        head: &RequestHead,
        scratch: &mut Scratch,
        received: Instant,
    ) -> Option<Then<M::Parcel>> {
        let Framing::Length(length) = head.framing else { return None };
        let length = usize::try_from(length).ok().filter(|&l| l <= scratch.input.room())?;
        if head.expects_continue {
            return None;
        }
        let timeout = self.config.timeouts.body;
        let read = read_body(self.stream, &mut scratch.input, length, &self.deadline, timeout).await;
        let no_body = read.err()?;
        let (status, refused) = match no_body {
            NoBody::Gone => (CLIENT_GONE, None),
            NoBody::TooSlow => (408, Some(RefusalReason::BodyTimeout)),
            NoBody::MadeRoom => (408, Some(RefusalReason::MadeRoom)),
        };
        let (worker, client) = (&self.service.worker, &self.accepted.peer_text);
        let line = Some(head.line.of(&scratch.head));
        match no_body {
            NoBody::MadeRoom => worker.count_made_room(client, line),
            _ => worker.count_refusal(refused, client, line),
        }
        let head = (head, &scratch.head[..]);
        Account::new(received).end(worker, self.accepted, head, End { refused, ..End::unanswered(status) });
        if no_body == NoBody::Gone {
            return Some(Then::Over);
        }
        let refusal = RequestRefusal::of(408, "the request body took too long");
        Some(self.write_refusal(refusal, None, false, false, &mut scratch.out).await)
    }

    /// Takes the class of a request from the GraphQL operation that its body names, if the body is here.
    fn look_into_body(&self, head: &mut RequestHead, scratch: &Scratch) {
        let Framing::Length(length) = head.framing else { return };
        let body = usize::try_from(length).ok().and_then(|length| scratch.input.data().get(..length));
        if let (Some(classes), Some(body)) = (&self.config.classes, body)
            && let Some(number) = class::of_body(classes, head.line.of(&scratch.head), body)
        {
            head.class.number = number;
        }
    }

    /// Keeps a request's head as it came, where the connection may leave with it.
    fn keep_raw(&mut self, head: &[u8]) {
        self.raw.clear();
        if self.service.mechanism.moves_connections() && !std::mem::take(&mut self.start.stays) {
            self.raw.extend_from_slice(head);
        }
    }
}

/// Appends a small body that has arrived to the head. Returns the framing of the rest.
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
