//! A client's connection, registered with the event queue only when it has to wait.
//!
//! Many connections are readable when they are accepted, and are handed off with their first request: entering them into
//! the event queue and taking them out again would be two system calls and a turn of the event loop for nothing.

use std::cell::Cell;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, acceptfrom_with, recv};
use socket2::SockRef;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::halves::{ClientIo, Halves};
use super::rush::Rush;

/// Bytes received at once on a connection that is not watched yet: most first requests are smaller, and memory for as many is filled with
/// zeros first.
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

    /// From now on it cannot be moved elsewhere.
    pub(crate) fn stay(&mut self) {
        self.stays = true;
    }

    /// Receives what has come on a connection that is not watched yet, `most_bytes` of it; pending where nothing has, and on one that is
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
            // Else it is acknowledged some 40 ms later.
            let _ = rustix::net::sockopt::set_tcp_quickack(socket, true);
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

/// A socket that listens.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: AsyncFd<std::net::TcpListener>,
    /// Where connections that come in a rush are accepted with their first data only: accepting them earlier costs a wake-up
    /// more, which is time that a client alone does not lose, but which others wait for.
    rush: Option<Cell<Rush>>,
}

impl Listener {
    /// Of a socket that does not block.
    ///
    /// # Errors
    /// The system's.
    #[allow(
        deprecated,
        reason = "unsound only for types whose descriptor changes; that of a listener never does"
    )]
    pub(crate) fn new(socket: std::net::TcpListener) -> io::Result<Self> {
        Ok(Self { socket: AsyncFd::new(socket)?, rush: None })
    }

    /// The same, but connections that come in a rush are accepted with their first data.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn with_rush(socket: std::net::TcpListener) -> io::Result<Self> {
        Ok(Self { rush: Some(Cell::default()), ..Self::new(socket)? })
    }

    /// Where it listens, if that is one address only: it is that of each of its connections, too.
    pub(crate) fn only_address(&self) -> Option<SocketAddr> {
        self.socket.get_ref().local_addr().ok().filter(|address| !address.ip().is_unspecified())
    }

    /// The next connection and its other end.
    ///
    /// # Errors
    /// The system's: mostly that the process has too many open files.
    pub(crate) async fn accept(&self) -> io::Result<(ClientStream, SocketAddr)> {
        loop {
            let mut ready = self.socket.readable().await?;
            match ready.try_io(|socket| accept(socket.get_ref())) {
                Ok(accepted) => {
                    self.note(|rush| rush.accepted += 1);
                    return accepted.map(|accepted| self.known(accepted));
                }
                Err(_would_block) => self.note(|rush| rush.waits += 1),
            }
        }
    }

    fn note(&self, add: impl FnOnce(&mut Rush)) {
        let Some(cell) = &self.rush else { return };
        let mut rush = cell.get();
        add(&mut rush);
        let changed = rush.look();
        cell.set(rush);
        if let Some(on) = changed
            && let Err(error) = plimsoll_datapath::tcp::await_data(self.socket.get_ref().as_fd(), on)
        {
            // It goes on as before.
            tracing::debug!(%error, on, "connections cannot be accepted otherwise");
        }
    }

    /// The next connection that is there already.
    pub(crate) fn accept_now(&self) -> Option<(ClientStream, SocketAddr)> {
        accept(self.socket.get_ref()).ok().map(|accepted| self.known(accepted))
    }

    fn known(&self, (mut stream, peer): (ClientStream, SocketAddr)) -> (ClientStream, SocketAddr) {
        stream.acknowledges_late = self.rush.is_some();
        (stream, peer)
    }

    /// Accepts connections at once from now on. True if some may be complete but still waiting for their
    /// first data.
    pub(crate) fn calm_down(&self) -> bool {
        let Some(cell) = &self.rush else { return false };
        let was_on = cell.take().on;
        was_on && plimsoll_datapath::tcp::await_data(self.socket.get_ref().as_fd(), false).is_ok()
    }
}

fn accept(listener: &std::net::TcpListener) -> io::Result<(ClientStream, SocketAddr)> {
    loop {
        match acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok((fd, peer)) => {
                let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                // A client that has gone meanwhile has no address any more.
                let Some(peer) = peer else { continue };
                return Ok((ClientStream::new(fd), peer));
            }
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_connection_is_watched_once_it_has_to_be_waited_for() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let listener = Listener::new(socket).unwrap();
        let address = listener.only_address().unwrap();
        let mut client = std::net::TcpStream::connect(address).unwrap();
        client.write_all(b"one").unwrap();
        let (mut stream, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        assert!(listener.accept_now().is_none());
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

    /// Bytes that this socket's peer has not acknowledged, as `/proc/net/tcp` tells.
    fn unacknowledged(local: SocketAddr) -> u64 {
        let port = format!(":{:04X}", local.port());
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let line = lines.find(|fields| fields.get(1).is_some_and(|end| end.ends_with(&port))).unwrap();
        u64::from_str_radix(line[4].split_once(':').unwrap().0, 16).unwrap()
    }

    #[tokio::test]
    async fn the_first_data_is_acknowledged_when_more_has_to_come() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        plimsoll_datapath::tcp::acknowledge_late(socket.as_fd()).unwrap();
        let listener = Listener::with_rush(socket).unwrap();
        let address = listener.only_address().unwrap();
        // The kernel waits 40 ms, which this test may exceed once or twice.
        for _ in 0..50 {
            let mut client = std::net::TcpStream::connect(address).unwrap();
            let local = client.local_addr().unwrap();
            client.write_all(b"GET").unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_exact(&mut [0; 3]).await.unwrap();
            if unacknowledged(local) == 3 {
                stream.acknowledge();
                assert_eq!(unacknowledged(local), 0);
                return;
            }
        }
        panic!("what is read is acknowledged at once");
    }
}
