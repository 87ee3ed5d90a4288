//! The original goes on, after a clone has answered.

use plimsoll_datapath::tcp::{self, TcpState};

use super::super::client::ClientConnection;
use super::super::head::{self, FoundHead};
use super::cloning::{CarriedOver, Cloning, Entered};
use super::counters::CloneCounters;

/// The most bytes of held packets that need not pass the kernel.
const MOST_TAKEN_BYTES: usize = 16 << 10;

impl Cloning<'_> {
    /// Brings the original, whose packets are held, up to this state, and goes on with what the client has sent besides.
    pub(super) fn go_on(
        self,
        slot: &mut Option<ClientConnection>,
        mut state: TcpState,
        rest: &[u8],
        keep: bool,
    ) -> CarriedOver {
        let Self { frozen, mut entered, .. } = self;
        let Entered { shared, flow, .. } = entered;
        let mut rest = rest.to_vec();
        if keep {
            take_request(&entered, &mut state, &mut rest);
        }
        if !shared.serve.reads_here() {
            // A server behind the shim reads what follows itself.
            state.receive_queue = std::mem::take(&mut rest);
        }
        let client = tcp::fast_forward(frozen, &state).map_err(std::io::Error::other);
        let client = client.and_then(tcp::Restored::activate);
        let client = client.and_then(|fd| ClientConnection::new(fd, &rest, shared.config.write_timeout));
        match client {
            Ok(client) => {
                *slot = Some(client);
                entered.in_doubt = false;
                CloneCounters::count(&shared.counters.fast_forwarded);
                CarriedOver::Answered { keep }
            }
            Err(error) => {
                tracing::warn!(%error, ?flow, "a connection was lost after its clone had answered");
                CloneCounters::count(&shared.counters.lost);
                CarriedOver::Lost
            }
        }
    }
}

/// Takes the next request from the packets that were held, if all of it is there: it need not pass the kernel, which only has to
/// begin behind it, and acknowledges it with the answer.
fn take_request(entered: &Entered<'_>, state: &mut TcpState, rest: &mut Vec<u8>) {
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
}
