//! A connection from the moment it was taken over to its end: requests one after the other, each placed by the front-end as
//! long as there is one to ask.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_datapath::now_ns;
use plimsoll_datapath::tcp::Restored;
use plimsoll_wire::message::FromAgent;
use tokio::time::Instant;

use super::client::{Client, Next};
use super::connection::{Connection, Cut};
use super::outcome::{End, report};
use super::placing::{Placed, place};
use super::serve::{Answer, Serve, Session, Then};
use super::shared::{Room, Shared, count};
use super::shim;

/// A connection that was taken over and says nothing yet.
pub(super) struct Taken {
    pub(super) connection: Arc<Connection>,
    pub(super) restored: Restored,
    /// What the client has sent and nobody has read.
    pub(super) input: Vec<u8>,
    pub(super) room: Room,
}

/// Serves a connection to its end.
pub(super) async fn drive(shared: Arc<Shared>, taken: Taken) {
    let Taken { connection, restored, input, room } = taken;
    let taken_at = std::time::Instant::now();
    if connection.cut_now() == Some(Cut::Silent) {
        // Not activated, it says nothing.
        shared.release(&connection.flow, connection.number);
        drop(restored);
        leave(&shared, &connection);
        return;
    }
    let client = restored.activate().and_then(|fd| Client::new(fd, &input, shared.config.write_timeout));
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            tracing::warn!(%error, flow = ?connection.flow, "a connection was lost when it was taken over");
            report(&shared, &connection, Answer::NONE, taken_at);
            leave(&shared, &connection);
            return;
        }
    };
    // The socket is there, so that what was held finds it.
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
        Ok(End::Returned) => {
            count(&shared.counters.returned, 1);
            shared.forget(&connection);
            drop(room);
            return;
        }
        Ok(End::Close(client)) => close(&shared, &connection, Some(client)).await,
        Ok(End::Abort(client)) => client.abort(),
        Ok(End::Lost) => close(&shared, &connection, None).await,
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

/// Ends a connection in order: it is over when the client has everything. Without the socket, a server has closed it, or
/// the kernel has lost it.
async fn close(shared: &Shared, connection: &Connection, mut client: Option<Client>) {
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

/// Waits until the kernel has nothing more to send; false when it could send nothing for too long.
async fn sent(shared: &Shared, connection: &Connection) -> bool {
    const FIRST_PAUSE: Duration = Duration::from_millis(50);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);
    let mut least_bytes = u32::MAX;
    let mut progress_at = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        if !shared.flows.is_here(&connection.flow, connection.number) {
            // Another connection has its addresses, so that it is over.
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

/// If the client must hear nothing, it hears nothing from here on.
fn silence(shared: &Shared, connection: &Connection, how: Cut) {
    if how == Cut::Silent {
        shared.release(&connection.flow, connection.number);
    }
}

/// The connection is over.
fn leave(shared: &Shared, connection: &Connection) {
    shared.flows.gone(connection.flow, connection.number);
    shared.forget(connection);
    if let Some((link, conn)) = connection.leave() {
        link.forget(conn);
        if connection.cut_now() != Some(Cut::Silent) {
            link.push_later(&FromAgent::Closed { conn });
        }
    }
}

/// Requests and answers, until the connection ends. The client is in `slot` at every point at which this may be given up.
async fn converse(shared: &Shared, connection: &Connection, slot: &mut Option<Client>) -> End {
    let Some(mut session) = shared.serve.session() else { return End::Lost };
    let mut first = true;
    loop {
        let Some(client) = slot.as_mut() else { return End::Lost };
        let next = client.next(connection, shared.config.idle_timeout).await;
        let began_at = std::time::Instant::now();
        if matches!(next, Next::End | Next::TimedOut | Next::Close) {
            if first {
                // The request for which it was handed off never came.
                report(shared, connection, Answer::NONE, began_at);
            }
            return slot.take().map_or(End::Lost, End::Close);
        }
        if !first {
            let head_bytes = match next {
                Next::Request(outline) => outline.bytes,
                _ => client.input.len(),
            };
            let head = client.input[..head_bytes.min(client.input.len())].to_vec();
            match place(shared, connection, slot, &next, &head).await {
                Placed::Here => {}
                Placed::Returned => return End::Returned,
                Placed::Lost => return End::Lost,
            }
        }
        first = false;
        let Some(client) = slot.as_mut() else { return End::Lost };
        let answer = answer(&mut session, client, &next, connection).await;
        report(shared, connection, answer, began_at);
        match answer.then {
            Then::KeepAlive => {}
            Then::Close => return slot.take().map_or(End::Lost, End::Close),
            Then::Abort => return slot.take().map_or(End::Lost, End::Abort),
        }
    }
}

async fn answer(
    session: &mut Session<'_>,
    client: &mut Client,
    next: &Next,
    connection: &Connection,
) -> Answer {
    match *next {
        Next::Request(outline) => session.answer(client, outline, connection).await,
        Next::Foreign(why) => session.answer_foreign(client, why).await,
        Next::End | Next::TimedOut | Next::Close => Answer::NONE,
    }
}
