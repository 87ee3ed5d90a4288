//! One request to one back-end and the response back.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use plimsoll_config::{Config, FieldEdit, RouteConfig};
use tokio::io::{AsyncRead, AsyncWrite};

use super::acknowledging::Acknowledging;
use super::compress::{Compressors, compressor};
use super::pool::BackendConnection;
use super::read_ahead::ReadAhead;
use super::relay::Relay;
use super::tunnel::ByteTunnel;
use super::upload::{Upload, UploadFailed};
use crate::accepted::Accepted;
use crate::http::coding::ResponseCompression;
use crate::http::head_end::{HeadEnd, HeadScan};
use crate::http::request::RequestHead;
use crate::http::response::{self, ResponseHead};
use crate::http::{Framing, HttpVersion, RequestRefusal};
use crate::http2;
use crate::load_information::HeaderLoads;
use crate::mechanism::carry::{Answered, Failure};
use crate::net::buffer::Buffer;
use crate::net::deadline::{Deadline, Fired};
use crate::net::halves::{Halves, Input};
use crate::net::pace::Pace;
use crate::net::watched_backend::{BackendWait, WatchedBackend};
use crate::net::write::poll_write_all;
use crate::passed_content::PassedContent;
use crate::stalling::Stalling;
use crate::trial::{self, BackendTrial};
use crate::worker::Worker;

/// Interim responses that are passed on for one request.
const MOST_INTERIM: u32 = 32;

/// The client's side of an exchange.
pub(crate) struct Exchange<'a, C> {
    pub(crate) client: &'a mut C,
    pub(crate) input: &'a mut Buffer,
    pub(crate) deadline: &'a Deadline,
    pub(crate) config: &'a Arc<Config>,
    pub(crate) head: &'a RequestHead,
    /// The rewritten request head.
    pub(crate) head_bytes: &'a [u8],
    /// Framing of what of the body is not in `head_bytes`.
    pub(crate) framing: Framing,
    /// For the response's head.
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) response: &'a mut Buffer,
    /// Tells the time for the response's head.
    pub(crate) worker: &'a Worker,
    pub(crate) accepted: &'a Accepted,
    /// Whether the front-end wants to keep the client's connection, unless it is to close meanwhile.
    pub(crate) keep: bool,
    /// Told when only the client is waited for.
    pub(crate) stalling: Stalling<'a>,
    /// Ended once there is an answer that can be passed on.
    pub(crate) trial: &'a mut Option<BackendTrial>,
    /// How long an answer is waited for.
    pub(crate) first_byte: Duration,
    /// How often the back-end had turned when it was chosen: once it goes down, no response is waited for. And how often it had lapsed,
    /// where the request can go elsewhere then.
    pub(crate) before: (u32, Option<u32>),
    /// Takes loads from the back-end's responses.
    pub(crate) loads: Option<HeaderLoads<'a>>,
    /// Further fields of the response.
    pub(crate) more: &'a [u8],
    /// What compresses bodies.
    pub(crate) compressors: &'a Rc<Compressors>,
}

impl<C: Halves> Exchange<'_, C> {
    /// Sends the request, and the response back.
    pub(crate) async fn pass<B: Halves>(
        &mut self,
        to: &mut BackendConnection<B>,
    ) -> Result<Answered, Failure> {
        let (from_client, mut to_client) = self.client.halves().map_err(|_| Failure::ClientGone)?;
        let (from_backend, to_backend) = to.stream.halves().map_err(|_| Failure::Lost)?;
        let mut from_backend = Acknowledging::new(from_backend, &to.backend.waits_in_response);
        let backend = &*to.backend;
        let limits = &self.config.limits;
        let mut upload = Upload::new(
            (from_client, to_backend),
            self.head_bytes,
            self.input,
            self.framing,
            (limits, edits_of(self.config, |route| &route.request_fields)),
        );
        let waiting = Waiting {
            deadline: self.deadline,
            config: self.config,
            head: self.head,
            worker: self.worker,
            accepted: self.accepted,
            keep: self.keep,
            first_byte: self.first_byte,
            began_ms: self.deadline.now_ms(),
            loads: self.loads,
            more: self.more,
            request: self.head_bytes,
            compressors: self.compressors,
        };
        let (turns, lapses) = self.before;
        let wait = BackendWait::since(self.deadline.now_ms(), to.is_new && self.framing == Framing::None);
        self.deadline.watch(WatchedBackend { backend: Arc::clone(&to.backend), turns, lapses, wait });
        let buffers = (&mut *self.response, &mut *self.out);
        let head =
            waiting.response(&mut upload, &mut from_backend, &mut to_client, buffers, &mut self.stalling);
        let head = head.await;
        self.deadline.unwatch(head.is_ok());
        let head = head?;
        self.stalling.resume();
        let first_byte = Instant::now();
        if head.changes_protocol() {
            trial::answered(self.trial);
            // Who is connected for hours without a word is no load.
            self.stalling.stall();
            let down = (from_backend.into_inner(), to_client, &mut *self.response, &self.out[..]);
            let mut tunnel = ByteTunnel::new(upload.into_parts(), down);
            let content_bytes = tunnel.run(self.deadline, self.config.timeouts.tunnel).await;
            return Ok(over(head, PassedContent::plain(content_bytes).since(first_byte)));
        }
        let compressor = compressor((&head, self.config), self.compressors)?;
        let allowed = (limits, edits_of(self.config, |route| &route.response_fields));
        let mut relay = Relay::new(head, self.head.version, self.response, self.out, allowed, compressor)?;
        trial::answered(self.trial);
        let mut from = ReadAhead::new(from_backend, self.worker, limits.held_bytes);
        let (to, stalling) = (&mut to_client, &mut self.stalling);
        let done = relay.run(&mut upload, &mut from, to, self.deadline, self.config, stalling).await;
        let content = relay.passed().since(first_byte);
        relay.note_excess(backend);
        let ended_cleanly = relay.ended_cleanly() && !from.is_stale();
        match done {
            Ok(()) => Ok(Answered {
                head,
                content,
                keep_client: head.keep_client && upload.is_done(),
                keep_backend: head.keep_backend && upload.is_done() && ended_cleanly,
            }),
            Err(failed) => Err(failed.after(head.status, content)),
        }
    }
}

/// What the route that took the request changes in one of its messages.
fn edits_of(config: &Config, of: impl Fn(&RouteConfig) -> &Vec<FieldEdit>) -> &[FieldEdit] {
    config.taken.as_ref().map_or(&[], |route| of(route))
}

/// What followed a change of protocol is over.
fn over(head: ResponseHead, content: PassedContent) -> Answered {
    Answered { head, content, keep_client: false, keep_backend: false }
}

/// Waiting for the response's head.
struct Waiting<'a> {
    deadline: &'a Deadline,
    config: &'a Config,
    head: &'a RequestHead,
    worker: &'a Worker,
    accepted: &'a Accepted,
    keep: bool,
    first_byte: Duration,
    /// The worker's time when the request began to be sent.
    began_ms: u64,
    loads: Option<HeaderLoads<'a>>,
    more: &'a [u8],
    /// The head of the request, and perhaps more behind it.
    request: &'a [u8],
    compressors: &'a Compressors,
}

impl Waiting<'_> {
    /// The protocol to which the client wants to change.
    fn protocol(&self) -> Option<&str> {
        let place = usize::from(self.head.upgrade?);
        self.config.limits.upgrades.get(place).map(|protocol| &*protocol.0)
    }

    /// Sends the request and reads until the head of the final response is there, and rewritten in `out`. Interim
    /// responses go to the client at once.
    async fn response<I: Input, O: AsyncWrite + Unpin>(
        &self,
        upload: &mut Upload<'_, I, O>,
        from: &mut (impl AsyncRead + Unpin),
        client: &mut (impl AsyncWrite + Unpin),
        (response, out): (&mut Buffer, &mut Vec<u8>),
        stalling: &mut Stalling<'_>,
    ) -> Result<ResponseHead, Failure> {
        let mut asked_ms = (!self.head.expects_continue).then_some(self.began_ms);
        for _ in 0..=MOST_INTERIM {
            let length = self.head_end(upload, from, response, stalling, asked_ms).await?;
            out.clear();
            let has_room = || self.has_room_to_compress();
            let is_closing = self.accepted.closing.load(Ordering::Relaxed);
            let context = response::ResponseContext {
                fields: self.config.limits.fields,
                to_head: self.head.is_head,
                upgrade: self.protocol(),
                client: self.head.version,
                keep_client: self.keep && !is_closing && upload.is_done(),
                edits: edits_of(self.config, |route| &route.response_fields),
                more: self.more,
                compression: self.compression(&has_room),
                date: &self.worker.date(),
            };
            let head = response::rewrite(&response.data()[..length], &context, out)?;
            if let Some(loads) = self.loads {
                loads.take(&response.data()[..length]);
            }
            response.consume(length);
            if head.status >= 200 || head.changes_protocol() {
                return Ok(head);
            }
            if head.status == 100 {
                asked_ms.get_or_insert(self.deadline.now_ms());
            }
            if self.head.version != HttpVersion::Http10 {
                let mut written = 0;
                let write =
                    self.deadline.guard(|cx| poll_write_all(cx, client, &[&out[..]], &mut written)).await;
                match write {
                    Ok(Ok(())) => {}
                    Err(Fired::TimedOut) => {
                        return Err(Failure::ClientTimeout { content: PassedContent::default() });
                    }
                    Err(Fired::Stopped) if written == 0 => return Err(Failure::Stopped),
                    _ => return Err(Failure::ClientGone),
                }
            }
        }
        Err(Failure::OverLimit("too many interim responses"))
    }

    /// Whether the request could be sent to another back-end now.
    fn has_retry(&self) -> bool {
        self.worker.shared.in_pool(self.head.pool, |pool| pool.retries().left > 0).unwrap_or(false)
    }

    /// How the response is compressed.
    fn compression<'c>(&'c self, has_room: &'c dyn Fn() -> bool) -> Option<ResponseCompression<'c>> {
        let config = self.config.compression.as_ref()?;
        Some(ResponseCompression { config, coding: self.head.coding, has_room, request: self.request })
    }

    fn has_room_to_compress(&self) -> bool {
        self.config.compression.as_ref().is_some_and(|config| self.compressors.has_room(config))
    }

    /// Reads until `response` starts with a whole head; its length. `asked_ms` is the worker's time when the client was asked
    /// for the body; `None` while it waits for the back-end to ask.
    async fn head_end<I: Input, O: AsyncWrite + Unpin>(
        &self,
        upload: &mut Upload<'_, I, O>,
        from: &mut (impl AsyncRead + Unpin),
        response: &mut Buffer,
        stalling: &mut Stalling<'_>,
        asked_ms: Option<u64>,
    ) -> Result<usize, Failure> {
        let mut scan = HeadScan::of_response();
        let mut steps = None;
        let mut client_watched = true;
        loop {
            match scan.scan(response.data()) {
                HeadEnd::At(length) if length <= self.config.limits.head_bytes => return Ok(length),
                HeadEnd::Open if response.len() < self.config.limits.head_bytes => {}
                _ => return Err(Failure::OverLimit("a head that is too long")),
            }
            let read = self
                .deadline
                .guard(|cx| {
                    if let Poll::Ready(Err(failure)) =
                        self.poll_upload(cx, upload, &mut steps, stalling, asked_ms)
                    {
                        return Poll::Ready(Err(failure));
                    }
                    let filled = response.poll_fill(cx, from).map_err(|error| lost(&error));
                    // Nobody looks while an answer comes: writing it finds that out.
                    let looks = !matches!(filled, Poll::Ready(Ok(1..))) && client_watched;
                    if looks && upload.is_done() && upload.client().is_reset(cx, &mut client_watched) {
                        return Poll::Ready(Err(Failure::ClientGone));
                    }
                    filled
                })
                .await;
            match read {
                Ok(Ok(0) | Err(Failure::Lost))
                    if response.is_empty() && waits_for_client(upload, asked_ms) =>
                {
                    return Err(Failure::LostPatience);
                }
                Ok(Ok(0)) if response.is_empty() => return Err(Failure::Lost),
                Ok(Ok(0)) => return Err(Failure::BadResponse("a head that was cut off")),
                Ok(Ok(_)) => {}
                Ok(Err(Failure::Lost | Failure::NotProcessed)) if !response.is_empty() => {
                    return Err(Failure::BadResponse("a head that was cut off"));
                }
                Ok(Err(failure)) => return Err(failure),
                Err(Fired::Stopped) => return Err(Failure::Stopped),
                Err(Fired::InDoubt) if response.is_empty() && self.has_retry() => {
                    return Err(Failure::BackendDown);
                }
                Err(Fired::InDoubt) => self.deadline.stay(),
                Err(Fired::BackendDown) if response.is_empty() => return Err(Failure::BackendDown),
                Err(Fired::BackendDown) => return Err(Failure::BadResponse("a head that was cut off")),
                Err(Fired::TimedOut) if waits_for_client(upload, asked_ms) && !stalling.is_stalled() => {
                    stalling.stall();
                    steps = None;
                }
                Err(_) if waits_for_client(upload, asked_ms) => {
                    return Err(Failure::BadRequest(RequestRefusal::BODY_TOO_SLOW));
                }
                Err(_) => return Err(Failure::TimedOut),
            }
        }
    }

    /// Moves the request on and, when it moved, the deadline.
    fn poll_upload<I: Input, O: AsyncWrite + Unpin>(
        &self,
        cx: &mut Context<'_>,
        upload: &mut Upload<'_, I, O>,
        steps: &mut Option<u64>,
        stalling: &mut Stalling<'_>,
        asked_ms: Option<u64>,
    ) -> Poll<Result<(), Failure>> {
        let result = if upload.is_done() { Poll::Ready(Ok(())) } else { upload.poll(cx) };
        if *steps != Some(upload.steps) {
            *steps = Some(upload.steps);
            let timeouts = &self.config.timeouts;
            if upload.is_done() {
                stalling.resume();
                self.deadline.set(self.first_byte);
            } else if upload.waits_for_client && !waits_for_client(upload, asked_ms) {
                self.deadline.set(self.first_byte);
            } else {
                let since_ms = asked_ms.unwrap_or(self.began_ms);
                let waited_ms = self.deadline.now_ms().saturating_sub(since_ms);
                let wait = Pace::default().after(waited_ms).next(timeouts.body, upload.content_bytes);
                self.deadline.set(if upload.waits_for_client {
                    stalling.next(wait, waited_ms)
                } else {
                    wait
                });
            }
        }
        match result {
            Poll::Ready(Err(UploadFailed::ClientGone)) => Poll::Ready(Err(Failure::ClientGone)),
            Poll::Ready(Err(UploadFailed::Refused(refusal))) => {
                Poll::Ready(Err(Failure::BadRequest(refusal)))
            }
            // It may have answered without waiting for the body; the answer is read, or its absence found out.
            Poll::Ready(Err(UploadFailed::Backend)) | Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
        }
    }
}

/// What an error of a back-end's connection means before an answer.
fn lost(error: &io::Error) -> Failure {
    match error.kind() {
        http2::NOT_PROCESSED => Failure::NotProcessed,
        http2::UNSAYABLE => {
            Failure::BadRequest(RequestRefusal::of(501, "the back-end cannot be asked for this by HTTP/2"))
        }
        _ => Failure::Lost,
    }
}

/// Whether only the client is waited for. While it waits for the back-end to ask for the body, the back-end is.
fn waits_for_client<I, O>(upload: &Upload<'_, I, O>, asked_ms: Option<u64>) -> bool {
    upload.waits_for_client && (asked_ms.is_some() || upload.content_bytes > 0)
}
