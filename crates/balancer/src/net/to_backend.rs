//! A connection to a back-end, with or without TLS.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::backend_tls::BackendTls;
use super::halves::{BackendIo, Halves, Input};
use super::shared_halves::HalfOf;

/// A connection to a back-end.
#[derive(Debug)]
pub(crate) enum ToBackend {
    Plain(TcpStream),
    Secured(Box<RefCell<TlsStream<TcpStream>>>),
}

impl BackendIo for ToBackend {
    async fn open(address: SocketAddr, tls: Option<&BackendTls>) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let Some(BackendTls { client, name }) = tls else { return Ok(Self::Plain(stream)) };
        let secured = TlsConnector::from(client.config()).connect(name.clone(), stream).await?;
        Ok(Self::Secured(Box::new(RefCell::new(secured))))
    }

    /// Readable means the end, an error, or unexpected bytes.
    fn is_open(&self, surely: bool) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        match self {
            Self::Plain(stream) => {
                let quiet = match stream.poll_read_ready(&mut cx) {
                    Poll::Pending => true,
                    // Perhaps only because the last read filled its buffer: the system knows.
                    Poll::Ready(_) => nothing_to_read(stream),
                };
                quiet && (!surely || nothing_to_read(stream))
            }
            // Session tickets come whenever the back-end likes; they are taken, and all else means that it is over.
            Self::Secured(stream) => {
                let mut byte = [0];
                let mut room = ReadBuf::new(&mut byte);
                let mut stream = stream.borrow_mut();
                let quiet = Pin::new(&mut *stream).poll_read(&mut cx, &mut room).is_pending();
                // The event queue may not have told of the end yet.
                quiet && (!surely || nothing_to_read(stream.get_ref().0))
            }
        }
    }
}

fn nothing_to_read(stream: &TcpStream) -> bool {
    let mut byte = [std::mem::MaybeUninit::uninit()];
    let looked = SockRef::from(stream).peek(&mut byte);
    looked.is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock)
}

/// For health checks, which use one direction at a time.
impl AsyncRead for ToBackend {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, room),
            Self::Secured(stream) => Pin::new(stream.get_mut()).poll_read(cx, room),
        }
    }
}

impl AsyncWrite for ToBackend {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Secured(stream) => Pin::new(stream.get_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Secured(stream) => Pin::new(stream.get_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Secured(stream) => Pin::new(stream.get_mut()).poll_shutdown(cx),
        }
    }
}

/// What comes from a back-end.
pub(crate) enum FromBackendHalf<'a> {
    Plain(ReadHalf<'a>),
    Secured(HalfOf<'a, TlsStream<TcpStream>>),
}

/// What goes to a back-end.
pub(crate) enum ToBackendHalf<'a> {
    Plain(WriteHalf<'a>),
    Secured(HalfOf<'a, TlsStream<TcpStream>>),
}

impl Halves for ToBackend {
    type Input<'a> = FromBackendHalf<'a>;
    type Output<'a> = ToBackendHalf<'a>;

    fn halves(&mut self) -> io::Result<(FromBackendHalf<'_>, ToBackendHalf<'_>)> {
        Ok(match self {
            Self::Plain(stream) => {
                let (from, to) = stream.split();
                (FromBackendHalf::Plain(from), ToBackendHalf::Plain(to))
            }
            Self::Secured(stream) => {
                (FromBackendHalf::Secured(HalfOf(stream)), ToBackendHalf::Secured(HalfOf(stream)))
            }
        })
    }
}

impl Input for TlsStream<TcpStream> {
    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_ref().0.poll_peek(cx, &mut ReadBuf::new(&mut [0])).map_ok(drop)
    }
}

impl Input for FromBackendHalf<'_> {
    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(half) => half.poll_broken(cx),
            Self::Secured(half) => half.poll_broken(cx),
        }
    }
}

impl AsyncRead for FromBackendHalf<'_> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(half) => Pin::new(half).poll_read(cx, room),
            Self::Secured(half) => Pin::new(half).poll_read(cx, room),
        }
    }
}

impl AsyncWrite for ToBackendHalf<'_> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(half) => Pin::new(half).poll_write(cx, bytes),
            Self::Secured(half) => Pin::new(half).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(half) => Pin::new(half).poll_write_vectored(cx, pieces),
            Self::Secured(half) => Pin::new(half).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(half) => Pin::new(half).poll_flush(cx),
            Self::Secured(half) => Pin::new(half).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(half) => Pin::new(half).poll_shutdown(cx),
            Self::Secured(half) => Pin::new(half).poll_shutdown(cx),
        }
    }
}
