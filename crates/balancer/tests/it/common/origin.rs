//! A back-end on a bare socket: it keeps the exact bytes that it gets and answers what it is told to.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_testkit::{PATIENCE, eventually, uninterrupted};
use socket2::{SockAddr, Socket, Type};

use super::strict::{self, Message};

/// What an origin got.
#[derive(Debug, Default)]
struct Seen {
    requests: Vec<Message>,
    /// What was no request.
    violations: Vec<String>,
    connections: usize,
    /// Bytes of requests that were never completed.
    unfinished: Vec<Vec<u8>>,
}

/// An origin over TCP; ends with the test.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    server: OriginServer,
}

/// An origin on a socket of any kind, without its address.
pub(crate) struct OriginServer {
    local: SockAddr,
    seen: Arc<Mutex<Seen>>,
    stop: Arc<AtomicBool>,
    /// Connections open now.
    open: Arc<AtomicUsize>,
}

/// One connection of an origin.
pub(crate) struct Conn {
    pub(crate) stream: Socket,
    buffer: Vec<u8>,
    seen: Arc<Mutex<Seen>>,
}

impl Origin {
    /// An origin that leaves each connection to `serve`, in a thread of its own.
    pub(crate) fn scripted(serve: impl Fn(&mut Conn) + Send + Sync + 'static) -> Self {
        Self::scripted_at("127.0.0.1:0", serve)
    }

    pub(crate) fn scripted_at(address: &str, serve: impl Fn(&mut Conn) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        Self { address, server: OriginServer::on(listener.into(), serve) }
    }

    /// An origin that answers each request with what `answer` makes of it, and keeps its connections.
    pub(crate) fn answering(answer: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::scripted(move |conn| {
            while let Some(request) = conn.request() {
                conn.write(&answer(&request));
            }
        })
    }

    /// An origin that answers 200 with the request's first line and body.
    pub(crate) fn echo() -> Self {
        Self::answering(echo)
    }
}

impl Deref for Origin {
    type Target = OriginServer;

    fn deref(&self) -> &OriginServer {
        &self.server
    }
}

impl OriginServer {
    /// Leaves each connection to this listener to `serve`, in a thread of its own.
    pub(crate) fn on(listener: Socket, serve: impl Fn(&mut Conn) + Send + Sync + 'static) -> Self {
        let server = Self {
            local: listener.local_addr().unwrap(),
            seen: Arc::default(),
            stop: Arc::default(),
            open: Arc::default(),
        };
        let (seen, stop) = (Arc::clone(&server.seen), Arc::clone(&server.stop));
        let open = Arc::clone(&server.open);
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            loop {
                let accepted = listener.accept();
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let Ok((stream, from)) = accepted else { return };
                if from.is_ipv4() || from.is_ipv6() {
                    stream.set_tcp_nodelay(true).unwrap();
                }
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                stream.set_write_timeout(Some(PATIENCE)).unwrap();
                seen.lock().unwrap().connections += 1;
                open.fetch_add(1, Ordering::SeqCst);
                let mut conn = Conn { stream, buffer: Vec::new(), seen: Arc::clone(&seen) };
                let (serve, open) = (Arc::clone(&serve), Arc::clone(&open));
                std::thread::spawn(move || {
                    serve(&mut conn);
                    conn.end();
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        server
    }

    /// Accepts no more connections. Those that wait are lost.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        // The thread that accepts sees this, and closes the socket.
        let waker = Socket::new(self.local.domain(), Type::STREAM, None).unwrap();
        drop(waker.connect(&self.local));
    }

    /// The requests that came to their end, in the order in which they did; forgets them.
    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.lock().requests)
    }

    /// Methods and targets of these requests.
    pub(crate) fn take_lines(&self) -> Vec<String> {
        self.take().iter().map(|m| format!("{} {}", m.method(), m.target())).collect()
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.lock().connections
    }

    /// Waits until no connection is served any more; what came of requests that were never completed.
    pub(crate) fn unfinished(&self) -> Vec<Vec<u8>> {
        self.wait_until_closed();
        self.lock().unfinished.clone()
    }

    /// Waits until no connection is served any more.
    pub(crate) fn wait_until_closed(&self) {
        eventually("the end of the back-end's connections", || self.open.load(Ordering::SeqCst) == 0);
    }

    /// How many requests came to their end since [`Origin::take`].
    pub(crate) fn count(&self) -> usize {
        self.lock().requests.len()
    }

    /// Fails when anything but requests has come.
    pub(crate) fn assert_clean(&self) {
        let seen = self.lock();
        assert!(seen.violations.is_empty(), "the back-end got {:#?}", seen.violations);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for OriginServer {
    fn drop(&mut self) {
        self.stop();
        if !std::thread::panicking() {
            self.assert_clean();
        }
    }
}

impl Conn {
    /// Reads one whole request; nothing when the connection ends, or what comes is none.
    pub(crate) fn request(&mut self) -> Option<Message> {
        loop {
            match strict::request(&self.buffer) {
                Ok(Some((message, len))) => {
                    self.buffer.drain(..len);
                    let mut seen = self.seen.lock().unwrap();
                    let is_check = message.one("user-agent") == Some("plimsoll-health");
                    for name in ["x-forwarded-for", "x-forwarded-proto"].into_iter().filter(|_| !is_check) {
                        if message.all(name).len() != 1 {
                            seen.violations.push(format!("not one {name}: {message:?}"));
                        }
                    }
                    seen.requests.push(message.clone());
                    return Some(message);
                }
                Ok(None) => {}
                Err(violation) => {
                    self.seen.lock().unwrap().violations.push(violation);
                    return None;
                }
            }
            if self.read() == 0 {
                return None;
            }
        }
    }

    /// Reads until a request's head is there, and leaves it where it is.
    pub(crate) fn head(&mut self) -> bool {
        while !self.buffer.windows(4).any(|w| w == b"\r\n\r\n") {
            if self.read() == 0 {
                return false;
            }
        }
        true
    }

    /// Reads a line, and takes it; nothing when the connection ends before.
    pub(crate) fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|w| w == b"\r\n") {
                let line = self.buffer.drain(..end + 2).collect::<Vec<_>>();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.read() == 0 {
                return None;
            }
        }
    }

    /// What has come and is not used up, as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.buffer).into_owned()
    }

    /// Reads what there is; 0 at the end.
    pub(crate) fn read(&mut self) -> usize {
        let mut bytes = [0; 65_536];
        let n = uninterrupted(|| self.stream.read(&mut bytes)).unwrap_or(0);
        self.buffer.extend_from_slice(&bytes[..n]);
        n
    }

    /// Writes; whether the front-end took it.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Resets the connection.
    pub(crate) fn reset(&mut self) {
        self.stream.set_linger(Some(Duration::ZERO)).unwrap();
    }

    fn end(&mut self) {
        if !self.buffer.is_empty() {
            let unfinished = std::mem::take(&mut self.buffer);
            self.seen.lock().unwrap().unfinished.push(unfinished);
        }
        // With SO_LINGER of 0 closing resets; a shutdown before would not.
        if self.stream.linger().ok().flatten().is_none() {
            drop(self.stream.shutdown(Shutdown::Both));
        }
    }
}

/// 200 with the request's first line and body; HEAD gets the head only.
pub(crate) fn echo(request: &Message) -> Vec<u8> {
    let mut body = format!("{} {}\n", request.method(), request.target()).into_bytes();
    body.extend_from_slice(&request.body);
    let mut out = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    if request.method() != "HEAD" {
        out.extend_from_slice(&body);
    }
    out
}

/// Listens where one connection, or two, may wait.
pub(crate) fn short_queue() -> TcpListener {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(1).unwrap();
    socket.into()
}
