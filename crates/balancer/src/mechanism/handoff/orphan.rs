//! A connection of an earlier link that an agent offers.

use std::rc::Rc;
use std::time::Instant;

use plimsoll_datapath::Flow;

use super::link::AgentLink;
use super::system::System;
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
    /// Whether it is of a connection that another front-end handed off, which has no entry here.
    pub(super) is_foreign: bool,
    /// Whether it has waited for another link to lose the connection.
    pub(super) is_kept: bool,
    /// How long it is waited for that another link loses the connection.
    pub(super) until: Instant,
}

impl OrphanOffer {
    /// An offer that has just come by this link.
    pub(super) fn new(
        worker: &Worker,
        system: &System,
        link: &Rc<AgentLink>,
        (orphan, flow, request): (u64, Flow, u32),
    ) -> Self {
        // A link that is lost later by one look, and was read last after this offer came.
        let until = Instant::now() + 2 * link_timeout(worker);
        // A link may be lost before all was offered on it: then others bring the rest.
        let is_foreign =
            system.failover.is_some() && !system.offers.has_offered_all(link.address, Instant::now());
        Self { link: Rc::clone(link), orphan, flow, request, is_foreign, is_kept: false, until }
    }
}
