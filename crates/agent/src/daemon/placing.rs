//! Has the front-end place further requests, and gives the connection back where one belongs elsewhere.

use std::time::Duration;

use plimsoll_datapath::now_ns;
use plimsoll_datapath::tcp::{Frozen, Limits, TcpState};
use plimsoll_wire::message::FromAgent;
use tokio::time::{Instant, timeout_at};

use super::client::{Client, Next};
use super::connection::{Connection, Decision};
use super::head::MOST_HEAD_BYTES;
use super::shared::{Shared, count};

/// How long the front-end may take to decide; then the request is answered here.
const DECISION: Duration = Duration::from_secs(10);

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
        if !link.is_lost() {
            return;
        }
    }
    shared.flows.unreturned(connection.flow);
}
