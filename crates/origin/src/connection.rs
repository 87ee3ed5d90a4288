//! Serves one connection by HTTP/1.1, within limits of time and size.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use plimsoll_wire::load::LoadGauge;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep};

use super::body::OriginAccess;
use super::respond::Responder;

/// Most bytes of a request's head.
const MOST_HEAD_BYTES: usize = 64 * 1024;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) responder: Responder,
    /// The requests that are being answered.
    pub(crate) gauge: LoadGauge,
    pub(crate) head_timeout: Duration,
    pub(crate) write_timeout: Duration,
    /// While true, requests wait.
    pub(crate) paused: watch::Sender<bool>,
    /// Once true, each connection ends after its request under way.
    pub(crate) stopping: watch::Sender<bool>,
}

/// Serves a connection to its end.
pub(crate) async fn serve(stream: TcpStream, shared: &Arc<Shared>) {
    let paused = shared.paused.subscribe();
    let mut stopping = shared.stopping.subscribe();
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let io = TokioIo::new(Patient::new(stream, shared.write_timeout));
    let service = service_fn(|request| {
        let mut paused = paused.clone();
        let access = OriginAccess::begin(&shared.gauge);
        async move {
            // An error means that nobody can pause any more.
            drop(paused.wait_for(|paused| !paused).await);
            let mut response = shared.responder.respond(request).await;
            response.body_mut().belongs_to(access);
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.head_timeout)
        .max_buf_size(MOST_HEAD_BYTES)
        // A client may close its side once it has sent its last request: RFC 9112, section 9.6.
        .half_close(true)
        .serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = async { drop(stopping.wait_for(|stopping| *stopping).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}

/// A stream whose writes fail when they make no progress for the time `limit`. So a client that stops reading does not
/// keep its connection for ever.
#[derive(Debug)]
struct Patient {
    stream: TcpStream,
    limit: Duration,
    timer: Pin<Box<Sleep>>,
    /// Whether a write is waiting, so that the timer counts.
    waiting: bool,
}

impl Patient {
    fn new(stream: TcpStream, limit: Duration) -> Self {
        Self { stream, limit, timer: Box::pin(sleep(limit)), waiting: false }
    }

    /// Writes, or fails once the timer of a waiting write has run out.
    fn watched<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let result = write(Pin::new(&mut self.stream), cx);
        if result.is_ready() {
            self.waiting = false;
            return result;
        }
        if !self.waiting {
            self.waiting = true;
            let deadline = Instant::now().checked_add(self.limit);
            // A deadline too far off to be represented leaves the timer as it is.
            if let Some(deadline) = deadline {
                self.timer.as_mut().reset(deadline);
            }
        }
        match self.timer.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.watched(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.watched(cx, |stream, cx| stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watched(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watched(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}
