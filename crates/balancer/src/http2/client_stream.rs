//! Streams that clients open.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::Request;
use tokio::io::AsyncReadExt as _;

use super::incoming::{IncomingText, broken};
use super::meter::FrameAccount;
use super::outgoing::{BeginsStream, BegunStream};
use super::stream::{StreamEnd, StreamText};
use super::text::{self, ReadHead, TextFraming};
use crate::net::halves::ClientIo;
use crate::net::shared_halves::SharedHalves;

/// How long a client that sends on after its answer is listened to, and for how many bytes.
const LINGER: Duration = Duration::from_millis(200);
const LINGER_BYTES: usize = 1 << 20;

/// The front-end's end of a stream that a client has opened.
pub(crate) struct AnswersClient {
    respond: SendResponse<Bytes>,
    /// The request is HEAD.
    to_head: bool,
    /// Who its client is.
    identity: Option<Rc<[u8]>>,
    account: FrameAccount,
    /// Bytes of interim heads, which wait for the client however slowly it takes them.
    interim_bytes: usize,
}

/// The most of them; further ones are left out, but for `100 Continue` without fields.
const MOST_INTERIM_BYTES: usize = 16 << 10;

impl BeginsStream for AnswersClient {
    fn begin(&mut self, head: &Bytes) -> io::Result<Option<BegunStream>> {
        let head_bytes = head.len();
        let ReadHead { head, framing, length } =
            text::read_response(head, self.to_head).ok_or(io::ErrorKind::InvalidData)?;
        self.account.piece();
        if framing != TextFraming::Tunnel && head.status().is_informational() {
            self.interim_bytes = self.interim_bytes.saturating_add(head_bytes);
            let mut head = head;
            let is_awaited = head.status() == http::StatusCode::CONTINUE;
            if self.interim_bytes > MOST_INTERIM_BYTES {
                // What the client waits for, and nothing else.
                head.headers_mut().clear();
            }
            if self.interim_bytes <= MOST_INTERIM_BYTES || is_awaited {
                self.respond.send_informational(head).map_err(broken)?;
            }
            return Ok(None);
        }
        self.account.answered();
        let ends = framing == TextFraming::None;
        let body = self.respond.send_response(head, ends).map_err(broken)?;
        Ok(Some(BegunStream { body: Some(body).filter(|_| !ends), framing, length }))
    }

    fn began_piece(&mut self) {
        self.account.piece();
    }

    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Result<Reason, h2::Error>> {
        self.respond.poll_reset(cx)
    }
}

impl StreamEnd for AnswersClient {
    fn poll_head(&mut self, _: &mut Context<'_>, _: &mut IncomingText) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self) {
        self.respond.send_reset(Reason::INTERNAL_ERROR);
    }
}

/// A request of a client on a stream of its own.
pub(crate) type ClientStreamText = SharedHalves<StreamText<AnswersClient>>;

/// The request that has come. `identity`: who its client is, as in [`ClientIo::identity`]. What its answer earns goes to `account`.
///
/// # Errors
/// With what no conversion may hold; the stream is reset then.
pub(super) fn client_stream(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    identity: Option<Rc<[u8]>>,
    account: FrameAccount,
) -> Result<ClientStreamText, &'static str> {
    let (head, body) = request.into_parts();
    let mut text = Vec::with_capacity(256);
    let framing = match text::write_request(&head, body.is_end_stream(), &mut text) {
        Ok(framing) => framing,
        Err(why) => {
            respond.send_reset(Reason::PROTOCOL_ERROR);
            return Err(why);
        }
    };
    let mut incoming = IncomingText::new();
    incoming.begin(text, framing, body);
    let end = AnswersClient {
        respond,
        to_head: head.method == http::Method::HEAD,
        identity,
        account,
        interim_bytes: 0,
    };
    Ok(SharedHalves::new(StreamText::new(end, incoming)))
}

impl ClientStreamText {
    /// Whether the answer is out, and more of the request is to come.
    pub(crate) fn awaits_rest(&self) -> bool {
        self.state().awaits_rest()
    }

    /// Reads what the client still sends, for a while. The stream is reset when it is dropped: a client that gets that together with
    /// the answer, as curl 7.88, takes the answer for failed.
    pub(crate) async fn linger(&mut self) {
        let rest = async {
            let mut buffer = vec![0; 16 << 10];
            let mut left_bytes = LINGER_BYTES;
            while left_bytes > 0 {
                match self.read(&mut buffer).await {
                    Ok(0) | Err(_) => return,
                    Ok(count) => left_bytes = left_bytes.saturating_sub(count),
                }
            }
        };
        // Whether it has ended or not.
        let _ = tokio::time::timeout(LINGER, rest).await;
    }
}

impl ClientIo for ClientStreamText {
    fn poll_begun(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The request is there; behind it is the end.
        Poll::Ready(Ok(()))
    }

    fn end_output(&mut self) -> bool {
        // A stream ends with its message; nothing of the connection is to be read on its account.
        false
    }

    fn reset(&mut self) {
        self.state_mut().reset();
    }

    fn is_http2(&self) -> bool {
        true
    }

    fn identity(&self) -> Option<Rc<[u8]>> {
        self.state().end().identity.clone()
    }
}
