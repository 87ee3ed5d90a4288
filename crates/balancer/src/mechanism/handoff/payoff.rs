//! With `mechanism = "auto"`: which requests it pays to hand off.
//!
//! The move of a connection costs front-end and back-end more than to pass a small response on. It pays (decision 36):
//!
//! - for a response of at least `handoff.large_size`, whatever else;
//! - where the requests of a connection keep going to one back-end, and each of them then costs less: with responses that fit
//!   into one packet, and with large ones ([`PlacementRow`]);
//! - for a response between `handoff.min_size` and `handoff.large_size`, which costs the front-end less and the back-end more,
//!   while this worker has little CPU time left ([`Relief`]).

use plimsoll_config::{HandoffConfig, Placement};

use super::relief::Relief;
use crate::account::Account;
use crate::placement_row::PlacementRow;

/// Whether it pays to hand a connection off with this request, the `requests`th on it. `keep` tells whether the client keeps the
/// connection.
pub(super) fn pays(
    config: &HandoffConfig,
    relief: &Relief,
    account: &Account,
    row: PlacementRow,
    (requests, keep): (u64, bool),
) -> bool {
    let size_bytes = account.expected_bytes().unwrap_or(0);
    let steady = match config.placement {
        Placement::Request => row.is_steady(),
        // Further requests stay where the connection is.
        Placement::Connection => requests > 1,
    };
    size_bytes >= config.large_bytes
        || keep && steady && row.pays_to_leave()
        || size_bytes >= config.min_bytes && relief.next_leaves()
}

/// Whether it pays to hand a connection that came back on to another back-end.
pub(super) fn pays_to_hand_on(config: &HandoffConfig, account: &Account) -> bool {
    account.expected_bytes().unwrap_or(0) >= config.large_bytes
}
