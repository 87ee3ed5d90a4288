//! Holds the bodies of requests until they are whole, where they may be held.

use std::time::Instant;

use super::client::Client;
use super::read_body::{MayHold, NoBody, may_begin, read_body};
use super::read_chunked::{decode_whole, read_chunked};
use super::then::Then;
use crate::account::End;
use crate::http::reframed::announce_length;
use crate::http::request::RequestHead;
use crate::http::{Framing, HttpVersion, RequestRefusal};
use crate::mechanism::carry::Mechanism;
use crate::net::halves::ClientIo;
use crate::observe::CLIENT_GONE;
use crate::refusal_reason::RefusalReason;
use crate::request;
use crate::worker::Scratch;

impl<'a, M: Mechanism, C: ClientIo> Client<'a, M, C> {
    /// Reads a body that may be held, or a part of it; a chunked one that is whole says its length then. Returns what happens otherwise
    /// when it does not come.
    pub(super) async fn hold_body(
        &mut self,
        head: &mut RequestHead,
        scratch: &mut Scratch,
        received: Instant,
    ) -> Option<Then<M::Parcel>> {
        let read = match head.framing {
            // It is the back-end that asks for it.
            _ if head.expects_continue => return None,
            Framing::Length(length) => self.hold_length(usize::try_from(length).ok()?, scratch).await,
            // By HTTP/2 it may be a stream of messages both ways.
            Framing::Chunked if head.version == HttpVersion::Http11 => self.hold_chunked(head, scratch).await,
            _ => return None,
        };
        match read {
            Ok(()) => None,
            Err(no_body) => Some(self.without_body(no_body, head, scratch, received).await),
        }
    }

    async fn hold_length(&mut self, length: usize, scratch: &mut Scratch) -> Result<(), NoBody> {
        let may_hold = self.may_hold();
        if !may_begin(&scratch.input, length, may_hold) {
            return Ok(());
        }
        let (input, timeout) = (&mut scratch.input, self.config.timeouts.body);
        read_body(self.stream, input, length, may_hold, &self.deadline, timeout).await
    }

    async fn hold_chunked(&mut self, head: &mut RequestHead, scratch: &mut Scratch) -> Result<(), NoBody> {
        let may_hold = self.may_hold();
        let (limits, timeout) = (&self.config.limits, self.config.timeouts.body);
        let input = &mut scratch.input;
        let read = read_chunked(self.stream, input, limits, may_hold, &self.deadline, timeout).await?;
        if let Some(body) = read
            && announce_length(head, &mut scratch.head, body.content)
        {
            decode_whole(input, body, limits);
        }
        Ok(())
    }

    fn may_hold(&self) -> MayHold<'a> {
        let (service, limits) = (self.service, &self.config.limits);
        // A connection that moves to another machine does so with all that has been read of it.
        let may_move = service.mechanism.moves_connections() && !self.stream.is_http2();
        let most_bytes = if may_move { 0 } else { limits.held_bytes };
        MayHold { memory: &service.worker.shared.held, most_bytes }
    }

    /// What happens to the connection where no body came.
    async fn without_body(
        &mut self,
        no_body: NoBody,
        head: &RequestHead,
        scratch: &mut Scratch,
        received: Instant,
    ) -> Then<M::Parcel> {
        let refusal = match no_body {
            NoBody::Gone => None,
            NoBody::TooSlow => Some(RequestRefusal::BODY_TOO_SLOW),
            NoBody::MadeRoom => Some(RequestRefusal::BODY_TOO_SLOW.because(RefusalReason::MadeRoom)),
            NoBody::Stopped => Some(request::STOPPING),
            NoBody::Refused(refusal) => Some(refusal),
        };
        let (worker, client) = (&self.service.worker, &self.accepted.peer_text);
        let line = Some(head.line.of(&scratch.head));
        match no_body {
            NoBody::MadeRoom => worker.count_made_room(client, line),
            _ => worker.count_refusal(refusal.and_then(|refusal| refusal.reason), client, line),
        }
        let to_head = head.is_head;
        let end =
            refusal.map_or_else(|| End::unanswered(CLIENT_GONE), |refusal| End::refused(&refusal, to_head));
        self.end(received, (head, &scratch.head[..]), end);
        let Some(refusal) = refusal else { return Then::Over };
        self.write_refusal(refusal, None, to_head, false, &mut scratch.out).await
    }
}
