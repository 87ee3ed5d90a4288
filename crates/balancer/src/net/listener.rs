//! A socket that listens, and what is accepted on it.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;

use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};
use tokio::io::unix::AsyncFd;

use super::rush::Rush;
use super::stream::ClientStream;

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

    fn known(&self, (stream, peer): (ClientStream, SocketAddr)) -> (ClientStream, SocketAddr) {
        (stream.acknowledges_late(self.rush.is_some()), peer)
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
    use std::io::Write as _;

    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::net::halves::ClientIo as _;

    #[tokio::test]
    async fn a_connection_is_accepted_once() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let listener = Listener::new(socket).unwrap();
        let client = std::net::TcpStream::connect(listener.only_address().unwrap()).unwrap();
        let (_, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        assert!(listener.accept_now().is_none());
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
