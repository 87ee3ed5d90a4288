//! A connection of an earlier link that an agent offers.

use std::rc::Rc;
use std::time::Instant;

use plimsoll_datapath::Flow;

use super::link::AgentLink;
use super::times::link_timeout;
use crate::worker::Worker;

/// An agent's offer of a connection.
pub(super) struct OrphanOffer {
    pub(super) link: Rc<AgentLink>,
    /// The agent's number for the connection.
    pub(super) orphan: u64,
    pub(super) flow: Flow,
    /// Number of its latest request.
    pub(super) request: u32,
    /// How long it is waited for that another link loses the connection.
    pub(super) until: Instant,
}

impl OrphanOffer {
    /// An offer that has just come by this link.
    pub(super) fn new(
        worker: &Worker,
        link: &Rc<AgentLink>,
        (orphan, flow, request): (u64, Flow, u32),
    ) -> Self {
        let until = Instant::now() + link_timeout(worker);
        Self { link: Rc::clone(link), orphan, flow, request, until }
    }
}
