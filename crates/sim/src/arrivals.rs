//! Requests on their way to a back-end.

use plimsoll_policy::{Candidates, Time};

use crate::workload::SimRequest;

/// The request that arrives next, with its time and its sequence number among events of equal time.
#[derive(Clone, Copy)]
pub(crate) struct Upcoming {
    pub(crate) time: Time,
    pub(crate) turn: u64,
    pub(crate) request: SimRequest,
}

/// A request that has arrived.
#[derive(Clone, Copy)]
pub(crate) struct Arrived {
    pub(crate) time: Time,
    pub(crate) number: u64,
    pub(crate) request: SimRequest,
}

/// A poll under way.
pub(crate) struct Poll {
    pub(crate) ends: Time,
    pub(crate) arrived: Arrived,
    pub(crate) candidates: Candidates,
}
