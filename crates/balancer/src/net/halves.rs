//! The traits of connections, independent of the transport.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::proxy_protocol::ConnectionEnds;
use crate::backend::Backend;
use crate::backend_address::BackendAddress;
use bytes::Bytes;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// A connection whose two directions can be used at the same time.
pub(crate) trait Halves {
    /// Where its bytes come from.
    type Input<'a>: Input
    where
        Self: 'a;
    /// Where its bytes go.
    type Output<'a>: OutputHalf
    where
        Self: 'a;

    /// Both directions.
    ///
    /// # Errors
    /// When the system has no room for the connection, or it is closed.
    fn halves(&mut self) -> io::Result<(Self::Input<'_>, Self::Output<'_>)>;
}

/// The direction from which bytes come.
pub(crate) trait Input: AsyncRead + Unpin {
    /// Ready with an error when the connection broke, and without one when there is something to read, which ends the
    /// looking. An input that cannot tell is pending: the break shows when something is written.
    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Whether the peer's connection was reset, as long as it is `watched`. A peer that only ended its side still waits for the answer;
    /// one that has sent more is watched no further.
    fn is_reset(&mut self, cx: &mut Context<'_>, watched: &mut bool) -> bool {
        match self.poll_broken(cx) {
            Poll::Pending => false,
            Poll::Ready(broken) => {
                *watched = false;
                broken.is_err()
            }
        }
    }

    /// Acknowledges now what has been received, for a peer that waits for that before it sends more.
    fn acknowledge_now(&mut self) {}

    /// Ready when the peer wants nothing more, where it says so: an input that cannot tell is pending.
    fn poll_cancelled(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

/// The direction in which bytes go.
pub(crate) trait OutputHalf: AsyncWrite + Unpin {
    /// Whether it keeps bytes by sharing their memory, in place of copying them.
    fn takes_shared(&self) -> bool {
        false
    }

    /// Writes as much as it takes now; where it takes shared memory, without copying.
    ///
    /// # Errors
    /// As writing.
    fn poll_write_shared(&mut self, cx: &mut Context<'_>, bytes: &Bytes) -> Poll<io::Result<usize>> {
        Pin::new(self).poll_write(cx, bytes)
    }
}

impl OutputHalf for WriteHalf<'_> {}

impl OutputHalf for tokio::net::unix::WriteHalf<'_> {}

impl Input for ReadHalf<'_> {
    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut byte = [0];
        self.poll_peek(cx, &mut ReadBuf::new(&mut byte)).map_ok(drop)
    }

    fn acknowledge_now(&mut self) {
        acknowledge_now(self.as_ref());
    }
}

/// Nothing waits for an acknowledgement there.
impl Input for tokio::net::unix::ReadHalf<'_> {
    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream: &UnixStream = self.as_ref();
        loop {
            ready!(stream.poll_read_ready(cx))?;
            match stream.try_io(Interest::READABLE, || peeked(stream)) {
                // What the runtime knew was of an earlier time.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                looked => return Poll::Ready(looked.map(drop)),
            }
        }
    }
}

/// How many bytes there are to read, 1 at most; none at the end.
pub(super) fn peeked(stream: &impl AsFd) -> io::Result<usize> {
    SockRef::from(stream).peek(&mut [std::mem::MaybeUninit::uninit()])
}

/// Acknowledges now what has been received there: else the system does so some 40 ms later.
pub(super) fn acknowledge_now(socket: impl AsFd) {
    // Where it fails, the connection has ended.
    let _ = rustix::net::sockopt::set_tcp_quickack(socket, true);
}

/// A client's connection.
pub(crate) trait ClientIo: Halves + AsyncRead + AsyncWrite + Unpin {
    /// Ready when there may be something to read: an idle connection waits for this without a buffer.
    ///
    /// # Errors
    /// When the connection is closed.
    fn poll_begun(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Acknowledges received data now, for a client that waits for that before it sends more.
    fn acknowledge(&mut self) {}

    /// From now on what is written may be held back until it is flushed, so that much of it goes out at once.
    fn hold_output(&mut self) {}

    /// Bytes that the socket has taken, of what was written while the directions were not used apart.
    fn sent_bytes(&self) -> u64 {
        0
    }

    /// Ends our direction; false when the connection is gone already.
    fn end_output(&mut self) -> bool;

    /// Makes the connection be reset when it is dropped.
    fn reset(&mut self);

    /// Whether it is a stream of HTTP/2, with one request.
    fn is_http2(&self) -> bool {
        false
    }

    /// Whether both sides have agreed on HTTP/2 before the first byte of it.
    fn agreed_on_http2(&self) -> bool {
        false
    }

    /// Fields that tell back-ends who the client is, as its certificate says; empty without one.
    fn identity(&self) -> Option<Rc<[u8]>> {
        None
    }

    /// Our end of the connection, if the system tells.
    fn local_address(&self) -> Option<SocketAddr> {
        None
    }

    /// Whether the connection is all in its socket, so that another machine can go on with it.
    fn can_move(&self) -> bool {
        false
    }

    /// The socket, unknown to the event queue.
    ///
    /// # Errors
    /// The system's, or that the connection is more than its socket; it is closed then.
    fn into_socket(self) -> io::Result<OwnedFd>
    where
        Self: Sized,
    {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A connection to a back-end.
pub(crate) trait BackendIo: Halves + Sized {
    /// What those of one worker share.
    type Shared: Default;

    /// Opens one to `backend`, which has this address; where it is told whose connections requests come on, for this one, or else for
    /// none.
    ///
    /// # Errors
    /// The system's.
    async fn open(
        backend: &Arc<Backend>,
        address: &BackendAddress,
        client: Option<&ConnectionEnds>,
        shared: &Self::Shared,
    ) -> io::Result<Self>;

    /// Sees to what is shared, from time to time: at this time of the worker, and what is idle for that long.
    fn sweep(_shared: &Self::Shared, _now_ms: u64, _idle: Duration) {}

    /// Whether a connection was opened for it, rather than a stream on one that was there.
    fn is_new(&self) -> bool {
        true
    }

    /// Whether it can be used again after a request that ended well.
    fn is_reusable(&self) -> bool {
        true
    }

    /// Whether bytes have come on an idle one, where that can be told.
    fn has_excess(&self) -> bool {
        false
    }

    /// Whether an idle one can be written to. With `surely` the system is asked whether the back-end has closed it this
    /// very moment.
    fn is_open(&self, surely: bool) -> bool;
}
