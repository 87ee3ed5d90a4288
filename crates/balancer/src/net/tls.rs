//! A client's connection under TLS, independent of what is spoken inside.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use plimsoll_tls::client_fields;
use rustls::{HandshakeKind, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

use super::halves::{ClientIo, Halves, Input};
use super::shared_halves::HalfOf;
use super::stream::ClientStream;

/// Who counts handshakes.
pub(crate) trait TlsHandshakes {
    /// One that succeeded, `resumed` or in full.
    fn shaken(&self, resumed: bool);

    /// One that failed.
    fn failed(&self, error: &io::Error);
}

/// A client's connection under TLS.
pub(crate) struct TlsClient(RefCell<Secured>);

/// A connection on which the handshake is done with the first reading.
pub(crate) struct Secured {
    state: State,
    counts: Rc<dyn TlsHandshakes>,
    /// Fields that tell who the client is.
    identity: Option<Rc<[u8]>>,
    /// It is to be reset, so nobody is told that it ends well.
    is_cut: bool,
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

impl TlsClient {
    /// A connection whose client speaks first.
    pub(crate) fn new(
        stream: ClientStream,
        config: Arc<ServerConfig>,
        counts: Rc<dyn TlsHandshakes>,
    ) -> Self {
        let state = State::Handshake(Box::new(TlsAcceptor::from(config).accept(stream)));
        Self(RefCell::new(Secured { state, counts, identity: None, is_cut: false }))
    }
}

impl Secured {
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

impl Halves for TlsClient {
    type Input<'a> = HalfOf<'a, Secured>;
    type Output<'a> = HalfOf<'a, Secured>;

    fn halves(&mut self) -> io::Result<(HalfOf<'_, Secured>, HalfOf<'_, Secured>)> {
        Ok((HalfOf(&self.0), HalfOf(&self.0)))
    }
}

impl ClientIo for TlsClient {
    fn poll_begun(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.0.borrow().state {
            // Whoever reads drives it.
            State::Handshake(_) => Poll::Ready(Ok(())),
            // There is something decrypted, or the end.
            State::Open(stream) if !stream.get_ref().1.wants_read() => Poll::Ready(Ok(())),
            State::Open(stream) => stream.get_ref().0.poll_begun(cx),
            State::Gone => Poll::Ready(Err(gone())),
        }
    }

    fn acknowledge(&mut self) {
        if let State::Open(stream) = &mut self.0.get_mut().state {
            stream.get_mut().0.acknowledge();
        }
    }

    fn identity(&self) -> Option<Rc<[u8]>> {
        self.0.borrow().identity.clone()
    }

    fn end_output(&mut self) -> bool {
        match &mut self.0.get_mut().state {
            State::Open(stream) => {
                // What cannot be sent now would come too late: the client does not read.
                let _ = Pin::new(&mut **stream).poll_shutdown(&mut Context::from_waker(Waker::noop()));
                stream.get_mut().0.end_output()
            }
            State::Handshake(_) | State::Gone => false,
        }
    }

    fn reset(&mut self) {
        let secured = self.0.get_mut();
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
        ready!(self.poll_open(cx))?.poll_read(cx, room)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(cx))?.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(cx))?.poll_write_vectored(cx, pieces)
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

impl AsyncRead for TlsClient {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.get_mut().0.get_mut()).poll_read(cx, room)
    }
}

impl AsyncWrite for TlsClient {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.get_mut().0.get_mut()).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.get_mut().0.get_mut()).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.get_mut().0.get_mut()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.get_mut().0.get_mut()).poll_shutdown(cx)
    }
}
