//! Front-end, clients and origins for tests.

pub(crate) mod origin;
pub(crate) mod strict;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_balancer::Balancer;
use plimsoll_config::Config;
use plimsoll_testkit::{PATIENCE, eventually, uninterrupted};
use strict::Message;

/// A running front-end. When it is dropped, no request may be left over.
pub(crate) struct FrontEnd {
    balancer: Option<Balancer>,
    addresses: Vec<SocketAddr>,
}

impl FrontEnd {
    /// In front of back-ends at these addresses; `tables` goes to the end of the configuration.
    pub(crate) fn new(backends: &[SocketAddr], tables: &str) -> Self {
        let backends: Vec<_> = backends.iter().map(|a| format!("[[backend]]\naddress = \"{a}\"\n")).collect();
        Self::from_text(&format!("{}{tables}", backends.concat()))
    }

    /// With back-ends and whatever else there is in `text`.
    pub(crate) fn from_text(text: &str) -> Self {
        Self::watching("probe = \"none\"", text)
    }

    /// The same with these keys of the health checks.
    pub(crate) fn watching(health: &str, text: &str) -> Self {
        let balancer = Balancer::start(config(health, text)).unwrap();
        let addresses = balancer.addresses();
        Self { balancer: Some(balancer), addresses }
    }

    /// Applies another configuration.
    pub(crate) fn reload(&self, text: &str) {
        self.balancer.as_ref().unwrap().reload(config("probe = \"none\"", text)).unwrap();
    }

    /// Where the listener of this index is.
    pub(crate) fn address(&self, index: usize) -> SocketAddr {
        self.addresses[index]
    }

    /// A client's connection over IPv4.
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.addresses[0])
    }

    /// One over IPv6.
    pub(crate) fn client_v6(&self) -> Client {
        Client::connect(self.addresses[1])
    }

    /// Waits until no request is under way.
    pub(crate) fn assert_idle(&self) {
        let balancer = self.balancer.as_ref().unwrap();
        eventually("the end of all requests", || balancer.load() == 0);
    }

    /// Waits until back-ends have this load.
    pub(crate) fn load_once(&self, load: u64) {
        let balancer = self.balancer.as_ref().unwrap();
        eventually("the load", || balancer.load() == load);
    }

    /// Stops, and waits this long for what is under way.
    pub(crate) fn stop_within(mut self, drain: Duration) {
        self.balancer.take().unwrap().stop_within(drain);
    }

    /// Sends bytes over a connection of their own, ends the client's side, and reads all answers.
    pub(crate) fn talk(&self, bytes: &[u8]) -> (Vec<u8>, End) {
        let mut client = self.client();
        client.send(bytes);
        client.finish();
        client.rest()
    }
}

impl Drop for FrontEnd {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.balancer.is_some() {
            self.assert_idle();
        }
        if let Some(balancer) = self.balancer.take() {
            balancer.stop_within(Duration::from_millis(20));
        }
    }
}

/// Two listeners without TLS, and what `text` has.
fn config(health: &str, text: &str) -> Config {
    let text = format!(
        "workers = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[listener]]\naddress = \"[::1]:0\"\n\
         [health]\n{health}\n[admin]\nenabled = false\n{text}"
    );
    Config::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{text}\n{e}"))
}

/// Sees to it that this process can hold both ends of so many connections.
pub(crate) fn assert_files_for(connections: usize) {
    let (wanted, most) = (2 * connections as u64 + 500, plimsoll_balancer::raise_open_file_limit());
    assert!(
        most.is_none_or(|most| most >= wanted),
        "{wanted} open files are needed and {most:?} allowed; raise the hard limit (`ulimit -Hn`)"
    );
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// In good order.
    Closed,
    /// By a reset.
    Reset,
    /// Not at all, as long as it was waited for.
    Open,
}

/// A client on a bare socket.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self::of(stream)
    }

    /// On this connection.
    pub(crate) fn of(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Sends as far as the front-end takes it.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Ends this side.
    pub(crate) fn finish(&mut self) {
        drop(self.stream.shutdown(Shutdown::Write));
    }

    /// Resets the connection.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Reads until what has come ends with this.
    pub(crate) fn read_until(&mut self, end: &str) {
        while !self.buffer.ends_with(end.as_bytes()) {
            assert!(self.fill().is_ok_and(|n| n > 0), "closed before {end}");
        }
    }

    /// Everything until the connection ends, or nothing has come for very long.
    pub(crate) fn rest(mut self) -> (Vec<u8>, End) {
        let end = loop {
            match self.fill() {
                Ok(0) => break End::Closed,
                Ok(_) => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break End::Open,
                Err(_) => break End::Reset,
            }
        };
        (self.buffer, end)
    }

    /// One final response, interim ones left out.
    pub(crate) fn response(&mut self, method: &str) -> Message {
        loop {
            let response = self.any_response(method);
            if response.status() >= 200 {
                return response;
            }
        }
    }

    /// One response, be it interim or final, on a connection that stays open.
    pub(crate) fn any_response(&mut self, method: &str) -> Message {
        loop {
            let parsed = strict::response(&self.buffer, method == "HEAD", false);
            if let Some((message, len)) = parsed.unwrap_or_else(|e| panic!("{e}")) {
                self.buffer.drain(..len);
                return message;
            }
            let n = self
                .fill()
                .unwrap_or_else(|e| panic!("{e} after {:?}", String::from_utf8_lossy(&self.buffer)));
            assert!(n > 0, "closed after {:?}", String::from_utf8_lossy(&self.buffer));
        }
    }

    /// The answer to a GET, if the connection does not end before one.
    pub(crate) fn answer_or_end(&mut self) -> Option<Message> {
        while !self.fill().is_ok_and(|n| n == 0) {
            if let Some((message, _)) = strict::response(&self.buffer, false, false).unwrap() {
                return Some(message);
            }
        }
        assert!(self.buffer.is_empty(), "half an answer");
        None
    }

    /// One response on a connection that may end behind it.
    pub(crate) fn response_or_end(mut self, method: &str) -> Message {
        loop {
            let closed = match strict::response(&self.buffer, method == "HEAD", false) {
                Ok(Some((message, len))) if message.status() < 200 => {
                    self.buffer.drain(..len);
                    continue;
                }
                Ok(Some((message, _))) => return message,
                Ok(None) => matches!(self.fill(), Ok(0)),
                Err(e) => panic!("{e}"),
            };
            if closed {
                let parsed = strict::response(&self.buffer, method == "HEAD", true);
                return parsed.unwrap_or_else(|e| panic!("{e}")).expect("a whole response").0;
            }
        }
    }

    /// Whether the connection ends, with nothing more to read.
    pub(crate) fn ends(self) -> bool {
        let (rest, end) = self.rest();
        rest.is_empty() && end != End::Open
    }

    /// Whether neither a byte nor an end has come that was not read.
    pub(crate) fn is_silent(&self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let peeked = uninterrupted(|| self.stream.peek(&mut [0]));
        self.stream.set_nonblocking(false).unwrap();
        self.buffer.is_empty() && peeked.is_err_and(|e| e.kind() == ErrorKind::WouldBlock)
    }

    /// Sends a GET and reads its answer.
    pub(crate) fn get(&mut self, target: &str) -> Message {
        self.send(get(target));
        self.response("GET")
    }

    /// Sends a GET and reads its answer, on a connection that may end behind it.
    pub(crate) fn asked(mut self, target: &str) -> Message {
        self.send(get(target));
        self.response_or_end("GET")
    }

    fn fill(&mut self) -> std::io::Result<usize> {
        let mut bytes = [0; 65_536];
        let n = uninterrupted(|| self.stream.read(&mut bytes))?;
        self.buffer.extend_from_slice(&bytes[..n]);
        Ok(n)
    }
}

/// A POST with a small body.
pub(crate) fn post(target: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
}

/// An ordinary GET.
pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// Statuses of all answers, which must be whole.
pub(crate) fn statuses(bytes: &[u8], methods: &[&str]) -> Vec<u16> {
    let responses = strict::responses(bytes, methods);
    responses.unwrap_or_else(|e| panic!("{e}")).iter().map(Message::status).collect()
}

/// Bytes that repeat nowhere within a buffer.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}
