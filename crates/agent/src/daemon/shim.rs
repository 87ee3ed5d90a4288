//! Connections that a server with the accept shim answers: it gets the socket for each request and gives it
//! back when the next one comes.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use http::StatusCode;
use plimsoll_datapath::now_ns;
use plimsoll_datapath::shim::{Header, Notice, ShimAnswer, connect, receive, send_connection};
use tokio::io::Interest;

use super::client::{ClientConnection, Next};
use super::connection::Connection;
use super::outcome::{ConnectionEnd, begin, finish, report};
use super::placing::{Placed, place};
use super::serve::{AfterAnswer, Answer, answer_short};
use super::shared::AgentShared;

/// How often a connection to the server is tried while its queue is full, and the pause between.
const ATTEMPTS: usize = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// Handles requests until the connection ends. The client is in `slot` while the server does not have it.
pub(super) async fn converse(
    shared: &AgentShared,
    connection: &Connection,
    slot: &mut Option<ClientConnection>,
    path: &Path,
) -> ConnectionEnd {
    let mut first = true;
    loop {
        let Some(client) = slot.as_mut() else { return ConnectionEnd::Lost };
        let (next, head) = client.peek(connection, shared.config.idle_timeout).await;
        let began_at = Instant::now();
        if matches!(next, Next::End | Next::TimedOut | Next::Close) {
            if first {
                report(shared, connection, Answer::NONE, began_at);
            }
            return slot.take().map_or(ConnectionEnd::Lost, ConnectionEnd::Close);
        }
        if !first {
            match place(shared, connection, slot, &next, &head).await {
                Placed::Here => {}
                Placed::Returned => return ConnectionEnd::Returned,
                Placed::Lost => return ConnectionEnd::Lost,
            }
        }
        first = false;
        let unix = match pass(slot, path, header_of(&next)).await {
            Ok(unix) => unix,
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "the server took no connection");
                shared.server_failed();
                let Some(client) = slot.as_mut() else { return ConnectionEnd::Lost };
                let answer = answer_short(client, StatusCode::BAD_GATEWAY).await;
                report(shared, connection, answer, began_at);
                return slot.take().map_or(ConnectionEnd::Lost, ConnectionEnd::Close);
            }
        };
        match follow(shared, connection, &unix, began_at).await {
            Some(socket) => {
                // The shim has set the flag that the server expects, which all copies share.
                let client = rustix::io::ioctl_fionbio(&socket, true)
                    .map_err(io::Error::from)
                    .and_then(|()| ClientConnection::new(socket, &[], shared.config.write_timeout));
                match client {
                    Ok(client) => *slot = Some(client),
                    Err(_) => return ConnectionEnd::Lost,
                }
            }
            None => return ConnectionEnd::Lost,
        }
    }
}

/// The server may read this request and no further one. The end of a request that is not for the agent is
/// unknown.
pub(super) fn header_of(next: &Next) -> Header {
    let (head_request, head_bytes) = match next {
        Next::Request(outline) => (outline.is_head, outline.bytes),
        _ => (false, 0),
    };
    let head_size_bytes = u32::try_from(head_bytes).unwrap_or(0);
    Header { give_back_at_next_request: true, head_request, head_size_bytes, no_end: false }
}

/// Connects to the server; waits a little while its queue is full.
pub(super) async fn reach(path: &Path) -> io::Result<UnixStream> {
    let mut attempt = 1;
    loop {
        match connect(path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && attempt < ATTEMPTS => {
                attempt += 1;
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}

/// Passes the connection to the server. It stays in `slot` if that fails.
pub(super) async fn pass(
    slot: &mut Option<ClientConnection>,
    path: &Path,
    header: Header,
) -> io::Result<UnixStream> {
    let unix = reach(path).await?;
    let Some(client) = slot.as_ref() else { return Err(io::ErrorKind::NotConnected.into()) };
    send_connection(&unix, &client.stream, header)?;
    // The server must have the last copy, so that its `close` ends the connection.
    *slot = None;
    Ok(unix)
}

/// Reports answers until the server gives the connection back; `None` when the server has ended it.
async fn follow(
    shared: &AgentShared,
    connection: &Connection,
    unix: &UnixStream,
    began_at: Instant,
) -> Option<OwnedFd> {
    let mut reported = false;
    let mut access = begin(shared);
    let say = |answer: Answer| {
        // If the end of a request is unknown, the server may answer others that came with it.
        if !std::mem::replace(&mut reported, true) {
            finish(access.take(), began_at);
            report(shared, connection, answer, began_at);
        }
    };
    hear(unix, began_at, say).await
}

/// Tells of answers until the server gives the connection back; `None` when the server has ended it. Without any answer it tells
/// [`Answer::NONE`] at last.
pub(super) async fn hear(
    unix: &UnixStream,
    began_at: Instant,
    mut say: impl FnMut(Answer),
) -> Option<OwnedFd> {
    let began_ns = now_ns();
    let watched = unix.try_clone().and_then(tokio::net::UnixStream::from_std);
    let watched =
        watched.inspect_err(|error| tracing::warn!(%error, "a server could not be watched")).ok()?;
    loop {
        match notice(&watched, unix).await? {
            Some(Notice::Answered(answered)) => say(answer_of(&answered, began_at, began_ns)),
            Some(Notice::GivenBack(socket)) => {
                say(Answer::NONE);
                return Some(socket);
            }
            None => {
                say(Answer::NONE);
                return None;
            }
        }
    }
}

/// The next notice of the shim, `Some(None)` for the end; `None` when it cannot be understood.
async fn notice(watched: &tokio::net::UnixStream, unix: &UnixStream) -> Option<Option<Notice>> {
    loop {
        match watched.try_io(Interest::READABLE, || receive(unix)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => watched.readable().await.ok()?,
            Err(error) => {
                tracing::warn!(%error, "the server's shim is not understood");
                return None;
            }
            Ok(notice) => return Some(notice),
        }
    }
}

fn answer_of(answered: &ShimAnswer, began_at: Instant, began_ns: u64) -> Answer {
    let until_first = Duration::from_nanos(answered.first_byte_ns.saturating_sub(began_ns));
    Answer {
        status: answered.status,
        complete: answered.complete,
        content_bytes: answered.content_bytes,
        first_byte_at: (answered.first_byte_ns > 0).then(|| began_at + until_first),
        then: if answered.ended { AfterAnswer::Close } else { AfterAnswer::KeepAlive },
    }
}
