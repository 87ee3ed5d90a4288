//! A client's connection at the agent: reads and writes bytes with time limits.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use bytes::BytesMut;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown, sockopt};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::closing::Closing;
use super::head::{self, Foreign, FoundHead, MOST_HEAD_BYTES, Outline};

/// Bytes that are read at a time.
const READ_BYTES: usize = 8 * 1024;
/// Time for a client to end its side after ours, and the most bytes that it may send in that time.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 256 * 1024;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct ClientConnection {
    pub(super) stream: TcpStream,
    /// Bytes read and not yet used.
    pub(super) input: BytesMut,
    /// Bytes written since the connection is here.
    pub(super) written_bytes: u64,
    write_timeout: Duration,
    /// A write of at most so many bytes goes out in two packets.
    in_two_bytes: usize,
}

/// The result of waiting for a request.
#[derive(Debug)]
pub(super) enum Next {
    Request(Outline),
    Foreign(Foreign),
    /// The client has ended its side, or failed.
    End,
    /// It has not sent a complete head in time.
    TimedOut,
    /// The connection is to be closed, and no request has come.
    Close,
}

/// What goes out in one packet, and the last byte where that is to go out in another one: of at most `most` bytes.
fn in_two([first, second]: [&[u8]; 2], most: usize) -> ([&[u8]; 2], &[u8]) {
    if first.len() + second.len() > most {
        return ([first, second], &[]);
    }
    let (first, second) = if second.is_empty() { (second, first) } else { (first, second) };
    let (second, last_byte) = second.split_at(second.len().saturating_sub(1));
    ([first, second], last_byte)
}

impl ClientConnection {
    pub(super) fn new(fd: OwnedFd, input: &[u8], write_timeout: Duration) -> io::Result<Self> {
        let stream = TcpStream::from_std(fd.into())?;
        Ok(Self { stream, input: BytesMut::from(input), written_bytes: 0, write_timeout, in_two_bytes: 0 })
    }

    /// The same where something waits for the client's acknowledgment, and a packet has at most `mss` bytes. A client delays the
    /// acknowledgment of a single packet, by 40 ms or more; of two small ones in a row, Linux acknowledges the second once it is
    /// read, and others every second one.
    pub(super) fn acknowledged_soon(self, mss: u16) -> Self {
        Self { in_two_bytes: mss.into(), ..self }
    }

    /// The longest inactivity of the client while we wait for it.
    pub(super) fn limit(&self) -> Duration {
        self.write_timeout
    }

    /// Unregisters the descriptor from the runtime and returns it with the bytes read.
    pub(super) fn into_parts(self) -> io::Result<(OwnedFd, BytesMut)> {
        Ok((self.stream.into_std()?.into(), self.input))
    }

    /// Waits for the next head.
    pub(super) async fn next(&mut self, connection: &impl Closing, limit: Duration) -> Next {
        let mut deadline = None;
        loop {
            if !self.input.is_empty() {
                match head::find(&self.input) {
                    FoundHead::Part => {}
                    FoundHead::Request(outline) => return Next::Request(outline),
                    FoundHead::Foreign(why) => return Next::Foreign(why),
                }
            } else if connection.is_closing() {
                return Next::Close;
            }
            self.input.reserve(READ_BYTES);
            match self.stream.try_read_buf(&mut self.input) {
                Ok(0) => return Next::End,
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Next::End,
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + limit);
            let readable = timeout_at(deadline, self.stream.readable());
            tokio::select! {
                ready = readable => match ready {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return Next::End,
                    Err(_) => return Next::TimedOut,
                },
                () = connection.woken() => {}
            }
        }
    }

    /// Waits for the next head and leaves it in the socket. Returns it parsed and as bytes (those that have
    /// come, if it is not for the agent).
    pub(super) async fn peek(&mut self, connection: &impl Closing, limit: Duration) -> (Next, Vec<u8>) {
        let mut buffer = Vec::with_capacity(READ_BYTES);
        let mut deadline = None;
        loop {
            let before = buffer.len();
            match self.peek_into(&mut buffer) {
                Ok(()) if buffer.is_empty() => return (Next::End, buffer),
                Ok(()) => match head::find(&buffer) {
                    FoundHead::Part if buffer.len() > before => continue,
                    // The waiting bytes do not show whether the client has ended its side.
                    FoundHead::Part if !self.is_whole() => return (Next::End, buffer),
                    FoundHead::Part => {}
                    FoundHead::Request(outline) => {
                        buffer.truncate(outline.bytes);
                        return (Next::Request(outline), buffer);
                    }
                    FoundHead::Foreign(why) => return (Next::Foreign(why), buffer),
                },
                Err(Errno::AGAIN) if connection.is_closing() => return (Next::Close, buffer),
                Err(Errno::AGAIN) => {}
                Err(_) => return (Next::End, buffer),
            }
            // Nothing new: wait for the next event.
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + limit);
            let stale: io::Result<()> =
                self.stream.try_io(Interest::READABLE, || Err(io::ErrorKind::WouldBlock.into()));
            drop(stale);
            tokio::select! {
                ready = timeout_at(deadline, self.stream.readable()) => match ready {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return (Next::End, buffer),
                    Err(_) => return (Next::TimedOut, buffer),
                },
                () = connection.woken() => {}
            }
        }
    }

    /// Peeks at the bytes in the socket, up to a little more than the longest head.
    fn peek_into(&self, buffer: &mut Vec<u8>) -> Result<(), Errno> {
        let room = (buffer.len() * 2).clamp(READ_BYTES, MOST_HEAD_BYTES + 1);
        buffer.clear();
        buffer.reserve(room);
        recv(&self.stream, spare_capacity(buffer), RecvFlags::PEEK | RecvFlags::DONTWAIT).map(drop)
    }

    /// Whether the client has not visibly ended its side.
    pub(super) fn is_whole(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let seen = poll(&mut fds, Some(&now)).is_ok();
        let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        seen && !fds[0].revents().intersects(ended)
    }

    /// Whether the connection is over: one whose client has only ended its side is not.
    pub(super) fn is_over(&self) -> bool {
        matches!(plimsoll_datapath::tcp::is_over(self.stream.as_fd()), Ok(true) | Err(_))
    }

    /// Writes all of both.
    ///
    /// # Errors
    /// The kernel's, or that the client has taken nothing for too long.
    pub(super) async fn write(&mut self, first: &[u8], second: &[u8]) -> io::Result<()> {
        let ([first, second], last_byte) = in_two([first, second], self.in_two_bytes);
        self.write_at_once(first, second).await?;
        self.write_at_once(last_byte, b"").await
    }

    async fn write_at_once(&mut self, mut first: &[u8], mut second: &[u8]) -> io::Result<()> {
        while !first.is_empty() || !second.is_empty() {
            let slices = [io::IoSlice::new(first), io::IoSlice::new(second)];
            // Writes directly: the runtime would first wait for an event that a new socket is writable.
            let written = match rustix::io::writev(&self.stream, &slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => count,
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::AGAIN) => self.write_later(&slices).await?,
                Err(error) => return Err(error.into()),
            };
            self.written_bytes += written as u64;
            let of_first = written.min(first.len());
            first = &first[of_first..];
            second = &second[(written - of_first).min(second.len())..];
        }
        Ok(())
    }

    /// Writes some once there is room.
    async fn write_later(&self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let room = async {
            loop {
                self.stream.writable().await?;
                match self.stream.try_write_vectored(slices) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    done => return done,
                }
            }
        };
        timeout(self.write_timeout, room).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Has the kernel reset the client when this process dies, or drops the connection without an end of its output. Otherwise it would send what
    /// it has, and then a FIN: a good end of an answer that is cut short.
    pub(super) fn reset_at_death(&self) -> io::Result<()> {
        Ok(sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO))?)
    }

    /// Ends our side gracefully, behind what was written.
    pub(super) fn end_output(&self) -> io::Result<()> {
        sockopt::set_socket_linger(&self.stream, None)?;
        Ok(shutdown(&self.stream, Shutdown::Write)?)
    }

    /// Ends our side gracefully and gives the client a moment to end its side. Returns whether it did.
    pub(super) async fn finish(&mut self) -> bool {
        if self.end_output().is_err() {
            return false;
        }
        let rest = async {
            let mut left_bytes = LINGER_BYTES;
            loop {
                self.input.clear();
                self.input.reserve(READ_BYTES);
                match self.stream.try_read_buf(&mut self.input) {
                    Ok(0) => return true,
                    Ok(count) => left_bytes = left_bytes.saturating_sub(count),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        if self.stream.readable().await.is_err() {
                            return false;
                        }
                    }
                    Err(_) => return false,
                }
                if left_bytes == 0 {
                    return false;
                }
            }
        };
        timeout(LINGER, rest).await.unwrap_or(false)
    }

    /// Ends the connection with a RST, which tells the client of the failure.
    pub(super) fn abort(self) {
        if let Err(error) = self.reset_at_death() {
            tracing::debug!(%error, "a connection could not be reset");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[test]
    fn the_last_byte_goes_out_apart_if_all_fits_into_a_packet() {
        let of = |first: &'static str, second: &'static str, most| {
            let ([first, second], last) = in_two([first.as_bytes(), second.as_bytes()], most);
            [first, second, last].map(|part| std::str::from_utf8(part).unwrap())
        };
        assert_eq!(of("head", "body", 8), ["head", "bod", "y"]);
        assert_eq!(of("head", "body", 7), ["head", "body", ""]);
        assert_eq!(of("head", "", 8), ["", "hea", "d"]);
        assert_eq!(of("head", "", 0), ["head", "", ""]);
        assert_eq!(of("", "", 8), ["", "", ""]);
    }

    #[tokio::test]
    async fn what_goes_out_in_two_packets_is_the_same() {
        for (mss, first, second) in
            [(1448, "head", "body"), (1448, "head", ""), (1448, "", ""), (1448, "", "x"), (4, "head", "body")]
        {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (socket, _) = listener.accept().unwrap();
            socket.set_nonblocking(true).unwrap();
            let client = ClientConnection::new(socket.into(), b"", Duration::from_secs(10)).unwrap();
            let mut client = client.acknowledged_soon(mss);
            client.write(first.as_bytes(), second.as_bytes()).await.unwrap();
            assert_eq!(client.written_bytes as usize, first.len() + second.len());
            drop(client);
            let mut come = String::new();
            peer.read_to_string(&mut come).await.unwrap();
            assert_eq!(come, format!("{first}{second}"));
        }
    }
}
