//! The traits of connections, independent of the transport.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::backend_tls::BackendTls;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::tcp::ReadHalf;

/// A connection whose two directions can be used at the same time.
pub(crate) trait Halves {
    /// Where its bytes come from.
    type Input<'a>: Input
    where
        Self: 'a;
    /// Where its bytes go.
    type Output<'a>: AsyncWrite + Unpin
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
}

impl Input for ReadHalf<'_> {
    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut byte = [0];
        self.poll_peek(cx, &mut ReadBuf::new(&mut byte)).map_ok(drop)
    }
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

    /// Ends our direction; false when the connection is gone already.
    fn end_output(&mut self) -> bool;

    /// Makes the connection be reset when it is dropped.
    fn reset(&mut self);

    /// Fields that tell back-ends who the client is, as its certificate says; empty without one.
    fn identity(&self) -> Option<Rc<[u8]>> {
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
    /// Opens one.
    ///
    /// # Errors
    /// The system's.
    async fn open(address: SocketAddr, tls: Option<&BackendTls>) -> io::Result<Self>;

    /// Whether an idle one can be written to. With `surely` the system is asked whether the back-end has closed it this
    /// very moment.
    fn is_open(&self, surely: bool) -> bool;
}
