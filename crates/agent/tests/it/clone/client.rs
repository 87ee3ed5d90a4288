//! A client that checks every byte.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use plimsoll_origin::synthetic::{self, Synthetic};
use plimsoll_testkit::{PATIENCE, uninterrupted};

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    /// Read and not used.
    input: Vec<u8>,
}

/// An answer as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) backend: String,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")
}

/// Whether `body` is this part of what the origin has at `path`.
pub(crate) fn is_part(path: &str, from: u64, body: &[u8]) -> bool {
    let document = Synthetic::fixed(1000).find(path).unwrap();
    from + body.len() as u64 <= document.size_bytes && synthetic::matches(document.number, from, body)
}

pub(crate) fn is_document(path: &str, body: &[u8]) -> bool {
    let document = Synthetic::fixed(1000).find(path).unwrap();
    body.len() as u64 == document.size_bytes && is_part(path, 0, body)
}

impl Client {
    pub(crate) fn connect(to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream, input: Vec::new() }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// Reads something; false at the end.
    fn read(&mut self) -> std::io::Result<bool> {
        let mut buffer = [0; 64 * 1024];
        let count = uninterrupted(|| self.stream.read(&mut buffer))?;
        self.input.extend_from_slice(&buffer[..count]);
        Ok(count > 0)
    }

    pub(crate) fn answer(&mut self, to_head: bool) -> Answer {
        self.try_answer(to_head).expect("an answer")
    }

    pub(crate) fn try_answer(&mut self, to_head: bool) -> std::io::Result<Answer> {
        let ended = || std::io::Error::from(ErrorKind::UnexpectedEof);
        let end = loop {
            if let Some(at) = self.input.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.read()? {
                return Err(ended());
            }
        };
        let head = String::from_utf8(self.input.drain(..end).collect()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, backend: String::new(), head, body: Vec::new() };
        answer.backend = answer.field("x-backend").unwrap_or_default().to_owned();
        let length: usize = answer.field("content-length").map_or(0, |value| value.parse().unwrap());
        let length = if to_head || status == 304 { 0 } else { length };
        while self.input.len() < length {
            if !self.read()? {
                return Err(ended());
            }
        }
        answer.body = self.input.drain(..length).collect();
        Ok(answer)
    }

    /// An answer without a length, with a body of so many bytes.
    pub(crate) fn answer_of(&mut self, body_bytes: usize) -> String {
        loop {
            let end =
                self.input.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4 + body_bytes);
            match end {
                Some(end) if self.input.len() >= end => {
                    return String::from_utf8(self.input.drain(..end).collect()).unwrap();
                }
                _ => assert!(self.read().unwrap(), "an end"),
            }
        }
    }

    /// All that still comes, and how it ends.
    pub(crate) fn rest(mut self) -> (Vec<u8>, std::io::Result<()>) {
        loop {
            match self.read() {
                Ok(true) => {}
                Ok(false) => return (self.input, Ok(())),
                Err(error) => return (self.input, Err(error)),
            }
        }
    }
}
