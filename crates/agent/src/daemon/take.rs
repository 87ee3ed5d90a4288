//! Takes a connection over: does everything that can fail before reporting success to the front-end.

use std::sync::Arc;

use plimsoll_datapath::tcp::{self, RestoreError, TcpState};
use plimsoll_datapath::{DatapathError, now_ns};
use plimsoll_wire::message::{Conn, Refusal};

use super::config::FrontEnd;
use super::connection::{Birth, Connection};
use super::drive::Taken;
use super::link::FrontEndLink;
use super::shared::AgentShared;

/// A connection that the front-end hands off.
pub(super) struct HandoffOffer<'a> {
    pub(super) conn: Conn,
    pub(super) request: u32,
    pub(super) lease_until_ns: u64,
    pub(super) ask: bool,
    pub(super) state: &'a [u8],
}

/// Restores the connection and gives it a lease. It is not active yet.
pub(super) fn take(
    shared: &Arc<AgentShared>,
    link: &Arc<FrontEndLink<Connection>>,
    front_end: &Arc<FrontEnd>,
    offer: &HandoffOffer<'_>,
) -> Result<Taken, Refusal> {
    if shared.is_stopping() {
        return Err(Refusal::Stopping);
    }
    if offer.state.len() > shared.config.state_bytes.saturating_add(SPARE_BYTES) {
        return Err(Refusal::BadState);
    }
    let state = TcpState::decode(offer.state).map_err(|error| {
        tracing::warn!(%error, "a state could not be understood");
        Refusal::BadState
    })?;
    let flow = state.flow;
    let taken = restore(shared, link, front_end, offer, state);
    if taken.is_err() {
        shared.flows.unwanted(flow);
    }
    taken
}

/// Restores a decoded state.
fn restore(
    shared: &Arc<AgentShared>,
    link: &Arc<FrontEndLink<Connection>>,
    front_end: &Arc<FrontEnd>,
    offer: &HandoffOffer<'_>,
    mut state: TcpState,
) -> Result<Taken, Refusal> {
    let flow = state.flow;
    if !shared.config.vips.contains(&flow.vip) {
        tracing::warn!(vip = %flow.vip, "a connection to an address that is none of ours");
        return Err(Refusal::BadState);
    }
    if shared.server_is_down() {
        return Err(Refusal::NoServer);
    }
    let room = shared.room().ok_or(Refusal::Full)?;
    if now_ns() >= offer.lease_until_ns {
        return Err(Refusal::Late);
    }
    // Keep the request's bytes here instead of writing them to the kernel and reading them again.
    let input = if shared.serve.reads_here() { std::mem::take(&mut state.receive_queue) } else { Vec::new() };
    let restored = tcp::restore(&state).map_err(|error| {
        if let RestoreError::InUse { .. } = error {
            tracing::debug!(%error, "a connection was not restored");
        } else {
            tracing::warn!(%error, "a connection was not restored");
        }
        Refusal::Kernel
    })?;
    let birth = Birth {
        link: Arc::clone(link),
        conn: offer.conn,
        request: offer.request,
        lease_until_ns: offer.lease_until_ns,
        ask: offer.ask,
    };
    let connection = Connection::new(flow, shared.next_number(), Arc::clone(front_end), birth);
    let connection = Arc::new(connection);
    shared.enter(&connection);
    // Register it before the lease, so that the lease is not taken for a leftover of an earlier connection.
    shared.lease(&connection, offer.lease_until_ns).map_err(|error| {
        shared.forget(&connection);
        match error {
            DatapathError::Full { .. } => Refusal::Full,
            error => {
                tracing::error!(%error, "a lease could not be entered");
                Refusal::Kernel
            }
        }
    })?;
    if shared.is_stopping() {
        // The agent may have begun to stop since the check above.
        connection.close();
    }
    Ok(Taken { connection, restored, input, room })
}

/// Bytes of an encoded state beyond its queues.
const SPARE_BYTES: usize = 1024;
