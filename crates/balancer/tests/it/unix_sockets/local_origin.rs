//! A back-end on a Unix socket.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll_testkit::{PATIENCE, uninterrupted};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::common::origin::echo;
use crate::common::strict::{self, Message};

/// What came, and what is open.
#[derive(Debug, Default)]
struct LocalSeen {
    /// What each connection began with where that is no request.
    introductions: Vec<String>,
    requests: Vec<Message>,
    connections: Vec<UnixStream>,
}

/// A back-end that answers each request with its first line and body. It goes when it is dropped, with its socket and connections.
pub(crate) struct LocalOrigin {
    path: PathBuf,
    seen: Arc<Mutex<LocalSeen>>,
    stop: Arc<AtomicBool>,
}

impl LocalOrigin {
    /// At this path, where nothing is.
    pub(crate) fn at(path: &Path) -> Self {
        Self::on(UnixListener::bind(path).unwrap(), path)
    }

    /// On a socket that listens there.
    pub(crate) fn on(listener: UnixListener, path: &Path) -> Self {
        let this = Self { path: path.to_owned(), seen: Arc::default(), stop: Arc::default() };
        let (seen, stop) = (Arc::clone(&this.seen), Arc::clone(&this.stop));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let mut there = seen.lock().unwrap();
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                there.connections.push(stream.try_clone().unwrap());
                drop(there);
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || serve(stream, &seen));
            }
        });
        this
    }

    /// As back-ends are configured.
    pub(crate) fn address(&self) -> String {
        format!("unix:{}", self.path.display())
    }

    /// The requests that have come; forgets them.
    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.seen.lock().unwrap().requests)
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections.len()
    }

    /// The lines of the PROXY protocol that have come.
    pub(crate) fn introductions(&self) -> Vec<String> {
        self.seen.lock().unwrap().introductions.clone()
    }
}

impl Drop for LocalOrigin {
    fn drop(&mut self) {
        let seen = self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.stop.store(true, Ordering::SeqCst);
        // The thread that accepts sees this, and closes the socket; connections that wait there are lost.
        drop(UnixStream::connect(&self.path));
        drop(std::fs::remove_file(&self.path));
        for stream in &seen.connections {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

fn serve(mut stream: UnixStream, seen: &Mutex<LocalSeen>) {
    let mut buffer = Vec::new();
    loop {
        if buffer.starts_with(b"PROXY ")
            && let Some(end) = buffer.windows(2).position(|two| two == b"\r\n")
        {
            let line: Vec<u8> = buffer.drain(..end + 2).collect();
            seen.lock().unwrap().introductions.push(String::from_utf8_lossy(&line).into_owned());
        }
        if !buffer.starts_with(b"PROXY ")
            && let Some((request, length)) = strict::request(&buffer).unwrap()
        {
            buffer.drain(..length);
            let answer = echo(&request);
            seen.lock().unwrap().requests.push(request);
            if stream.write_all(&answer).is_err() {
                return;
            }
            continue;
        }
        let mut piece = [0; 65_536];
        match uninterrupted(|| stream.read(&mut piece)) {
            Ok(0) | Err(_) => return,
            Ok(n) => buffer.extend_from_slice(&piece[..n]),
        }
    }
}

/// Listens at this path, with a queue that is full; what fills it.
pub(crate) fn full_queue(path: &Path) -> (UnixListener, Vec<Socket>) {
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    let address = SockAddr::unix(path).unwrap();
    listener.bind(&address).unwrap();
    listener.listen(1).unwrap();
    let mut waiting = Vec::new();
    loop {
        let client = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        client.set_nonblocking(true).unwrap();
        match client.connect(&address) {
            Ok(()) => waiting.push(client),
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                return (listener.into(), waiting);
            }
        }
    }
}
