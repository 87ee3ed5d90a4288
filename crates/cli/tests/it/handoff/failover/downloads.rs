//! Many slow downloads at once, each read by a client that checks every byte.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_testkit::{PATIENCE, Why, pace};
use socket2::{Domain, Protocol, Socket, Type};

/// Bytes that each client reads in one round, and the pause between rounds.
const PIECE: usize = 2_000;
const PAUSE: Duration = Duration::from_millis(20);

/// What became of a download that has not ended.
pub(super) const HANGS: &str = "hangs";

/// One download.
pub(super) struct Download {
    stream: TcpStream,
    head: Vec<u8>,
    body_bytes: usize,
    in_body: bool,
    end: Option<Result<(), String>>,
    heard_at: Instant,
}

/// How downloads ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) whole: usize,
    pub(super) failed: Vec<String>,
}

impl Download {
    /// Asks for a file; to be called in the client's network.
    pub(super) fn begin(vip: SocketAddr, path: &str) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(vip), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_recv_buffer_size(8 << 10)?;
        socket.connect_timeout(&vip.into(), PATIENCE)?;
        let mut stream: TcpStream = socket.into();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: lab\r\n\r\n").as_bytes())?;
        stream.set_nonblocking(true)?;
        let heard_at = Instant::now();
        Ok(Self { stream, head: Vec::new(), body_bytes: 0, in_body: false, end: None, heard_at })
    }

    /// Reads at most so much, and compares it with the file.
    fn read(&mut self, most: usize, file: &[u8]) {
        let mut buffer = vec![0; most];
        let count = match self.stream.read(&mut buffer) {
            Ok(0) => return self.fail(format!("closed after {} bytes", self.body_bytes)),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            Err(error) => return self.fail(format!("{error} after {} bytes", self.body_bytes)),
        };
        self.heard_at = Instant::now();
        let mut bytes = &buffer[..count];
        let rest;
        if !self.in_body {
            self.head.extend_from_slice(bytes);
            let Some(at) = self.head.windows(4).position(|w| w == b"\r\n\r\n") else { return };
            if !self.head.starts_with(b"HTTP/1.1 200 ") {
                return self.fail(String::from_utf8_lossy(&self.head).into_owned());
            }
            rest = self.head.split_off(at + 4);
            (bytes, self.in_body) = (&rest, true);
        }
        let wanted = file.get(self.body_bytes..self.body_bytes + bytes.len());
        if wanted != Some(bytes) {
            return self.fail(format!("wrong bytes behind {}", self.body_bytes));
        }
        self.body_bytes += bytes.len();
        if self.body_bytes == file.len() {
            self.end = Some(Ok(()));
        }
    }

    fn fail(&mut self, why: String) {
        self.end = Some(Err(why));
    }

    pub(super) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Whether some of the body has come.
    pub(super) fn has_begun(&self) -> bool {
        self.body_bytes > 0
    }
}

/// One round of reading.
fn round(downloads: &mut [Download], most: usize, file: &[u8]) {
    for download in downloads.iter_mut().filter(|download| !download.is_over()) {
        download.read(most, file);
    }
    pace(PAUSE, Why::SlowPeer);
}

/// Reads until all have begun, and for this long.
pub(super) fn read_for(downloads: &mut [Download], time: Duration, file: &[u8]) {
    let began = Instant::now();
    while began.elapsed() < time || !downloads.iter().all(|d| d.has_begun() || d.is_over()) {
        round(downloads, PIECE, file);
        assert!(began.elapsed() < PATIENCE, "downloads do not begin");
    }
}

/// Reads to the end of all, slowly as long as `is_slow`. Returns how they ended, and for how long a client heard nothing at most.
pub(super) fn finish(downloads: &mut [Download], file: &[u8], is_slow: &AtomicBool) -> (Ends, Duration) {
    let began = Instant::now();
    let mut longest = Duration::ZERO;
    while downloads.iter().any(|download| !download.is_over()) {
        round(downloads, if is_slow.load(Ordering::Relaxed) { PIECE / 4 } else { 20 * PIECE }, file);
        let silent = downloads.iter().filter(|d| !d.is_over()).map(|d| d.heard_at.elapsed()).max();
        longest = longest.max(silent.unwrap_or_default());
        if began.elapsed() > PATIENCE {
            downloads.iter_mut().filter(|d| !d.is_over()).for_each(|d| d.fail(HANGS.to_owned()));
        }
    }
    let mut ends = Ends::default();
    for download in downloads.iter_mut() {
        match download.end.take() {
            Some(Ok(())) => ends.whole += 1,
            Some(Err(why)) => ends.failed.push(why),
            None => {}
        }
    }
    (ends, longest)
}
