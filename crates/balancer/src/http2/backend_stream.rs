//! Streams to back-ends.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::Reason;
use h2::client::{ResponseFuture, SendRequest};
use h2::ext::Protocol;

use super::incoming::{IncomingText, NOT_PROCESSED, UNSAYABLE, broken};
use super::outgoing::{BeginsStream, BegunStream};
use super::stream::{StreamEnd, StreamText};
use super::text::{self, ReadHead, TextFraming, WebSocketKey};

/// A stream to a back-end, which its request opens.
pub(crate) type BackendStreamText = RefCell<StreamText<AsksBackend>>;

/// A stream by these requests; its connection counts it by `one_more`, and was opened for it if `is_first`.
pub(super) fn backend_stream(
    requests: SendRequest<Bytes>,
    scheme: &'static str,
    one_more: Arc<()>,
    is_first: bool,
) -> BackendStreamText {
    RefCell::new(StreamText::new(
        AsksBackend { requests, scheme, asked: Asked::Nothing, is_first, _one_more: one_more },
        IncomingText::new(),
    ))
}

/// What is waited for.
enum Asked {
    /// The request is yet to be sent.
    Nothing,
    /// It cannot be sent, for an error of this kind.
    InVain(io::ErrorKind),
    Answer {
        answer: ResponseFuture,
        /// The request was HEAD.
        to_head: bool,
        /// The protocol that the request asks for, and the key with which it does.
        upgrade: Option<(Protocol, Option<WebSocketKey>)>,
    },
}

/// The front-end's end of a stream to a back-end.
pub(crate) struct AsksBackend {
    requests: SendRequest<Bytes>,
    scheme: &'static str,
    asked: Asked,
    /// Whether its connection was opened for it.
    pub(crate) is_first: bool,
    /// By which its connection counts its streams.
    _one_more: Arc<()>,
}

impl AsksBackend {
    fn ask(&mut self, head: &Bytes) -> io::Result<BegunStream> {
        let ReadHead { head, framing, length } = text::read_request(head, self.scheme).ok_or(UNSAYABLE)?;
        let protocol = head.extensions().get::<Protocol>().cloned();
        if protocol.is_some() && !self.requests.is_extended_connect_protocol_enabled() {
            return Err(io::Error::new(UNSAYABLE, "the back-end changes no protocol (RFC 8441)"));
        }
        let upgrade = protocol.map(|protocol| (protocol, head.extensions().get().cloned()));
        let to_head = head.method() == http::Method::HEAD;
        let ends = framing == TextFraming::None;
        let sent = self.requests.send_request(head, ends);
        let (answer, body) = sent.map_err(|error| {
            // Of the connection, or of this request.
            let kind = if error.is_io() || error.is_go_away() { NOT_PROCESSED } else { UNSAYABLE };
            io::Error::new(kind, error)
        })?;
        self.asked = Asked::Answer { answer, to_head, upgrade };
        Ok(BegunStream { body: Some(body).filter(|_| !ends), framing, length })
    }
}

impl BeginsStream for AsksBackend {
    fn begin(&mut self, head: &Bytes) -> io::Result<Option<BegunStream>> {
        let begun = self.ask(head).inspect_err(|error| {
            tracing::debug!(%error, "a request cannot be sent by HTTP/2");
            self.asked = Asked::InVain(error.kind());
        })?;
        Ok(Some(begun))
    }

    fn poll_reset(&mut self, _: &mut Context<'_>) -> Poll<Result<Reason, h2::Error>> {
        // Reading tells.
        Poll::Pending
    }
}

impl StreamEnd for AsksBackend {
    fn poll_head(&mut self, cx: &mut Context<'_>, incoming: &mut IncomingText) -> Poll<io::Result<()>> {
        let (answer, to_head, upgrade) = match &mut self.asked {
            Asked::Nothing => return Poll::Pending,
            Asked::InVain(kind) => return Poll::Ready(Err((*kind).into())),
            Asked::Answer { answer, to_head, upgrade } => (answer, *to_head, upgrade),
        };
        let mut text = Vec::with_capacity(256);
        if let Poll::Ready(Some(interim)) = answer.poll_informational(cx) {
            let (head, ()) = interim.map_err(broken)?.into_parts();
            text::write_response(&head, (true, true), &mut text).map_err(io::Error::other)?;
            incoming.interim(text);
            return Poll::Ready(Ok(()));
        }
        let (head, body) = ready!(Pin::new(answer).poll(cx)).map_err(broken)?.into_parts();
        if let Some((protocol, key)) = upgrade.as_ref().filter(|_| head.status.is_success()) {
            text::write_upgraded(&head, protocol, key.as_ref(), &mut text).map_err(io::Error::other)?;
            incoming.begin(text, TextFraming::Tunnel, body);
            return Poll::Ready(Ok(()));
        }
        let ends = (body.is_end_stream(), to_head);
        let framing = text::write_response(&head, ends, &mut text).map_err(io::Error::other)?;
        incoming.begin(text, framing, body);
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self) {
        // Nothing has been sent.
    }
}
