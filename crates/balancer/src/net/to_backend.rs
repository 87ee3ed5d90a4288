//! A connection to a back-end, with or without TLS.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use plimsoll_config::ProxyProtocol;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpStream, UnixStream, unix};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::backend_tls::BackendTls;
use super::connect::{connect, connect_unix};
use super::halves::{BackendIo, Halves, Input, OutputHalf, acknowledge_now, peeked};
use super::proxy_protocol::{ConnectionEnds, header};
use super::shared_halves::HalfOf;
use crate::backend::Backend;
use crate::backend_address::BackendAddress;
use crate::http2::{AsksBackend, BackendStreamText, Http2Connections, StreamText, UNACKNOWLEDGED};

/// A connection to a back-end.
#[derive(Debug)]
pub(crate) enum ToBackend {
    Plain(TcpStream),
    /// Over a Unix socket.
    Local(UnixStream),
    Secured(Box<RefCell<TlsStream<TcpStream>>>),
    /// A stream of HTTP/2, for one request.
    Http2(Box<BackendStreamText>),
}

impl BackendIo for ToBackend {
    type Shared = Http2Connections;

    async fn open(
        backend: &Arc<Backend>,
        address: &BackendAddress,
        client: Option<&ConnectionEnds>,
        shared: &Http2Connections,
    ) -> io::Result<Self> {
        let address = match address {
            BackendAddress::Tcp(address) => *address,
            // In a box, which connections over TCP do not need.
            BackendAddress::Unix(path) => return Box::pin(open_local(path, backend, client, shared)).await,
        };
        Ok(match (&backend.tls, backend.http2) {
            (None, false) => Self::Plain(introduced(address, backend, client).await?),
            (Some(tls), false) => {
                let socket = introduced(address, backend, client).await?;
                // In a box, which requests on kept connections do not need.
                Self::Secured(Box::new(RefCell::new(Box::pin(secure(socket, tls, false)).await?)))
            }
            (None, true) => Self::Http2(Box::new(
                shared.stream(backend, async || watched(connect(address).await?)).await?,
            )),
            (Some(tls), true) => Self::Http2(Box::new(
                shared
                    .stream(backend, async || secure(watched(connect(address).await?)?, tls, true).await)
                    .await?,
            )),
        })
    }

    fn sweep(shared: &Http2Connections, now_ms: u64, idle: Duration) {
        shared.sweep(now_ms, idle);
    }

    fn is_new(&self) -> bool {
        match self {
            Self::Plain(_) | Self::Local(_) | Self::Secured(_) => true,
            Self::Http2(stream) => stream.borrow().end().is_first,
        }
    }

    fn is_reusable(&self) -> bool {
        !matches!(self, Self::Http2(_))
    }

    fn has_excess(&self) -> bool {
        match self {
            Self::Plain(stream) => peeked(stream).is_ok_and(|bytes| bytes > 0),
            Self::Local(stream) => peeked(stream).is_ok_and(|bytes| bytes > 0),
            Self::Secured(_) | Self::Http2(_) => false,
        }
    }

    /// Readable means the end, an error, or unexpected bytes.
    fn is_open(&self, surely: bool) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        match self {
            Self::Plain(stream) => is_quiet(stream, stream.poll_read_ready(&mut cx).is_ready(), surely),
            Self::Local(stream) => is_quiet(stream, stream.poll_read_ready(&mut cx).is_ready(), surely),
            // Session tickets come whenever the back-end likes; they are taken, and all else means that it is over.
            Self::Secured(stream) => {
                let mut byte = [0];
                let mut room = ReadBuf::new(&mut byte);
                let mut stream = stream.borrow_mut();
                let quiet = Pin::new(&mut *stream).poll_read(&mut cx, &mut room).is_pending();
                // The event queue may not have told of the end yet.
                quiet && (!surely || nothing_to_read(stream.get_ref().0))
            }
            Self::Http2(_) => false,
        }
    }
}

/// A connection that begins with whose it is, where the back-end is told that.
async fn introduced(
    address: SocketAddr,
    backend: &Backend,
    client: Option<&ConnectionEnds>,
) -> io::Result<TcpStream> {
    let mut stream = connect(address).await?;
    introduce(&mut stream, backend, client).await?;
    Ok(stream)
}

/// Tells whose connection this is, where the back-end is told that.
async fn introduce(
    stream: &mut (impl AsyncWrite + Unpin),
    backend: &Backend,
    client: Option<&ConnectionEnds>,
) -> io::Result<()> {
    match backend.proxy_protocol {
        ProxyProtocol::None => Ok(()),
        version => stream.write_all(&header(version, client)).await,
    }
}

/// A connection to a back-end at a Unix socket; TLS is never spoken there.
async fn open_local(
    path: &Path,
    backend: &Arc<Backend>,
    client: Option<&ConnectionEnds>,
    shared: &Http2Connections,
) -> io::Result<ToBackend> {
    if backend.http2 {
        let stream = shared.stream(backend, async || connect_unix(path).await).await?;
        return Ok(ToBackend::Http2(Box::new(stream)));
    }
    let mut stream = connect_unix(path).await?;
    introduce(&mut stream, backend, client).await?;
    Ok(ToBackend::Local(stream))
}

/// A connection that many requests share is lost once nothing is acknowledged on it for a while.
fn watched(stream: TcpStream) -> io::Result<TcpStream> {
    SockRef::from(&stream).set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(stream)
}

/// This connection under TLS, on which both agree on HTTP/2 if that is asked for.
async fn secure(socket: TcpStream, tls: &BackendTls, http2: bool) -> io::Result<TlsStream<TcpStream>> {
    let config = if http2 { tls.client.http2_config() } else { tls.client.config() };
    let stream = TlsConnector::from(config).connect(tls.name.clone(), socket).await.map_err(explained)?;
    if http2 && stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        return Err(io::Error::other("the back-end does not speak HTTP/2"));
    }
    Ok(stream)
}

/// What it usually means that what came is no record of TLS.
fn explained(error: io::Error) -> io::Error {
    let of_tls = error.get_ref().and_then(|inner| inner.downcast_ref());
    match of_tls {
        Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => io::Error::new(
            error.kind(),
            "it does not seem to speak TLS: remove `tls = true` from the back-end, or correct its port",
        ),
        _ => error,
    }
}

/// Whether there is nothing to read. `is_ready`: the event queue says that there is; with `surely` the system is asked in any case.
fn is_quiet(stream: &impl AsFd, is_ready: bool, surely: bool) -> bool {
    // Perhaps it is ready only because the last read filled its buffer: the system knows.
    let quiet = !is_ready || nothing_to_read(stream);
    quiet && (!surely || nothing_to_read(stream))
}

fn nothing_to_read(stream: &impl AsFd) -> bool {
    peeked(stream).is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock)
}

/// For health checks, which use one direction at a time.
impl AsyncRead for ToBackend {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, room),
            Self::Local(stream) => Pin::new(stream).poll_read(cx, room),
            Self::Secured(stream) => Pin::new(stream.get_mut()).poll_read(cx, room),
            Self::Http2(stream) => Pin::new(stream.get_mut()).poll_read(cx, room),
        }
    }
}

impl AsyncWrite for ToBackend {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Local(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Secured(stream) => Pin::new(stream.get_mut()).poll_write(cx, bytes),
            Self::Http2(stream) => Pin::new(stream.get_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Local(stream) => Pin::new(stream).poll_flush(cx),
            Self::Secured(stream) => Pin::new(stream.get_mut()).poll_flush(cx),
            Self::Http2(stream) => Pin::new(stream.get_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Local(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Secured(stream) => Pin::new(stream.get_mut()).poll_shutdown(cx),
            Self::Http2(stream) => Pin::new(stream.get_mut()).poll_shutdown(cx),
        }
    }
}

/// What comes from a back-end.
pub(crate) enum FromBackendHalf<'a> {
    Plain(ReadHalf<'a>),
    Local(unix::ReadHalf<'a>),
    Secured(HalfOf<'a, TlsStream<TcpStream>>),
    Http2(HalfOf<'a, StreamText<AsksBackend>>),
}

/// What goes to a back-end.
pub(crate) enum ToBackendHalf<'a> {
    Plain(WriteHalf<'a>),
    Local(unix::WriteHalf<'a>),
    Secured(HalfOf<'a, TlsStream<TcpStream>>),
    Http2(HalfOf<'a, StreamText<AsksBackend>>),
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
            Self::Local(stream) => {
                let (from, to) = stream.split();
                (FromBackendHalf::Local(from), ToBackendHalf::Local(to))
            }
            Self::Secured(stream) => {
                (FromBackendHalf::Secured(HalfOf(stream)), ToBackendHalf::Secured(HalfOf(stream)))
            }
            Self::Http2(stream) => {
                (FromBackendHalf::Http2(HalfOf(stream)), ToBackendHalf::Http2(HalfOf(stream)))
            }
        })
    }
}

impl Input for TlsStream<TcpStream> {
    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_ref().0.poll_peek(cx, &mut ReadBuf::new(&mut [0])).map_ok(drop)
    }

    fn acknowledge_now(&mut self) {
        acknowledge_now(self.get_ref().0);
    }
}

impl Input for FromBackendHalf<'_> {
    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(half) => half.poll_broken(cx),
            Self::Local(half) => half.poll_broken(cx),
            Self::Secured(half) => half.poll_broken(cx),
            Self::Http2(half) => half.poll_broken(cx),
        }
    }

    fn acknowledge_now(&mut self) {
        match self {
            Self::Plain(half) => half.acknowledge_now(),
            Self::Local(half) => half.acknowledge_now(),
            Self::Secured(half) => half.acknowledge_now(),
            // Whoever speaks HTTP/2 writes small frames, and switches that algorithm off.
            Self::Http2(_) => {}
        }
    }
}

impl AsyncRead for FromBackendHalf<'_> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(half) => Pin::new(half).poll_read(cx, room),
            Self::Local(half) => Pin::new(half).poll_read(cx, room),
            Self::Secured(half) => Pin::new(half).poll_read(cx, room),
            Self::Http2(half) => Pin::new(half).poll_read(cx, room),
        }
    }
}

impl OutputHalf for ToBackendHalf<'_> {}

impl AsyncWrite for ToBackendHalf<'_> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(half) => Pin::new(half).poll_write(cx, bytes),
            Self::Local(half) => Pin::new(half).poll_write(cx, bytes),
            Self::Secured(half) => Pin::new(half).poll_write(cx, bytes),
            Self::Http2(half) => Pin::new(half).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(half) => Pin::new(half).poll_write_vectored(cx, pieces),
            Self::Local(half) => Pin::new(half).poll_write_vectored(cx, pieces),
            Self::Secured(half) => Pin::new(half).poll_write_vectored(cx, pieces),
            Self::Http2(half) => Pin::new(half).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(half) => Pin::new(half).poll_flush(cx),
            Self::Local(half) => Pin::new(half).poll_flush(cx),
            Self::Secured(half) => Pin::new(half).poll_flush(cx),
            Self::Http2(half) => Pin::new(half).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(half) => Pin::new(half).poll_shutdown(cx),
            Self::Local(half) => Pin::new(half).poll_shutdown(cx),
            Self::Secured(half) => Pin::new(half).poll_shutdown(cx),
            Self::Http2(half) => Pin::new(half).poll_shutdown(cx),
        }
    }
}
