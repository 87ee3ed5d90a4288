//! A client's connection, registered with the event queue only when it has to wait.
//!
//! Many connections are readable when they are accepted, and are handed off with their first request: entering them into
//! the event queue and taking them out again would be two system calls and a turn of the event loop for nothing.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::halves::{ClientIo, Halves, acknowledge_now};

/// At most so many bytes are received at once on a connection that is not watched yet: that much memory is filled with zeros first, and most
/// first requests are smaller.
const FIRST_BYTES: usize = 4096;

/// A connection that does not block.
#[derive(Debug)]
pub(crate) struct ClientStream {
    state: State,
    /// The system leaves the first data unacknowledged until there is an answer.
    acknowledges_late: bool,
    /// It cannot leave: what has come on it before is in no snapshot.
    stays: bool,
    /// Bytes that the socket has taken while nobody used the directions apart.
    sent_bytes: u64,
}

#[derive(Debug)]
enum State {
    /// The event queue does not know it.
    Apart(OwnedFd),
    /// It does.
    Watched(TcpStream),
    /// Entering it failed: it is closed.
    Gone,
}

impl ClientStream {
    /// A connection's socket, which must not block.
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self { state: State::Apart(fd), acknowledges_late: false, stays: false, sent_bytes: 0 }
    }

    /// It is one whose first data the system leaves unacknowledged.
    pub(super) fn acknowledges_late(mut self, late: bool) -> Self {
        self.acknowledges_late = late;
        self
    }

    /// From now on it cannot be moved elsewhere.
    pub(crate) fn stay(&mut self) {
        self.stays = true;
    }

    /// Receives what has come on a connection that is not watched yet, at most `most_bytes` of it; pending where nothing has, and on one that is
    /// watched.
    fn receive_now(
        &self,
        buffer: &mut ReadBuf<'_>,
        most_bytes: usize,
        flags: RecvFlags,
    ) -> Poll<io::Result<usize>> {
        let State::Apart(fd) = &self.state else { return Poll::Pending };
        let most_bytes = most_bytes.min(buffer.remaining());
        match recv(fd, buffer.initialize_unfilled_to(most_bytes), flags) {
            Ok((n, _)) => {
                buffer.advance(n);
                Poll::Ready(Ok(n))
            }
            Err(Errno::AGAIN | Errno::INTR) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }

    /// Reads what has come, and leaves it there.
    pub(crate) fn poll_peek(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(received) = self.receive_now(buffer, usize::MAX, RecvFlags::PEEK) {
            return Poll::Ready(received);
        }
        match self.watched() {
            Ok(stream) => stream.poll_peek(cx, buffer),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// The connection as one that can be waited for.
    ///
    /// # Errors
    /// The system's, which has no room; the connection is closed then.
    pub(crate) fn watched(&mut self) -> io::Result<&mut TcpStream> {
        if let State::Apart(_) = self.state
            && let State::Apart(fd) = std::mem::replace(&mut self.state, State::Gone)
        {
            self.state = State::Watched(TcpStream::from_std(fd.into())?);
        }
        match &mut self.state {
            State::Watched(stream) => Ok(stream),
            State::Apart(_) | State::Gone => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// The socket, to set options; none when it is closed already.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Apart(fd) => Some(fd.as_fd()),
            State::Watched(stream) => Some(stream.as_fd()),
            State::Gone => None,
        }
    }

    fn sent(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(n)) = written {
            self.sent_bytes += n as u64;
        }
        written
    }

    fn poll_watched<T>(
        &mut self,
        poll: impl FnOnce(Pin<&mut TcpStream>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match self.watched() {
            Ok(stream) => poll(Pin::new(stream)),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl Halves for ClientStream {
    type Input<'a> = ReadHalf<'a>;
    type Output<'a> = WriteHalf<'a>;

    fn halves(&mut self) -> io::Result<(ReadHalf<'_>, WriteHalf<'_>)> {
        Ok(self.watched()?.split())
    }
}

impl ClientIo for ClientStream {
    fn poll_begun(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.state {
            State::Apart(_) => Poll::Ready(Ok(())),
            State::Watched(stream) => stream.poll_read_ready(cx),
            State::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.socket().and_then(|socket| SockRef::from(&socket).local_addr().ok()?.as_socket())
    }

    /// What has come is acknowledged now: a client may wait with the rest for that (Nagle's algorithm, RFC 9293,
    /// section 3.7.4).
    fn acknowledge(&mut self) {
        if std::mem::take(&mut self.acknowledges_late)
            && let Some(socket) = self.socket()
        {
            acknowledge_now(socket);
        }
    }

    fn end_output(&mut self) -> bool {
        let shut = self.socket().map(|socket| SockRef::from(&socket).shutdown(Shutdown::Write));
        matches!(shut, Some(Ok(())))
    }

    fn reset(&mut self) {
        if let Some(socket) = self.socket() {
            // If this fails the connection is gone already.
            drop(SockRef::from(&socket).set_linger(Some(Duration::ZERO)));
        }
    }

    fn can_move(&self) -> bool {
        !self.stays
    }

    fn into_socket(self) -> io::Result<OwnedFd> {
        match self.state {
            State::Apart(fd) => Ok(fd),
            State::Watched(stream) => stream.into_std().map(OwnedFd::from),
            State::Gone => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(received) = self.receive_now(buffer, FIRST_BYTES, RecvFlags::empty()) {
            return Poll::Ready(received.map(drop));
        }
        self.poll_watched(|stream| stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.poll_watched(|stream| stream.poll_write(cx, bytes));
        self.sent(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.poll_watched(|stream| stream.poll_write_vectored(cx, pieces));
        self.sent(written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_watched(|stream| stream.poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_connection_is_watched_once_it_has_to_be_waited_for() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"one").unwrap();
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        let mut stream = ClientStream::new(accepted.into());
        let mut bytes = [0; 3];
        stream.read_exact(&mut bytes).await.unwrap();
        assert!(matches!(stream.state, State::Apart(_)) && &bytes == b"one");
        let (read, ()) = tokio::join!(stream.read_exact(&mut bytes), async {
            tokio::task::yield_now().await;
            client.write_all(b"two").unwrap();
        });
        assert!(read.is_ok() && &bytes == b"two");
        assert!(matches!(stream.state, State::Watched(_)));
        stream.write_all(b"three").await.unwrap();
        let mut apart = ClientStream::new(stream.into_socket().unwrap());
        assert!(apart.socket().is_some());
        drop(client);
        // There is an unread answer, so that the client resets.
        assert!(apart.read(&mut bytes).await.is_err());
    }
}
