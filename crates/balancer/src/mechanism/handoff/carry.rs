//! Implements the mechanism's trait: decides which requests move their connections.

use std::fmt::Error;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_config::{Config, ListenerConfig};
use plimsoll_datapath::Flow;
use plimsoll_datapath::privileges::RunUser;

use super::active::Active;
use super::handoffs::Handoffs;
use super::link::AgentLink;
use super::send::{self, Handing};
use super::system::System;
use super::table::HandoffEntry;
use super::times::SHORT_QUIET;
use super::{failover, leftovers, link_task, metrics, payoff, sweep};
use crate::accepted::Accepted;
use crate::backend::Backend;
use crate::http::Framing;
use crate::mechanism::carry::{Carried, ClientRequest, FlowState, Mechanism};
use crate::net::halves::ClientIo;
use crate::worker::Worker;
use plimsoll_observe::exposition::Out;

impl Mechanism for Handoffs {
    type System = System;
    type Parcel = Box<Handing>;

    fn start(config: &Config, user: Option<&RunUser>) -> Result<Option<Arc<System>>, String> {
        System::start(config, user)
    }

    fn new(system: &Arc<System>, worker: &Rc<Worker>) -> Rc<Self> {
        Self::of_worker(Arc::clone(system), worker.index)
    }

    async fn carry<C: ClientIo>(&self, request: &mut ClientRequest<'_, C>) -> Carried<Box<Handing>> {
        match self.link_for(request) {
            Some(link) => Carried::Leaves(handing(request, link)),
            None => Carried::Declined,
        }
    }

    fn take<C: ClientIo>(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        stream: C,
        accepted: &Rc<Accepted>,
        handing: Box<Handing>,
    ) {
        send::hand_off(worker, self, stream, accepted, *handing);
    }

    fn moves_connections(&self) -> bool {
        true
    }

    fn housekeeping(self: &Rc<Self>, worker: &Rc<Worker>) {
        if let (Some(relief), Some(shown)) = (&self.relief, self.system.relief.get(worker.index)) {
            shown.store((1e6 * relief.look()) as u32, Ordering::Relaxed);
        }
        failover::start(worker, self);
        link_task::update_links(worker, self);
        sweep::sweep(worker, self);
    }

    fn is_busy(&self) -> bool {
        if self.system.failover.is_some() {
            // What agents have goes on with another front-end.
            return !self.doubted.borrow().is_empty()
                || self.table.borrow_mut().iter_mut().any(|e| e.is_pending());
        }
        if self.table.borrow().len() > 0 || !self.doubted.borrow().is_empty() {
            return true;
        }
        let leaving: Vec<Flow> = self.system.registry().leaving.flows().copied().collect();
        leaving.iter().any(|flow| self.system.is_busy(flow, SHORT_QUIET))
    }

    fn close_idle(&self) {
        if self.system.failover.is_none() {
            self.table.borrow_mut().iter_mut().for_each(HandoffEntry::close_if_idle);
        }
    }

    fn listen(system: &System, listeners: &[ListenerConfig]) {
        let addresses: Vec<SocketAddr> = listeners.iter().map(|l| l.address).collect();
        system.watch(&addresses);
    }

    fn sweep(system: &System, backends: &[Arc<Backend>]) {
        leftovers::settle(system, backends);
        sweep::reset_again(system);
    }

    fn clear(system: &System) {
        system.clear();
    }

    fn flows(system: &System, visit: &mut dyn FnMut(FlowState)) -> Result<(), String> {
        system.visit_flows(visit)
    }

    fn encode(system: &System, out: &mut Out<'_>) -> Result<(), Error> {
        metrics::encode(system, out)
    }
}

impl Handoffs {
    /// The link to the agent that gets the connection with this request; `None` if the request is to be proxied. It is when it
    /// has a body or something that a back-end should not see as it came, when it tries an ejected back-end, when proxying costs
    /// less, and when the back-end has no agent with room.
    fn link_for<C: ClientIo>(&self, request: &ClientRequest<'_, C>) -> Option<Rc<AgentLink>> {
        let config = request.config.handoff.as_ref()?;
        let head = request.head;
        let account = &request.account;
        let chosen = account.chosen()?;
        let row = &request.accepted.row;
        if self.relief.is_some() {
            row.set(row.get().and(chosen, account.expected_bytes()));
        }
        // Only of what it has proxied does this front-end learn whether the back-end answers.
        let simple = request.framing == Framing::None
            && head.is_plain
            && (head.is_get || head.is_head)
            && !account.is_on_trial();
        if !self.system.is_active() || !simple || request.raw.is_empty() || !request.stream.can_move() {
            return None;
        }
        let worth = match &self.relief {
            Some(relief) => {
                payoff::pays(config, relief, account, row.get(), (request.requests, request.keep))
            }
            // The last request of a connection is proxied if its answer is small: that costs less.
            None => request.keep || account.expected_bytes().unwrap_or(0) >= config.min_bytes,
        };
        if worth { self.link(chosen) } else { None }
    }
}

/// Takes from a request what goes with its connection.
fn handing<C>(request: &mut ClientRequest<'_, C>, link: Rc<AgentLink>) -> Box<Handing> {
    let mut bytes = std::mem::take(request.raw);
    bytes.extend_from_slice(request.scratch.input.data());
    let account = request.account.take();
    let head_bytes = std::mem::take(&mut request.scratch.head);
    let active = Active { head: *request.head, head_bytes, account };
    Box::new(Handing { bytes, request: active, link, requests: request.requests })
}
