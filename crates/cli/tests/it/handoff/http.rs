//! A client that believes nothing: strict about what answers look like.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use plimsoll_testkit::{PATIENCE, uninterrupted};

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// A field's value.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Which back-end it is of.
    pub(super) fn backend(&self) -> String {
        self.field("x-backend").unwrap_or("none").to_owned()
    }
}

/// A connection.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    pub(super) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        Self::over(stream)
    }

    pub(super) fn over(stream: TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Sends a GET.
    pub(super) fn send(&mut self, path: &str) -> io::Result<()> {
        self.stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: lab\r\n\r\n").as_bytes())
    }

    /// Sends a GET and reads its answer.
    pub(super) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.send(path)?;
        self.answer()
    }

    /// Sends a request, and reads its answer.
    pub(super) fn ask(&mut self, method: &str, path: &str, fields: &str) -> io::Result<Answer> {
        self.stream.write_all(format!("{method} {path} HTTP/1.1\r\nHost: lab\r\n{fields}\r\n").as_bytes())?;
        self.answer_to(method)
    }

    /// Reads an answer with `Content-Length`, or in chunks.
    pub(super) fn answer(&mut self) -> io::Result<Answer> {
        self.answer_to("GET")
    }

    /// Reads the answer to a request of this method.
    pub(super) fn answer_to(&mut self, method: &str) -> io::Result<Answer> {
        let end = loop {
            if let Some(at) = self.unread.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            self.more()?;
        };
        let head = String::from_utf8(self.unread.drain(..end).collect()).map_err(io::Error::other)?;
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
        let mut answer =
            Answer { status: status.ok_or_else(|| io::Error::other(head.clone()))?, head, body: Vec::new() };
        if method == "HEAD" || matches!(answer.status, 204 | 304) {
            return Ok(answer);
        }
        let length = answer.field("content-length").and_then(|v| v.parse().ok());
        answer.body = match (length, answer.field("transfer-encoding")) {
            (Some(length), None) => self.exactly(length)?,
            (None, Some("chunked")) => self.chunks()?,
            _ => return Err(io::Error::other(format!("no length: {}", answer.head))),
        };
        Ok(answer)
    }

    fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.unread.len() < length {
            self.more()?;
        }
        Ok(self.unread.drain(..length).collect())
    }

    /// A body in chunks, without a trailer.
    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let end = loop {
                if let Some(at) = self.unread.windows(2).position(|w| w == b"\r\n") {
                    break at;
                }
                self.more()?;
            };
            let line = self.exactly(end + 2)?;
            let size = std::str::from_utf8(&line[..end]).ok().and_then(|s| usize::from_str_radix(s, 16).ok());
            let size = size.ok_or_else(|| io::Error::other(format!("no size of a chunk: {line:?}")))?;
            body.extend(self.exactly(size)?);
            if self.exactly(2)? != b"\r\n" {
                return Err(io::Error::other("a chunk without an end"));
            }
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// Whether the server has closed, all answers read.
    pub(super) fn is_closed(&mut self) -> bool {
        self.unread.is_empty() && matches!(uninterrupted(|| self.stream.read(&mut [0])), Ok(0))
    }

    fn more(&mut self) -> io::Result<()> {
        let start = self.unread.len();
        self.unread.resize(start + (256 << 10), 0);
        let n = uninterrupted(|| self.stream.read(&mut self.unread[start..]))
            .inspect_err(|_| self.unread.truncate(start))?;
        self.unread.truncate(start + n);
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

/// What the admin API of the front-end in this node answers.
pub(super) fn ask_admin(path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect("127.0.0.1:9090")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    body.ok_or_else(|| io::Error::other(answer))
}

/// A value of the page `/metrics`: the name with labels as the page shows it.
pub(super) fn metric_of(page: &str, name: &str) -> Option<f64> {
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    Some(value.parse().unwrap())
}

/// Bytes that no other place has: those of file `seed` from its start.
pub(super) fn content(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(length + 8);
    while out.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(length);
    out
}
