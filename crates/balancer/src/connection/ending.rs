//! How a connection ends, and our own answers before that.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::client::{Client, route_name};
use super::read_head::NoHead;
use super::then::Then;
use super::{redirect, respond};
use crate::account::{Account, End};
use crate::http::forwarding::told_scheme;
use crate::http::request::RequestHead;
use crate::http::{Framing, HttpVersion, RequestRefusal};
use crate::mechanism::carry::Mechanism;
use crate::net::buffer::Buffer;
use crate::net::deadline::Fired;
use crate::net::halves::ClientIo;
use crate::net::write::poll_write_all;
use crate::observe::{RequestRecord, raw_line};
use crate::worker::Scratch;
use plimsoll_observe::line::Times;

/// How long what a client sends is read and discarded after its answer, and how much of it: many read no answer before they have sent all.
const LINGER_MS: u64 = 30_000;
const LINGER_BYTES: u64 = 1 << 30;
/// How long it may be silent meanwhile, once that more has come.
const LINGER_SILENCE_MS: u64 = 5000;
/// How long more is waited for first, or where the front-end stops.
const LEAST_LINGER_MS: u64 = 1000;

impl<M: Mechanism, C: ClientIo> Client<'_, M, C> {
    /// Whether the connection may be used for another request after this one. A stream of HTTP/2 has one: whatever follows it is none.
    pub(super) fn may_keep(&self, head: &RequestHead) -> bool {
        head.keep_alive
            && !self.stream.is_http2()
            && !self.accepted.closing.load(Ordering::Relaxed)
            && self.start.requests < self.config.limits.requests_per_connection
    }

    /// What happens to the connection where no head came.
    pub(super) async fn without_head(&mut self, why: NoHead, scratch: &mut Scratch) -> Then<M::Parcel> {
        match why {
            NoHead::Gone => Then::Over,
            NoHead::MadeRoom => {
                self.service.worker.count_made_room(&self.accepted.peer_text, None);
                Then::Over
            }
            NoHead::Refused(refusal) => {
                self.deadline.set_incomplete(false);
                self.refuse_head(refusal, scratch).await
            }
        }
    }

    /// Refuses a bad head, after which the connection is unusable.
    pub(super) async fn refuse_head(
        &mut self,
        refusal: RequestRefusal,
        scratch: &mut Scratch,
    ) -> Then<M::Parcel> {
        let times = Times { received: Instant::now(), assigned: None, first_byte: None };
        let worker = &self.service.worker;
        let raw_line = raw_line(scratch.input.data(), self.stream.is_http2());
        let asked = raw_line.map(|line| [line.method, line.target].join(&b' '));
        worker.count_refusal(refusal.reason, &self.accepted.peer_text, asked.as_deref());
        worker.observe(&RequestRecord {
            raw_line,
            refused: refusal.reason,
            content_bytes: refusal.content_bytes(false),
            ..RequestRecord::refused(&self.accepted.peer_text, refusal.status, times)
        });
        self.write_refusal(refusal, None, false, false, &mut scratch.out).await
    }

    /// Sends the client to the same target by HTTPS.
    pub(super) async fn send_to_https(
        &mut self,
        head: &RequestHead,
        port: u16,
        scratch: &mut Scratch,
        received: Instant,
    ) -> Then<M::Parcel> {
        let (keep, date) = (self.keeps_unread(head), self.service.worker.date());
        let is_written = respond::to_https(&scratch.head, head.line, port, keep, &date, &mut scratch.out);
        self.send_away(is_written, (308, keep), head, scratch, received).await
    }

    /// Sends the client where its route says.
    pub(super) async fn send_elsewhere(
        &mut self,
        head: &RequestHead,
        scratch: &mut Scratch,
        received: Instant,
    ) -> Then<M::Parcel> {
        let (keep, date) = (self.keeps_unread(head), self.service.worker.date());
        let Some(route) = self.config.taken.as_ref() else { return Then::Cut };
        let own = if self.accepted.way.secure { "https" } else { "http" };
        let scheme = told_scheme(&scratch.head).unwrap_or(own);
        let is_written =
            redirect::write(route, (&scratch.head, head.line), scheme, keep, &date, &mut scratch.out);
        self.send_away(is_written, (route.redirect_status, keep), head, scratch, received).await
    }

    /// Sends the redirect that was written, if one could be.
    async fn send_away(
        &mut self,
        is_written: bool,
        (status, keep): (u16, bool),
        head: &RequestHead,
        scratch: &mut Scratch,
        received: Instant,
    ) -> Then<M::Parcel> {
        if !is_written {
            let refusal = RequestRefusal::bad_request("no host that the request could be sent to");
            return self.answer_by_route(head, (refusal, None), scratch, received).await;
        }
        self.end(received, (head, &scratch.head), End::unanswered(status));
        self.write_out(keep, &scratch.out).await
    }

    /// Ends the account of a request that no back-end got.
    pub(super) fn end(&self, received: Instant, head: (&RequestHead, &[u8]), end: End) {
        let account = Account::new(received).by_route(route_name(&self.config));
        account.end(&self.service.worker, self.accepted, head, end);
    }

    /// Answers a request that has been understood, but goes to no back-end: as its route says, or because it is refused.
    pub(super) async fn answer_by_route(
        &mut self,
        head: &RequestHead,
        (answer, retry_after_s): (RequestRefusal, Option<u32>),
        scratch: &mut Scratch,
        received: Instant,
    ) -> Then<M::Parcel> {
        let keep = self.keeps_unread(head);
        let worker = &self.service.worker;
        let line = head.line.of(&scratch.head);
        worker.count_refusal(answer.reason, &self.accepted.peer_text, Some(line));
        self.end(received, (head, &scratch.head), End::refused(&answer, head.is_head));
        self.write_refusal(answer, retry_after_s, head.is_head, keep, &mut scratch.out).await
    }

    /// Whether the connection stays usable after an answer to this request before its body was read, which would be taken for the
    /// next request.
    fn keeps_unread(&self, head: &RequestHead) -> bool {
        self.may_keep(head) && head.framing == Framing::None && head.version != HttpVersion::Http10
    }

    pub(super) async fn write_refusal(
        &mut self,
        refusal: RequestRefusal,
        retry_after_s: Option<u32>,
        to_head: bool,
        keep: bool,
        out: &mut Vec<u8>,
    ) -> Then<M::Parcel> {
        respond::answer(refusal, keep, retry_after_s, to_head, &self.service.worker.date(), out);
        self.write_out(keep, out).await
    }

    /// Writes an answer of our own.
    async fn write_out(&mut self, keep: bool, out: &[u8]) -> Then<M::Parcel> {
        self.deadline.set_for_last_words(self.config.timeouts.body);
        let stream = &mut *self.stream;
        let mut written = 0;
        let write = self.deadline.guard(|cx| poll_write_all(cx, stream, &[out], &mut written)).await;
        match write {
            Ok(Ok(())) if keep => Then::Keep,
            Ok(Ok(())) => Then::Close,
            _ => Then::Over,
        }
    }

    /// Ends our side and reads on for a while: closing with unread bytes would reset the connection and take the answer
    /// with it (RFC 9112, section 9.6).
    pub(super) async fn close(&mut self, mut scratch: Scratch) {
        if !self.stream.end_output() {
            return;
        }
        let mut stops = self.accepted.closing.load(Ordering::Relaxed);
        // Whoever stops the front-end is not kept waiting for it, and who needs a place may have this one.
        self.deadline.set_idle(!stops);
        self.deadline.set_incomplete(true);
        let mut until_ms = self.deadline.now_ms() + if stops { LEAST_LINGER_MS } else { LINGER_MS };
        let (mut silence_ms, mut left_bytes) = (LEAST_LINGER_MS, LINGER_BYTES);
        let input: &mut Buffer = &mut scratch.input;
        input.consume(input.len());
        let stream = &mut *self.stream;
        while left_bytes > 0 && self.deadline.now_ms() < until_ms {
            let left_ms = until_ms - self.deadline.now_ms();
            self.deadline.set(Duration::from_millis(silence_ms.min(left_ms)));
            match self.deadline.guard(|cx| input.poll_fill(cx, stream)).await {
                Ok(Ok(n @ 1..)) => {
                    input.consume(n);
                    left_bytes = left_bytes.saturating_sub(n as u64);
                    silence_ms = LINGER_SILENCE_MS;
                }
                Err(Fired::Stopped) if !stops => {
                    stops = true;
                    until_ms = until_ms.min(self.deadline.now_ms() + LEAST_LINGER_MS);
                    self.deadline.set_idle(false);
                }
                _ => return,
            }
        }
    }
}
