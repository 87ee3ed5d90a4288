//! Drives a client's connection, request by request.

use std::io;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Instant;

use plimsoll_config::Config;

use super::read_body::join_body;
use super::read_head::read_head;
use super::service::ConnectionService;
use super::then::{GoesOn, Then};
use crate::accepted::{Accepted, Start};
use crate::account::Account;
use crate::http::class;
use crate::http::placed::mark_placed;
use crate::http::request::{self as http_request, RequestHead};
use crate::http::{Framing, HttpVersion, RequestRefusal};
use crate::http2;
use crate::mechanism::carry::{ClientRequest, Mechanism};
use crate::net::deadline::{Deadline, Fired};
use crate::net::halves::ClientIo;
use crate::rate_limit::client_address;
use crate::request::{self, Ended};
use crate::routing::Routing;
use crate::sessions;
use crate::worker::Scratch;

const PLACED: RequestRefusal = RequestRefusal::of(
    508,
    "the request was placed already: the address of a back-end leads to a front-end beside this one",
);

pub(super) struct Client<'a, M, C: ClientIo> {
    pub(super) service: &'a ConnectionService<M>,
    pub(super) stream: &'a mut C,
    pub(super) accepted: &'a Accepted,
    pub(super) deadline: Deadline,
    pub(super) config: Arc<Config>,
    pub(super) start: &'a mut Start,
    /// The request's head as it came, kept where the connection may leave with it.
    raw: Vec<u8>,
    /// A response is under way: if the connection ends now, it must not look complete.
    answering: bool,
    /// The configuration is that of a route.
    is_routed: bool,
}

impl<M, C: ClientIo> Drop for Client<'_, M, C> {
    fn drop(&mut self) {
        if self.answering {
            self.stream.reset();
        }
    }
}

/// Serves a connection until it ends or goes on elsewhere, for which the caller provides.
pub(crate) async fn serve<M: Mechanism, C: ClientIo>(
    service: &ConnectionService<M>,
    stream: &mut C,
    accepted: &Accepted,
    start: &mut Start,
) -> Option<GoesOn<M::Parcel>> {
    Client::new(service, stream, accepted, start).run().await
}

/// Serves a stream of HTTP/2, which has one request.
pub(crate) async fn serve_stream<M: Mechanism, C: ClientIo>(
    service: &ConnectionService<M>,
    stream: &mut C,
    accepted: &Accepted,
) {
    Client::new(service, stream, accepted, &mut Start::default()).run_once().await;
}

impl<'a, M: Mechanism, C: ClientIo> Client<'a, M, C> {
    fn new(
        service: &'a ConnectionService<M>,
        stream: &'a mut C,
        accepted: &'a Accepted,
        start: &'a mut Start,
    ) -> Self {
        let (deadline, config) = (service.worker.deadlines.add(), service.worker.config());
        Self {
            service,
            stream,
            accepted,
            deadline,
            config,
            start,
            raw: Vec::new(),
            answering: false,
            is_routed: false,
        }
    }

    /// Serves the one request of a stream. It neither leaves nor becomes another connection.
    async fn run_once(&mut self) {
        let Some(mut scratch) = self.begin().await else { return };
        match self.request(&mut scratch).await {
            Then::Close => self.close(scratch).await,
            Then::Cut => self.stream.reset(),
            Then::Keep | Then::Over | Then::Leave(_) | Then::Http2(_) => {}
        }
    }

    async fn run(&mut self) -> Option<GoesOn<M::Parcel>> {
        let mut scratch: Option<Scratch> = None;
        if !self.start.input.is_empty() {
            let lent = scratch.insert(self.service.worker.scratch());
            if !lent.input.put(&std::mem::take(&mut self.start.input)) {
                return None;
            }
        }
        loop {
            // An idle connection holds no buffers.
            scratch = scratch.filter(|s| !s.input.is_empty());
            match scratch {
                Some(_) => self.deadline.set_incomplete(true),
                None => scratch = self.begin().await,
            }
            let lent = scratch.as_mut()?;
            // In a box, which an idle connection does not hold: it takes most of what a busy one needs. Written there rather than moved.
            match Box::into_pin(Box::write(Box::new_uninit(), self.request(lent))).await {
                Then::Keep => {
                    if std::mem::take(&mut self.is_routed) {
                        // An idle connection holds the configuration of no route, of which a pool may wait to leave.
                        self.service.worker.refresh(&mut self.config);
                    }
                    continue;
                }
                Then::Leave(parcel) => return Some(GoesOn::Leaves(parcel)),
                Then::Http2(read) => return Some(GoesOn::Http2(read)),
                // In a box as well: it is the next largest.
                Then::Close => Box::pin(self.close(scratch?)).await,
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
        let head = read_head(self.stream, &mut scratch.input, most_bytes, &self.deadline).await;
        if let Ok(length) = head
            && self.begins_http2(&scratch.input.data()[..length])
        {
            return Then::Http2(scratch.input.data().to_vec());
        }
        if self.stream.agreed_on_http2() {
            // RFC 9113, section 3.4: what does not begin as it must ends.
            return Then::Over;
        }
        let length = match head {
            Ok(length) => length,
            Err(why) => return self.without_head(why, scratch).await,
        };
        self.deadline.set_incomplete(false);
        let received = Instant::now();
        self.start.requests += 1;
        self.find_local();
        let identity = self.stream.identity();
        let routing = self.service.worker.shared.routing.load();
        let context = http_request::RequestContext {
            routing: routing.as_deref(),
            key: &self.config.target.key,
            hash: &self.service.worker.shared.hash,
            dynamic: &self.config.target.dynamic,
            classes: self.config.classes.as_ref(),
            fields: self.config.limits.fields,
            own: &|| self.accepted.local.get().or_else(|| self.stream.local_address()),
            peer: self.accepted.peer_text.as_bytes(),
            trusted: self.accepted.trusted,
            forwarded: &self.config.forwarded,
            compression: self.config.compression.as_ref(),
            upgrades: &self.config.limits.upgrades,
            http2: self.stream.is_http2(),
            secure: self.accepted.way.secure,
            identity: identity.as_deref(),
        };
        let mut head =
            match http_request::rewrite(&scratch.input.data()[..length], &context, &mut scratch.head) {
                Ok(head) => head,
                Err(refusal) => return self.refuse_head(refusal, scratch).await,
            };
        let peers = self.service.worker.shared.peers.as_ref();
        // This front-end or a peer has placed it; passing it on again could loop for ever.
        let is_placed = peers.is_some_and(|peers| !mark_placed(peers.local(), &mut scratch.head));
        let answer = routing.as_ref().and_then(|routing| self.enter(routing, &head, &scratch.head));
        drop(routing);
        self.keep_raw(&scratch.input.data()[..length], &mut head);
        scratch.input.consume(length);
        if is_placed {
            return self.answer_by_route(&head, (PLACED, None), scratch, received).await;
        }
        if let (Framing::Length(length), Some(most)) = (head.framing, self.config.limits.body_bytes)
            && length > most
        {
            return self.answer_by_route(&head, (RequestRefusal::TOO_LARGE, None), scratch, received).await;
        }
        if let Some(port) = self.accepted.way.redirect_port {
            return self.send_to_https(&head, port, scratch, received).await;
        }
        if answer.is_none() && self.config.taken.as_ref().is_some_and(|route| route.redirect.is_some()) {
            return self.send_elsewhere(&head, scratch, received).await;
        }
        if let Some(answer) = answer {
            return self.answer_by_route(&head, answer, scratch, received).await;
        }
        self.answer(head, scratch, received).await
    }

    /// Goes on under the configuration of the route that has taken a request. Returns what the front-end itself answers, and the
    /// seconds after which to try again.
    fn enter(
        &mut self,
        routing: &Routing,
        head: &RequestHead,
        head_bytes: &[u8],
    ) -> Option<(RequestRefusal, Option<u32>)> {
        let routed = routing.routed(head.route);
        routing.count(head.route);
        self.config = Arc::clone(&routed.config);
        self.is_routed = true;
        let trusted = &self.config.forwarded.trusted;
        let address = || client_address(head.forwarded_for.of(head_bytes), self.accepted.peer, trusted);
        match routing.limit(head.route, address) {
            Some((refusal, seconds)) => Some((refusal, Some(seconds))),
            None => routed.answer.map(|answer| (answer, None)),
        }
    }

    /// Whether what looks like the first head of the connection begins one of HTTP/2.
    fn begins_http2(&self, head: &[u8]) -> bool {
        self.start.requests == 0 && self.config.http2.clients && head == http2::PREFACE_LINE
    }

    /// Answers a parsed request.
    async fn answer(
        &mut self,
        mut head: RequestHead,
        scratch: &mut Scratch,
        received: Instant,
    ) -> Then<M::Parcel> {
        self.deadline.set_serving();
        if let Some(then) = self.hold_body(&mut head, scratch, received).await {
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
        let keep = self.may_keep(head);
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
            account: Account::new(received).by_route(route_name(&self.config)),
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
                let keep = keep && framing == Framing::None && head.version != HttpVersion::Http10;
                self.write_refusal(refusal, retry_after_s, head.is_head, keep, &mut scratch.out).await
            }
            Ended::Cut => Then::Cut,
            Ended::Leaves(parcel) => Then::Leave(parcel),
        }
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

    /// Finds our end of the connection, where back-ends are told that since a reload.
    fn find_local(&self) {
        if self.config.tells_clients && self.accepted.local.get().is_none() {
            self.accepted.local.set(self.stream.local_address());
        }
    }

    /// Keeps a request's head as it came, where the connection may leave with it, and what it says of a session.
    fn keep_raw(&mut self, raw: &[u8], head: &mut RequestHead) {
        head.session = sessions::told_before_edits(raw, &self.config);
        self.raw.clear();
        if self.service.mechanism.moves_connections() && !std::mem::take(&mut self.start.stays) {
            self.raw.extend_from_slice(raw);
        }
    }
}

/// The name of the route that has taken a request with this configuration.
pub(super) fn route_name(config: &Config) -> Option<Arc<str>> {
    config.taken.as_ref()?.name.clone()
}
