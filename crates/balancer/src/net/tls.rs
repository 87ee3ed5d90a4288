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
use super::stream::ClientStream;

/// Who counts handshakes.
pub(crate) trait HandshakeCounts {
    /// One that succeeded, `resumed` or in full.
    fn shaken(&self, resumed: bool);

    /// One that failed.
    fn failed(&self, error: &io::Error);
}

/// A connection on which the handshake is done with the first reading.
pub(crate) struct TlsClient {
    state: RefCell<State>,
    counts: Rc<dyn HandshakeCounts>,
    /// It is to be reset, so nobody is told that it ends well.
    is_cut: bool,
}

enum State {
    /// In boxes, as the second one is small.
    Handshake(Box<Accept<ClientStream>>),
    /// With the fields that tell who the client is.
    Open(Box<TlsStream<ClientStream>>, Option<Rc<[u8]>>),
    /// The handshake failed.
    Gone,
}

impl TlsClient {
    /// A connection whose client speaks first.
    pub(crate) fn new(
        stream: ClientStream,
        config: Arc<ServerConfig>,
        counts: Rc<dyn HandshakeCounts>,
    ) -> Self {
        let handshake = TlsAcceptor::from(config).accept(stream);
        Self { state: RefCell::new(State::Handshake(Box::new(handshake))), counts, is_cut: false }
    }

    /// Does something with the open connection, once the handshake is done.
    fn poll_open<T>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut TlsStream<ClientStream>>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut state = self.state.borrow_mut();
        if let State::Handshake(handshake) = &mut *state {
            let done = ready!(Pin::new(&mut **handshake).poll(cx));
            *state = match done {
                Ok(stream) => {
                    self.counts.shaken(stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed));
                    let certificates = stream.get_ref().1.peer_certificates();
                    let identity = certificates.and_then(|all| all.first()).map(client_fields).map(Rc::from);
                    State::Open(Box::new(stream), identity)
                }
                Err(error) => {
                    self.counts.failed(&error);
                    State::Gone
                }
            };
        }
        match &mut *state {
            State::Open(stream, _) => poll(Pin::new(stream), cx),
            State::Handshake(_) | State::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn socket(state: &State) -> Option<&ClientStream> {
        match state {
            State::Handshake(handshake) => handshake.get_ref(),
            State::Open(stream, _) => Some(stream.get_ref().0),
            State::Gone => None,
        }
    }
}

/// Bytes from the client, in the clear.
pub(crate) struct TlsInput<'a>(&'a TlsClient);
/// Bytes to the client, in the clear.
pub(crate) struct TlsOutput<'a>(&'a TlsClient);

impl Halves for TlsClient {
    type Input<'a> = TlsInput<'a>;
    type Output<'a> = TlsOutput<'a>;

    fn halves(&mut self) -> io::Result<(TlsInput<'_>, TlsOutput<'_>)> {
        Ok((TlsInput(self), TlsOutput(self)))
    }
}

impl ClientIo for TlsClient {
    fn poll_begun(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &*self.state.borrow() {
            // Whoever reads drives it.
            State::Handshake(_) => Poll::Ready(Ok(())),
            // There is something decrypted, or the end.
            State::Open(stream, _) if !stream.get_ref().1.wants_read() => Poll::Ready(Ok(())),
            State::Open(stream, _) => stream.get_ref().0.poll_begun(cx),
            State::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn identity(&self) -> Option<Rc<[u8]>> {
        match &*self.state.borrow() {
            State::Open(_, identity) => identity.clone(),
            State::Handshake(_) | State::Gone => None,
        }
    }

    fn end_output(&mut self) -> bool {
        let mut state = self.state.borrow_mut();
        match &mut *state {
            State::Open(stream, _) => {
                // What cannot be sent now would come too late: the client does not read.
                let _ = Pin::new(&mut **stream).poll_shutdown(&mut Context::from_waker(Waker::noop()));
                stream.get_mut().0.end_output()
            }
            State::Handshake(_) | State::Gone => false,
        }
    }

    fn reset(&mut self) {
        self.is_cut = true;
        if let State::Open(stream, _) = self.state.get_mut() {
            stream.get_mut().0.reset();
        }
    }
}

/// The client is told that the connection ends here, as far as it takes that at once (RFC 8446, section 6.1).
impl Drop for TlsClient {
    fn drop(&mut self) {
        if self.is_cut {
            return;
        }
        if let State::Open(stream, _) = self.state.get_mut() {
            stream.get_mut().1.send_close_notify();
            let _ = Pin::new(&mut **stream).poll_flush(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl Input for TlsInput<'_> {
    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let state = self.0.state.borrow();
        match TlsClient::socket(&state) {
            Some(stream) => stream.poll_broken(cx),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl AsyncRead for TlsInput<'_> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.poll_open(cx, |stream, cx| stream.poll_read(cx, room))
    }
}

impl AsyncWrite for TlsOutput<'_> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_open(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_open(cx, |stream, cx| stream.poll_write_vectored(cx, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_open(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_open(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}

impl AsyncRead for TlsClient {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut TlsInput(&self)).poll_read(cx, room)
    }
}

impl AsyncWrite for TlsClient {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut TlsOutput(&self)).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut TlsOutput(&self)).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut TlsOutput(&self)).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut TlsOutput(&self)).poll_shutdown(cx)
    }
}
