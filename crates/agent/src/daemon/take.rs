//! Taking a connection over: everything that can fail, before the front-end is told that it has not.

use std::sync::Arc;

use plimsoll_datapath::tcp::{self, RestoreError, TcpState};
use plimsoll_datapath::{DatapathError, now_ns};
use plimsoll_wire::message::{Conn, Refusal};

use super::config::FrontEnd;
use super::connection::{Birth, Connection};
use super::drive::Taken;
use super::link::Link;
use super::shared::Shared;

/// A connection that the front-end hands off.
pub(super) struct Offer<'a> {
    pub(super) conn: Conn,
    pub(super) request: u32,
    pub(super) lease_until_ns: u64,
    pub(super) ask: bool,
    pub(super) state: &'a [u8],
}

/// Restores the connection; it has a lease, and says nothing yet.
pub(super) fn take(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    front_end: &Arc<FrontEnd>,
    offer: &Offer<'_>,
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

/// The same of a state that was understood.
fn restore(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    front_end: &Arc<FrontEnd>,
    offer: &Offer<'_>,
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
    // What was read of the request is kept here, rather than written to the kernel and read again.
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
    // Known before it has a lease, so that this is not taken for what an earlier one has left.
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
        // Since it was looked at above, and perhaps after all connections were told.
        connection.close();
    }
    Ok(Taken { connection, restored, input, room })
}

/// What an encoded state has beyond the bytes under way.
const SPARE_BYTES: usize = 1024;
