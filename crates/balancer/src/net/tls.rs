//! A client's connection under TLS, independent of what is spoken inside.

use std::io::{self, IoSlice, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use plimsoll_tls::client_fields;
use rustls::{HandshakeKind, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

use super::halves::{ClientIo, Input, OutputHalf};
use super::shared_halves::SharedHalves;
use super::stream::ClientStream;

/// Who counts handshakes.
pub(crate) trait TlsHandshakes {
    /// One that succeeded, `resumed` or in full.
    fn shaken(&self, resumed: bool);

    /// One that failed.
    fn failed(&self, error: &io::Error);
}

/// A client's connection under TLS.
pub(crate) type TlsClient = SharedHalves<Secured>;

/// A connection on which the handshake is done with the first reading.
pub(crate) struct Secured {
    state: State,
    counts: Rc<dyn TlsHandshakes>,
    /// Fields that tell who the client is.
    identity: Option<Rc<[u8]>>,
    /// It is to be reset, so nobody is told that it ends well.
    is_cut: bool,
    /// What is written is held back until it is flushed, or there is much of it.
    holds_output: bool,
}

enum State {
    Handshake(Box<Accept<ClientStream>>),
    Open(Box<TlsStream<ClientStream>>),
    /// The handshake failed.
    Gone,
}

fn gone() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl Secured {
    /// A connection whose client speaks first.
    pub(crate) fn client(
        stream: ClientStream,
        config: Arc<ServerConfig>,
        counts: Rc<dyn TlsHandshakes>,
    ) -> TlsClient {
        let state = State::Handshake(Box::new(TlsAcceptor::from(config).accept(stream)));
        SharedHalves::new(Self { state, counts, identity: None, is_cut: false, holds_output: false })
    }

    /// The open connection, once the handshake is done.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Pin<&mut TlsStream<ClientStream>>>> {
        if let State::Handshake(handshake) = &mut self.state {
            self.state = match ready!(Pin::new(&mut **handshake).poll(cx)) {
                Ok(stream) => {
                    let session = stream.get_ref().1;
                    self.counts.shaken(session.handshake_kind() == Some(HandshakeKind::Resumed));
                    let certificate = session.peer_certificates().and_then(|all| all.first());
                    self.identity = certificate.map(client_fields).map(Rc::from);
                    State::Open(Box::new(stream))
                }
                Err(error) => {
                    self.counts.failed(&error);
                    State::Gone
                }
            };
        }
        Poll::Ready(match &mut self.state {
            State::Open(stream) => Ok(Pin::new(stream)),
            State::Handshake(_) | State::Gone => Err(gone()),
        })
    }
}

impl ClientIo for TlsClient {
    fn poll_begun(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.state().state {
            // Whoever reads drives it.
            State::Handshake(_) => Poll::Ready(Ok(())),
            // There is something decrypted, or the end.
            State::Open(stream) if !stream.get_ref().1.wants_read() => Poll::Ready(Ok(())),
            State::Open(stream) => stream.get_ref().0.poll_begun(cx),
            State::Gone => Poll::Ready(Err(gone())),
        }
    }

    fn acknowledge(&mut self) {
        if let State::Open(stream) = &mut self.state_mut().state {
            stream.get_mut().0.acknowledge();
        }
    }

    fn agreed_on_http2(&self) -> bool {
        match &self.state().state {
            State::Open(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
            State::Handshake(_) | State::Gone => false,
        }
    }

    fn identity(&self) -> Option<Rc<[u8]>> {
        self.state().identity.clone()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        match &self.state().state {
            State::Open(stream) => stream.get_ref().0.local_address(),
            State::Handshake(_) | State::Gone => None,
        }
    }

    fn sent_bytes(&self) -> u64 {
        match &self.state().state {
            State::Open(stream) => stream.get_ref().0.sent_bytes(),
            State::Handshake(_) | State::Gone => 0,
        }
    }

    fn hold_output(&mut self) {
        self.state_mut().holds_output = true;
    }

    fn end_output(&mut self) -> bool {
        match &mut self.state_mut().state {
            State::Open(stream) => {
                // What cannot be sent now would come too late: the client does not read.
                let _ = Pin::new(&mut **stream).poll_shutdown(&mut Context::from_waker(Waker::noop()));
                stream.get_mut().0.end_output()
            }
            State::Handshake(_) | State::Gone => false,
        }
    }

    fn reset(&mut self) {
        let secured = self.state_mut();
        secured.is_cut = true;
        if let State::Open(stream) = &mut secured.state {
            stream.get_mut().0.reset();
        }
    }
}

/// The client is told that the connection ends here, as far as it takes that at once (RFC 8446, section 6.1).
impl Drop for Secured {
    fn drop(&mut self) {
        if let State::Open(stream) = &mut self.state
            && !self.is_cut
        {
            stream.get_mut().1.send_close_notify();
            let _ = Pin::new(stream).poll_flush(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl Input for Secured {
    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = match &mut self.state {
            State::Handshake(handshake) => handshake.get_mut(),
            State::Open(stream) => Some(stream.get_mut().0),
            State::Gone => None,
        };
        match socket.map_or_else(|| Err(gone()), ClientStream::watched) {
            Ok(socket) => socket.poll_peek(cx, &mut ReadBuf::new(&mut [0])).map_ok(drop),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let holds = self.holds_output;
        let mut stream = ready!(self.poll_open(cx))?;
        let read = stream.as_mut().poll_read(cx, room);
        // Reading may have asked for words of TLS itself, such as the one that nothing is negotiated anew. Whoever holds output sends it soon.
        if read.is_pending() && !holds && stream.get_ref().1.wants_write() {
            let _ = stream.poll_flush(cx);
        }
        read
    }
}

/// Encrypts what there is room for. Nothing goes out unless there is no room; a flush sends it.
fn poll_hold(
    mut stream: Pin<&mut TlsStream<ClientStream>>,
    cx: &mut Context<'_>,
    pieces: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    loop {
        let n = stream.as_mut().get_mut().get_mut().1.writer().write_vectored(pieces)?;
        if n > 0 || pieces.iter().all(|piece| piece.is_empty()) {
            return Poll::Ready(Ok(n));
        }
        ready!(stream.as_mut().poll_flush(cx))?;
    }
}

impl OutputHalf for Secured {}

impl AsyncWrite for Secured {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let holds = self.holds_output;
        let stream = ready!(self.poll_open(cx))?;
        if holds { poll_hold(stream, cx, &[IoSlice::new(bytes)]) } else { stream.poll_write(cx, bytes) }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let holds = self.holds_output;
        let stream = ready!(self.poll_open(cx))?;
        if holds { poll_hold(stream, cx, pieces) } else { stream.poll_write_vectored(cx, pieces) }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_open(cx))?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_open(cx))?.poll_shutdown(cx)
    }
}
