//! How a connection ends, and our own answers before that.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::client::{Client, Then};
use super::respond;
use crate::account::{Account, End};
use crate::http::request::RequestHead;
use crate::http::{Framing, HttpVersion, RequestRefusal};
use crate::mechanism::carry::Mechanism;
use crate::net::buffer::Buffer;
use crate::net::halves::ClientIo;
use crate::net::write::poll_write_all;
use crate::observe::RequestRecord;
use crate::worker::Scratch;
use plimsoll_observe::line::Times;

/// How much to read and discard from a client that is told to go, so that it can read the answer, and how
/// long.
const LINGER_BYTES: usize = 1 << 20;
const LINGER: Duration = Duration::from_secs(1);

impl<M: Mechanism, C: ClientIo> Client<'_, M, C> {
    /// Refuses a bad head, after which the connection is unusable.
    pub(super) async fn refuse_head(
        &mut self,
        refusal: RequestRefusal,
        scratch: &mut Scratch,
    ) -> Then<M::Parcel> {
        let times = Times { received: Instant::now(), assigned: None, first_byte: None };
        let worker = &self.service.worker;
        worker.count_refusal(refusal.reason, &self.accepted.peer_text, None);
        worker.observe(&RequestRecord {
            refused: refusal.reason,
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
        // A body that is not read would be taken for the next request.
        let keep = head.keep_alive
            && head.framing == Framing::None
            && head.version == HttpVersion::Http11
            && !self.accepted.closing.load(Ordering::Relaxed)
            && self.requests() < self.config.limits.requests_per_connection;
        let worker = &self.service.worker;
        if !respond::to_https(&scratch.head, head.line, port, keep, &worker.date(), &mut scratch.out) {
            let refusal = RequestRefusal::bad_request("no host that the request could be sent to");
            return self.refuse_head(refusal, scratch).await;
        }
        Account::new(received).end(worker, self.accepted, (head, &scratch.head), End::unanswered(308));
        self.write_out(keep, &scratch.out).await
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
        self.deadline.set(self.config.timeouts.body);
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
        self.deadline.set(LINGER);
        let mut left = LINGER_BYTES;
        let input: &mut Buffer = &mut scratch.input;
        input.consume(input.len());
        let stream = &mut *self.stream;
        while let Ok(Ok(n @ 1..)) = self.deadline.guard(|cx| input.poll_fill(cx, stream)).await {
            input.consume(n);
            left = left.saturating_sub(n);
            if left == 0 {
                return;
            }
        }
    }
}
