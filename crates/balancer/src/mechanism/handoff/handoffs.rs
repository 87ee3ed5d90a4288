//! The state of one worker: its links, the connections it has handed off, and what is still to be done about them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use plimsoll_datapath::Flow;
use plimsoll_policy::BackendId;
use plimsoll_wire::message::Conn;

use super::leaving::FlowEnd;
use super::link::AgentLink;
use super::orphan::OrphanOffer;
use super::relief::Relief;
use super::system::System;
use super::table::HandoffTable;
use super::times::LINGER;
use crate::backend::Backend;

/// What a worker has handed off, and to whom it can hand off.
pub(crate) struct Handoffs {
    pub(super) system: Arc<System>,
    /// The links, by the index of their back-ends' ids.
    pub(super) links: RefCell<Vec<Option<Rc<AgentLink>>>>,
    /// The back-ends for which `links` was made.
    pub(super) known: RefCell<Option<Arc<Vec<Arc<Backend>>>>>,
    pub(super) table: RefCell<HandoffTable>,
    /// Handoffs that were not answered, each with the time at which its lease is over.
    pub(super) pending: RefCell<VecDeque<(Instant, Conn)>>,
    /// Flows of connections that an agent may have taken over without saying so.
    pub(super) doubted: RefCell<BTreeSet<Flow>>,
    /// Offers of connections that another link still has.
    pub(super) kept_offers: RefCell<Vec<OrphanOffer>>,
    /// Whether the role of this front-end is followed.
    pub(super) follows: Cell<bool>,
    /// The term to which the connections belong, where several front-ends share the address and this one is active.
    pub(super) term: Cell<Option<u64>>,
    /// A buffer for encoded states.
    pub(super) encoded: RefCell<Vec<u8>>,
    /// Set where requests are handed off only if that pays.
    pub(super) relief: Option<Relief>,
}

impl Handoffs {
    /// The state of the worker with this index.
    pub(super) fn of_worker(system: Arc<System>, worker: usize) -> Rc<Self> {
        Rc::new(Self {
            links: RefCell::default(),
            known: RefCell::default(),
            table: RefCell::new(HandoffTable::new(Arc::clone(&system), worker)),
            relief: system.chooses.then(Relief::new),
            system,
            pending: RefCell::default(),
            doubted: RefCell::default(),
            kept_offers: RefCell::default(),
            follows: Cell::new(false),
            term: Cell::new(None),
            encoded: RefCell::default(),
        })
    }

    /// The link to the agent of a back-end, if it can take another connection now.
    pub(super) fn link(&self, backend: BackendId) -> Option<Rc<AgentLink>> {
        let links = self.links.borrow();
        let link = links.get(backend.index())?.as_ref()?;
        (link.has_room() && self.has_say_on(link)).then(|| Rc::clone(link))
    }

    /// Whether the agent does what this front-end says on this link. Where others share the address, it has been told there that
    /// this one is active, in this term: what it was told or has told before does not count any more.
    pub(super) fn has_say_on(&self, link: &AgentLink) -> bool {
        self.system.failover.as_ref().is_none_or(|failover| {
            let term = failover.role().term();
            term.is_some() && link.term() == term && self.term.get() == term
        })
    }

    /// Undoes the first steps of a handoff: packets of the flow come here again. The flow is removed even if an earlier
    /// connection of the same client may not be over yet.
    pub(super) fn take_off(&self, flow: &Flow) {
        self.system.unlead(flow);
        self.system.free_flow();
    }

    /// Takes out the next handoff that is no longer pending or whose lease is over.
    pub(super) fn next_overdue(&self, now: Instant) -> Option<Conn> {
        let mut pending = self.pending.borrow_mut();
        let (at, conn) = *pending.front()?;
        if at > now && self.table.borrow_mut().find(conn).is_some_and(|e| e.is_pending()) {
            return None;
        }
        pending.pop_front();
        Some(conn)
    }

    /// Forgets a flow now: its packets come to this front-end again.
    pub(super) fn forget(&self, flow: Flow) {
        if !self.is_reused(&flow) {
            self.system.unlead(&flow);
        }
        self.system.free_flow();
    }

    /// Whether another connection of the same client has this flow by now. That happens when the client connects again from
    /// the same port before the agent reports the end of the old connection.
    pub(super) fn is_reused(&self, flow: &Flow) -> bool {
        self.system.registry().is_owned(flow)
    }

    /// Forgets the flow of a connection that is over at its back-end, but only after a while: until then, what the client
    /// still sends goes to the back-end.
    pub(super) fn forget_later(&self, flow: Flow) {
        {
            // Locked, so that no connection gets the flow in between: it would be taken for over.
            let registry = self.system.registry();
            if !registry.is_owned(&flow) {
                self.system.end(&flow);
            }
        }
        self.leave(flow, FlowEnd::Forget, Instant::now() + LINGER);
    }

    /// Schedules how a flow ends, unless a connection has the flow by then.
    pub(super) fn leave(&self, flow: Flow, then: FlowEnd, at: Instant) {
        let mut registry = self.system.registry();
        if registry.is_owned(&flow) {
            drop(registry);
            self.system.free_flow();
        } else {
            let replaced = registry.leaving.add(flow, then, at);
            drop(registry);
            if replaced {
                // Two connections in a row had this one flow, and each was counted.
                self.system.free_flow();
            }
        }
    }

    /// Has a retired agent close its idle connections. Returns true when it has no connections left.
    pub(super) fn retire(&self, link: &Rc<AgentLink>) -> bool {
        let mut table = self.table.borrow_mut();
        let mut left = 0;
        for entry in table.iter_mut().filter(|e| Rc::ptr_eq(&e.link, link)) {
            left += 1;
            entry.close_if_idle();
        }
        left == 0
    }
}
