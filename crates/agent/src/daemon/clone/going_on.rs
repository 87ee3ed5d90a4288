//! The original goes on, after a clone has answered.

use bytes::BytesMut;
use plimsoll_datapath::tcp::TcpState;

use super::super::client::ClientConnection;
use super::super::head::{self, FoundHead};
use super::cloning::{CarriedOver, Cloning, Entered, Parked};
use super::counters::CloneCounters;

/// The most bytes of held packets that need not pass the kernel.
const MOST_TAKEN_BYTES: usize = 16 << 10;

impl<'a> Cloning<'a> {
    /// Goes on with what the client has sent besides, at this state, to which the clone has brought the connection and whose
    /// packets are held.
    pub(super) fn go_on(
        mut self,
        slot: &mut Option<ClientConnection>,
        mut state: TcpState,
        rest: &[u8],
        keep: bool,
    ) -> CarriedOver<'a> {
        let mut rest = BytesMut::from(rest);
        if keep {
            take_request(&self.entered, &mut state, &mut rest);
        }
        let shared = self.entered.shared;
        if !shared.serve.reads_here() {
            // A server behind the shim reads what follows itself.
            state.receive_queue = std::mem::take(&mut rest).into();
        }
        let next = head::find(&rest);
        (self.input, self.later) = (rest, Some(state));
        let parked = match next {
            // What else is held is for the kernel, which only a socket that lives gets.
            FoundHead::Request(outline) if keep && self.entered.original.holds_nothing() => {
                Some(Box::new(Parked::new(self, outline)))
            }
            _ if self.wake(slot) => None,
            _ => return CarriedOver::Lost,
        };
        CloneCounters::count(&shared.counters.fast_forwarded);
        CarriedOver::Answered { keep, parked }
    }

    /// Brings the original up to where it is. False if the connection was lost by that.
    pub(super) fn wake(self, slot: &mut Option<ClientConnection>) -> bool {
        let (client, entered) = self.woken();
        match client {
            Ok(client) => *slot = Some(client),
            Err(error) => {
                tracing::warn!(%error, flow = ?entered.flow, "a connection was lost after its clone had answered");
                CloneCounters::count(&entered.shared.counters.lost);
            }
        }
        slot.is_some()
    }
}

/// Takes the next request from the packets that were held, if all of it is there: it need not pass the kernel, which only has to
/// begin behind it, and acknowledges it with the answer.
fn take_request(entered: &Entered<'_>, state: &mut TcpState, rest: &mut BytesMut) {
    let before = rest.len();
    let is_request = |bytes: &[u8]| {
        rest.extend_from_slice(bytes);
        let is_there = matches!(head::find(rest), FoundHead::Request(_));
        if !is_there {
            rest.truncate(before);
        }
        is_there
    };
    let taken = entered.original.take_data(state, MOST_TAKEN_BYTES, is_request);
    state.receive_next = state.receive_next.wrapping_add(taken);
    // The room for what follows is as it was.
    state.window.receive_from = state.window.receive_from.wrapping_add(taken);
}
