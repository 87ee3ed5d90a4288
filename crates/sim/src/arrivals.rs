//! Requests on their way to a back-end.

use plimsoll_policy::{Candidates, Request, Time};

use crate::workload::{SimRequest, Targets};

/// A request that has arrived.
#[derive(Clone, Copy)]
pub(crate) struct Arrived {
    pub(crate) time: Time,
    pub(crate) number: u64,
    pub(crate) request: SimRequest,
}

impl Arrived {
    /// The request as a policy sees it.
    #[inline]
    pub(crate) fn asked(&self, targets: &Targets) -> Request {
        let request = &self.request;
        Request {
            number: self.number,
            target: targets.id[request.target as usize],
            size_bytes: Some(targets.size_bytes[request.target as usize]),
            kind: request.kind,
            client: u64::from(request.client),
            class: request.class,
            features: None,
        }
    }
}

/// A poll under way.
pub(crate) struct Poll {
    pub(crate) ends: Time,
    pub(crate) arrived: Arrived,
    pub(crate) candidates: Candidates,
}
