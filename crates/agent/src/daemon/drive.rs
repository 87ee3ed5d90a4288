//! A connection from the moment it was taken over to its end: requests one after the other, each placed by the front-end as
//! long as there is one to ask.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_datapath::now_ns;
use plimsoll_datapath::tcp::{Frozen, Limits, Restored, TcpState};
use plimsoll_wire::message::{Ended, FromAgent};
use tokio::time::{Instant, timeout_at};

use super::client::{Client, Next};
use super::connection::{Connection, Cut, Decision};
use super::head::MOST_HEAD_BYTES;
use super::serve::{Answer, Serve, Session, Then};
use super::shared::{Room, Shared, count};
use super::shim;

/// How long the front-end may take to decide; then the request is answered here.
const DECISION: Duration = Duration::from_secs(10);

/// A connection that was taken over and says nothing yet.
pub(super) struct Taken {
    pub(super) connection: Arc<Connection>,
    pub(super) restored: Restored,
    /// What the client has sent and nobody has read.
    pub(super) input: Vec<u8>,
    pub(super) room: Room,
}

/// How a connection ended.
pub(super) enum End {
    /// In order.
    Close(Client),
    /// Not in order.
    Abort(Client),
    /// The front-end has it back.
    Returned,
    /// The kernel lost it.
    Lost,
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

/// Counts and reports the answer to the request under way.
pub(super) fn report(shared: &Shared, connection: &Connection, answer: Answer, began_at: std::time::Instant) {
    connection.answered();
    count(&shared.counters.requests, 1);
    count(&shared.counters.content_bytes, answer.content_bytes);
    let ended = ended_of(connection.request(), answer, began_at);
    connection.tell_later(|conn| FromAgent::Ended { conn, ended });
}

fn ended_of(request: u32, answer: Answer, began_at: std::time::Instant) -> Ended {
    let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    let total_us = micros(began_at.elapsed());
    let first_byte_us =
        answer.first_byte_at.map_or(total_us, |at| micros(at.saturating_duration_since(began_at)));
    Ended {
        request,
        status: answer.status,
        complete: answer.complete,
        content_bytes: answer.content_bytes,
        first_byte_us,
        total_us,
    }
}

/// Where a further request is answered.
pub(super) enum Placed {
    Here,
    Returned,
    Lost,
}

/// Has the front-end place the request that begins with `head`, or is that if it is not for the agent.
pub(super) async fn place(
    shared: &Shared,
    connection: &Connection,
    slot: &mut Option<Client>,
    next: &Next,
    head: &[u8],
) -> Placed {
    let Some(client) = slot.as_ref() else { return Placed::Lost };
    let head = &head[..head.len().min(MOST_HEAD_BYTES)];
    let request = connection.next_request();
    let foreign = matches!(next, Next::Foreign(_));
    match connection.asks(request, foreign) {
        None => return Placed::Here,
        Some(false) => {
            connection.tell(|conn| FromAgent::Began { conn, request, head });
            return Placed::Here;
        }
        Some(true) => {}
    }
    let portable = client.is_whole();
    connection.tell(|conn| FromAgent::Ask { conn, request, portable, head });
    match decided(connection).await {
        Decision::Stay => Placed::Here,
        Decision::Return => give_back(shared, connection, slot, request),
    }
}

/// The decision, for which there is a limit of time.
async fn decided(connection: &Connection) -> Decision {
    let deadline = Instant::now() + DECISION;
    loop {
        if let Some(decision) = connection.decision() {
            return decision;
        }
        if timeout_at(deadline, connection.woken()).await.is_err() {
            connection.give_up_asking();
            return Decision::Stay;
        }
    }
}

/// Gives the connection back, if it can be; otherwise says that it stays.
fn give_back(shared: &Shared, connection: &Connection, slot: &mut Option<Client>, request: u32) -> Placed {
    let Some(client) = slot.take() else { return Placed::Lost };
    let Ok((fd, input)) = client.into_parts() else { return Placed::Lost };
    let limits = Limits::default();
    let send_bytes = shared.config.state_bytes.saturating_sub(limits.receive_bytes);
    let limits = Limits { send_bytes, ..limits };
    let (fd, why) = match Frozen::freeze(fd) {
        Ok(frozen) => match frozen.snapshot(&connection.flow, &input, limits) {
            Ok(state) => {
                hand_over(shared, connection, frozen, &state, request);
                return Placed::Returned;
            }
            Err(why) => match frozen.thaw() {
                Ok(fd) => (fd, why),
                Err(error) => {
                    tracing::warn!(%error, flow = ?connection.flow, "a connection was lost");
                    return Placed::Lost;
                }
            },
        },
        Err(failed) => (failed.fd, failed.error),
    };
    tracing::debug!(flow = ?connection.flow, "a connection is not given back: {why}");
    match Client::new(fd, &input, shared.config.write_timeout) {
        Ok(client) => *slot = Some(client),
        Err(error) => {
            tracing::warn!(%error, flow = ?connection.flow, "a connection was lost");
            return Placed::Lost;
        }
    }
    count(&shared.counters.kept, 1);
    connection.tell(|conn| FromAgent::Kept { conn, request });
    Placed::Here
}

/// Lets go of the connection and then says so. Should there be nobody to say it to, the connection ends: nobody could
/// answer on it.
fn hand_over(shared: &Shared, connection: &Connection, frozen: Frozen, state: &TcpState, request: u32) {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    // Before the socket is gone, as packets are held from then on.
    shared.flows.returned(connection.flow, now_ns());
    shared.release(&connection.flow, connection.number);
    frozen.close();
    if let Some((link, conn)) = connection.leave() {
        link.returned(conn, connection.flow);
        link.push(&FromAgent::Returned { conn, request, state: &bytes });
    }
}
