//! Drives a connection from the take-over to its end: requests one after the other, each placed by the
//! front-end while it is reachable.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_datapath::now_ns;
use plimsoll_datapath::tcp::Restored;
use plimsoll_wire::message::FromAgent;
use tokio::time::Instant;

use super::client::{ClientConnection, Next};
use super::connection::{Connection, Cut};
use super::outcome::{ConnectionEnd, begin, finish, report};
use super::placing::{Placed, place};
use super::serve::{AfterAnswer, Answer, Serve, Session};
use super::shared::{AgentShared, Room, count};
use super::shim;

/// A connection that was taken over and is not active yet.
pub(super) struct Taken {
    pub(super) connection: Arc<Connection>,
    pub(super) restored: Restored,
    /// Unread bytes from the client.
    pub(super) input: Vec<u8>,
    pub(super) room: Room,
}

/// Serves a connection to its end.
pub(super) async fn drive(shared: Arc<AgentShared>, taken: Taken) {
    let Taken { connection, restored, input, room } = taken;
    let taken_at = std::time::Instant::now();
    if connection.cut_now() == Some(Cut::Silent) {
        // Never activated, so it sends nothing.
        shared.release(&connection.flow, connection.number);
        drop(restored);
        leave(&shared, &connection);
        return;
    }
    let client =
        restored.activate().and_then(|fd| ClientConnection::new(fd, &input, shared.config.write_timeout));
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            tracing::warn!(%error, flow = ?connection.flow, "a connection was lost when it was taken over");
            report(&shared, &connection, Answer::NONE, taken_at);
            leave(&shared, &connection);
            return;
        }
    };
    // The socket exists, so held packets can be injected.
    for packet in shared.flows.here(connection.flow, connection.number, now_ns()) {
        shared.inject(&packet);
    }
    let mut slot = Some(client);
    let end = tokio::select! {
        biased;
        how = connection.is_cut() => Err(how),
        end = async {
            match &shared.serve {
                Serve::Shim(path) => shim::converse(&shared, &connection, &mut slot, path).await,
                _ => converse(&shared, &connection, &mut slot).await,
            }
        } => Ok(end),
    };
    match end {
        Ok(ConnectionEnd::Returned) => {
            count(&shared.counters.returned, 1);
            shared.forget(&connection);
            drop(room);
            return;
        }
        Ok(ConnectionEnd::Close(client)) => close(&shared, &connection, Some(client)).await,
        Ok(ConnectionEnd::Abort(client)) => client.abort(),
        Ok(ConnectionEnd::Lost) => close(&shared, &connection, None).await,
        Err(how) => {
            silence(&shared, &connection, how);
            if how == Cut::Reset && connection.is_active() {
                report(&shared, &connection, Answer::NONE, taken_at);
            }
            if let Some(client) = slot.take() {
                client.abort();
            }
        }
    }
    leave(&shared, &connection);
    drop(room);
}

/// Ends a connection gracefully: it is over when the client has received everything. Without a socket, the
/// server has closed it or the kernel has lost it.
async fn close(shared: &AgentShared, connection: &Connection, mut client: Option<ClientConnection>) {
    let finished = async {
        let both = match client.as_mut() {
            Some(client) => client.finish().await,
            None => false,
        };
        (both, sent(shared, connection).await)
    };
    let ended = tokio::select! {
        biased;
        how = connection.is_cut() => Err(how),
        ended = finished => Ok(ended),
    };
    match ended {
        Ok((both, true)) => {
            if both {
                shared.closed(connection);
            }
            return;
        }
        Ok((_, false)) => {
            tracing::debug!(flow = ?connection.flow, "a client has not taken the end of an answer in time");
        }
        Err(how) => silence(shared, connection, how),
    }
    if let Some(client) = client {
        client.abort();
    }
}

/// Waits until the kernel has nothing more to send. False when it made no progress for too long.
async fn sent(shared: &AgentShared, connection: &Connection) -> bool {
    const FIRST_PAUSE: Duration = Duration::from_millis(50);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);
    let mut least_bytes = u32::MAX;
    let mut progress_at = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        if !shared.flows.is_here(&connection.flow, connection.number) {
            // Another connection has its addresses, so this one is over.
            return true;
        }
        match shared.queues.bytes(&connection.flow) {
            Ok(0) => return true,
            Ok(bytes) if bytes < least_bytes => (least_bytes, progress_at) = (bytes, Instant::now()),
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "what is left to be sent is not known"),
        }
        if progress_at.elapsed() >= shared.config.write_timeout {
            return false;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Silences the connection if the client must hear nothing.
fn silence(shared: &AgentShared, connection: &Connection, how: Cut) {
    if how == Cut::Silent {
        shared.release(&connection.flow, connection.number);
    }
}

/// Removes a connection that is over.
fn leave(shared: &AgentShared, connection: &Connection) {
    shared.flows.gone(connection.flow, connection.number);
    shared.forget(connection);
    if let Some((link, conn)) = connection.leave() {
        link.forget(conn);
        if connection.cut_now() != Some(Cut::Silent) {
            link.push_later(&FromAgent::Closed { conn });
        }
    }
}

/// Handles requests until the connection ends. The client is in `slot` at every await at which this future
/// may be dropped.
async fn converse(
    shared: &AgentShared,
    connection: &Connection,
    slot: &mut Option<ClientConnection>,
) -> ConnectionEnd {
    let Some(mut session) = shared.serve.session() else { return ConnectionEnd::Lost };
    let mut first = true;
    loop {
        let Some(client) = slot.as_mut() else { return ConnectionEnd::Lost };
        let next = client.next(connection, shared.config.idle_timeout).await;
        let began_at = std::time::Instant::now();
        if matches!(next, Next::End | Next::TimedOut | Next::Close) {
            if first {
                // The request for which it was handed off never came.
                report(shared, connection, Answer::NONE, began_at);
            }
            return slot.take().map_or(ConnectionEnd::Lost, ConnectionEnd::Close);
        }
        if !first {
            let head_bytes = match next {
                Next::Request(outline) => outline.bytes,
                _ => client.input.len(),
            };
            let head = client.input[..head_bytes.min(client.input.len())].to_vec();
            match place(shared, connection, slot, &next, &head).await {
                Placed::Here => {}
                Placed::Returned => return ConnectionEnd::Returned,
                Placed::Lost => return ConnectionEnd::Lost,
            }
        }
        first = false;
        let Some(client) = slot.as_mut() else { return ConnectionEnd::Lost };
        let access = begin(shared);
        let answer = answer(&mut session, client, &next, connection).await;
        finish(access, began_at);
        report(shared, connection, answer, began_at);
        match answer.then {
            AfterAnswer::KeepAlive => {}
            AfterAnswer::Close => return slot.take().map_or(ConnectionEnd::Lost, ConnectionEnd::Close),
            AfterAnswer::Abort => return slot.take().map_or(ConnectionEnd::Lost, ConnectionEnd::Abort),
        }
    }
}

async fn answer(
    session: &mut Session<'_>,
    client: &mut ClientConnection,
    next: &Next,
    connection: &Connection,
) -> Answer {
    match *next {
        Next::Request(outline) => session.answer(client, outline, connection).await,
        Next::Foreign(why) => session.answer_foreign(client, why).await,
        Next::End | Next::TimedOut | Next::Close => Answer::NONE,
    }
}
