//! A back-end on a Unix socket.

use std::net::Shutdown;
use std::ops::Deref;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::common::origin::{OriginServer, echo};

/// Its connections.
#[derive(Debug, Default)]
struct LocalConnections {
    /// What each began with where that is no request.
    introductions: Vec<String>,
    sockets: Vec<Socket>,
    is_over: bool,
}

/// A back-end that answers each request with its first line and body. It goes when it is dropped, with its socket and connections.
pub(crate) struct LocalOrigin {
    path: PathBuf,
    connections: Arc<Mutex<LocalConnections>>,
    server: OriginServer,
}

impl LocalOrigin {
    /// At this path, where nothing is.
    pub(crate) fn at(path: &Path) -> Self {
        Self::on(UnixListener::bind(path).unwrap(), path)
    }

    /// On a socket that listens there.
    pub(crate) fn on(listener: UnixListener, path: &Path) -> Self {
        let connections = Arc::<Mutex<LocalConnections>>::default();
        let all = Arc::clone(&connections);
        let server = OriginServer::on(Socket::from(listener), move |conn| {
            let socket = conn.stream.try_clone().unwrap();
            let mut there = all.lock().unwrap();
            if there.is_over {
                return;
            }
            there.sockets.push(socket);
            drop(there);
            while !conn.text().is_empty() || conn.read() > 0 {
                if conn.text().starts_with("PROXY ") {
                    let Some(line) = conn.line() else { return };
                    all.lock().unwrap().introductions.push(line);
                    continue;
                }
                let Some(request) = conn.request() else { return };
                conn.write(&echo(&request));
            }
        });
        Self { path: path.to_owned(), connections, server }
    }

    /// As back-ends are configured.
    pub(crate) fn address(&self) -> String {
        format!("unix:{}", self.path.display())
    }

    /// The lines of the PROXY protocol that have come.
    pub(crate) fn introductions(&self) -> Vec<String> {
        self.connections.lock().unwrap().introductions.clone()
    }
}

impl Deref for LocalOrigin {
    type Target = OriginServer;

    fn deref(&self) -> &OriginServer {
        &self.server
    }
}

impl Drop for LocalOrigin {
    fn drop(&mut self) {
        self.server.stop();
        drop(std::fs::remove_file(&self.path));
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.is_over = true;
        for socket in &connections.sockets {
            drop(socket.shutdown(Shutdown::Both));
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
