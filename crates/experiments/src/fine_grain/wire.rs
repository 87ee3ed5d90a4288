//! What clients and servers of the prototype say to one another, and waiting for it.

use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Bytes of an access: its number, and its service time in nanoseconds.
pub(super) const ACCESS_BYTES: usize = 16;
/// Bytes of an answer: the number of the access.
pub(super) const ANSWER_BYTES: usize = 8;

/// An access as it is sent.
pub(super) fn access_bytes(number: u64, service_ns: u64) -> [u8; ACCESS_BYTES] {
    let mut bytes = [0; ACCESS_BYTES];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..].copy_from_slice(&service_ns.to_le_bytes());
    bytes
}

/// The number at a place of a message; 0 where the message ends before.
pub(super) fn number_at(bytes: &[u8], place: usize) -> u64 {
    let eight = bytes.get(8 * place..8 * place + 8).and_then(|part| part.try_into().ok());
    eight.map_or(0, u64::from_le_bytes)
}

/// A connection on which messages of one length come.
#[derive(Debug)]
pub(super) struct MessageStream {
    pub(super) stream: TcpStream,
    /// The start of a message whose end has not come.
    started: Vec<u8>,
    message_bytes: usize,
}

impl MessageStream {
    pub(super) fn new(stream: TcpStream, message_bytes: usize) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, started: Vec::new(), message_bytes })
    }

    /// Reads what has come, and passes on each whole message; false at the end of the connection. Only when something has come:
    /// it would wait otherwise.
    pub(super) fn read(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        let bytes = match self.stream.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error),
        };
        self.started.extend_from_slice(&buffer[..bytes]);
        let whole = self.started.len() / self.message_bytes * self.message_bytes;
        self.started[..whole].chunks_exact(self.message_bytes).for_each(&mut each);
        self.started.drain(..whole);
        Ok(true)
    }
}

/// Waits until something has come at one of these, or for `at_most`; the places of those where it has. The time has the resolution
/// of the kernel's timers, not that of an asynchronous runtime's.
pub(super) fn wait(sources: &[BorrowedFd<'_>], at_most: Duration) -> io::Result<Vec<usize>> {
    let mut entries: Vec<PollFd<'_>> =
        sources.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let at_most = Timespec {
        tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    match poll(&mut entries, Some(&at_most)) {
        Ok(0) | Err(Errno::INTR) => Ok(Vec::new()),
        Ok(_) => {
            let ready = entries.iter().enumerate().filter(|(_, entry)| !entry.revents().is_empty());
            Ok(ready.map(|(place, _)| place).collect())
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Nanoseconds since `origin`; 0 before it.
pub(super) fn since_ns(origin: Instant) -> u64 {
    u64::try_from(Instant::now().saturating_duration_since(origin).as_nanos()).unwrap_or(u64::MAX)
}

/// Whether there is nothing to read now.
pub(super) fn is_empty(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn messages_come_whole_in_whatever_pieces_they_are_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut receiver = MessageStream::new(listener.accept().unwrap().0, ACCESS_BYTES).unwrap();
        let mut bytes = access_bytes(7, 22_200_000).to_vec();
        bytes.extend(access_bytes(8, 5));
        let mut got = Vec::new();
        for piece in bytes.chunks(11) {
            sender.write_all(piece).unwrap();
            receiver.read(|message| got.push((number_at(message, 0), number_at(message, 1)))).unwrap();
        }
        assert_eq!(got, [(7, 22_200_000), (8, 5)]);
        drop(sender);
        assert!(!receiver.read(|_| ()).unwrap());
        assert_eq!(number_at(&[1; 8], 1), 0);
    }
}
