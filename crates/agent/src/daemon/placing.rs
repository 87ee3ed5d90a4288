//! Lets the front-end place further requests, and gives the connection back if one belongs elsewhere.

use std::time::Duration;

use plimsoll_datapath::now_ns;
use plimsoll_datapath::tcp::{Frozen, QueueLimits, TcpState};
use plimsoll_wire::message::FromAgent;
use tokio::time::{Instant, timeout_at};

use super::client::{ClientConnection, Next};
use super::closing::Closing as _;
use super::connection::{Connection, PlacementDecision};
use super::head::MOST_HEAD_BYTES;
use super::shared::{AgentShared, count};

/// Time-out of a decision, after which the request is answered here.
const DECISION: Duration = Duration::from_secs(10);

/// Where a further request is answered.
pub(super) enum Placed {
    Here,
    Returned,
    Lost,
}

/// Lets the front-end place the request with this `head` (the bytes that have come, if it is not for the
/// agent).
pub(super) async fn place(
    shared: &AgentShared,
    connection: &Connection,
    slot: &mut Option<ClientConnection>,
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
        PlacementDecision::Stay => Placed::Here,
        PlacementDecision::Return => give_back(shared, connection, slot, request),
    }
}

/// Waits for the decision, for a limited time.
async fn decided(connection: &Connection) -> PlacementDecision {
    let deadline = Instant::now() + DECISION;
    loop {
        if let Some(decision) = connection.decision() {
            return decision;
        }
        if timeout_at(deadline, connection.woken()).await.is_err() {
            connection.give_up_asking();
            return PlacementDecision::Stay;
        }
    }
}

/// Gives the connection back, if possible; otherwise reports that it stays.
fn give_back(
    shared: &AgentShared,
    connection: &Connection,
    slot: &mut Option<ClientConnection>,
    request: u32,
) -> Placed {
    let Some(client) = slot.take() else { return Placed::Lost };
    let Ok((fd, input)) = client.into_parts() else { return Placed::Lost };
    let limits = QueueLimits::default();
    let send_bytes = shared.config.state_bytes.saturating_sub(limits.receive_bytes);
    let limits = QueueLimits { send_bytes, ..limits };
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
    match ClientConnection::new(fd, &input, shared.config.write_timeout) {
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

/// Closes our socket silently, then reports the connection as returned. Without a front-end to report to, the
/// connection ends, as nobody could answer on it.
fn hand_over(shared: &AgentShared, connection: &Connection, frozen: Frozen, state: &TcpState, request: u32) {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    // Before the socket is gone, because packets are held from then on.
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
