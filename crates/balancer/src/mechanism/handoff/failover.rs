//! Follows the virtual address where several front-ends share it: a front-end becomes active when its machine gets the address,
//! and a standby when the address is gone.
//!
//! Agents know all connections, so they are the replica of the flows: a front-end that becomes active says so to each, and each
//! offers what it has (`super::adopt`). Until all have, packets of unknown connections are dropped, as this
//! machine's kernel would reset their clients.

use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_datapath::AddressWatch;
use plimsoll_wire::message::ToAgent;
use tokio::sync::watch;
use tokio::time::Instant;

use super::handoffs::Handoffs;
use super::link::AgentLink;
use super::offers::agents;
use super::recover;
use super::role::{FailoverRole, RoleState};
use super::system::System;
use super::table::HandoffPhase;
use crate::worker::Worker;

/// How often it is looked whether addresses have changed, and whether all agents have offered their connections.
const LOOK: Duration = Duration::from_millis(10);
/// How often it is looked for the address in any case, should the kernel's message be lost.
const LONGEST_LOOK: Duration = Duration::from_millis(500);

/// Takes over what `change` makes of the role, if it changes it.
fn change(system: &System, change: impl FnOnce(&mut RoleState) -> bool) {
    let Some(failover) = &system.failover else { return };
    failover.change(change, |before, role| {
        tracing::warn!(address = %failover.address, "this front-end is {}", describe(role));
        system.hold(true);
        match (before.is_active(), role.is_active()) {
            // Also where it was active and another one after it, of which it has not heard: agents offer all once more.
            (_, true) => system.begin_anew(),
            (true, false) => system.let_go(),
            (false, false) => {}
        }
    });
}

/// An agent says which process is active.
pub(super) fn told(system: &System, term: u64, instance: u64) {
    change(system, |state| state.told(term, instance));
}

fn describe(role: FailoverRole) -> String {
    match role {
        FailoverRole::Standby => "a standby".to_owned(),
        FailoverRole::Active { term } => format!("the active one, with term {term}"),
        FailoverRole::Superseded => {
            "not the active one, although this machine has the address: another one is".to_owned()
        }
    }
}

/// Has this worker follow the front-end's role, and the first one the address, unless they do already.
pub(super) fn start(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>) {
    if handoffs.system.failover.is_none() || handoffs.follows.replace(true) {
        return;
    }
    tokio::task::spawn_local(follow_role(Rc::clone(worker), Rc::clone(handoffs)));
    if worker.index == 0 {
        tokio::task::spawn_local(follow_address(Rc::clone(worker), Arc::clone(&handoffs.system)));
    }
}

/// Lets go of the connections that this worker has handed off when the front-end is no longer active: they are another one's now.
async fn follow_role(worker: Rc<Worker>, handoffs: Rc<Handoffs>) {
    let Some(failover) = &handoffs.system.failover else { return };
    let mut role = failover.subscribe();
    loop {
        let now = *role.borrow_and_update();
        catch_up(&worker, &handoffs, now);
        if role.changed().await.is_err() {
            return;
        }
    }
}

/// Lets go of what this worker had in another term, or while the front-end was not active.
fn catch_up(worker: &Worker, handoffs: &Handoffs, role: FailoverRole) {
    let term = role.term();
    if handoffs.term.replace(term) != term {
        let_go(worker, handoffs);
    }
}

fn let_go(worker: &Worker, handoffs: &Handoffs) {
    let conns: Vec<_> = handoffs.table.borrow_mut().iter_mut().map(|entry| entry.conn).collect();
    for conn in conns {
        let entry = handoffs.table.borrow_mut().remove(conn);
        let Some(entry) = entry else { continue };
        if let HandoffPhase::Pending { session, .. } = entry.phase {
            entry.link.answered(session);
        }
        handoffs.system.disclaim(&entry.flow);
        recover::over_here(worker, entry);
    }
    handoffs.pending.borrow_mut().clear();
    handoffs.kept_offers.borrow_mut().clear();
}

/// Looks for the address when addresses of this machine change, and ends the wait for the agents' offers.
async fn follow_address(worker: Rc<Worker>, system: Arc<System>) {
    let Some(failover) = &system.failover else { return };
    let watch = match AddressWatch::new(failover.address) {
        Ok(watch) => watch,
        Err(error) => {
            tracing::error!(%error, "the virtual address cannot be watched: this front-end stays a standby");
            system.hold(false);
            return;
        }
    };
    let mut role = failover.subscribe();
    let mut held_until = None;
    let mut looked: Option<Instant> = None;
    loop {
        if watch.has_changed() || looked.is_none_or(|at| at.elapsed() >= LONGEST_LOOK) {
            looked = Some(Instant::now());
            match watch.is_here() {
                Ok(is_here) => change(&system, |state| state.address(is_here)),
                Err(error) => {
                    tracing::error!(%error, "whether this machine has the virtual address is not known");
                }
            }
        }
        if role.has_changed().unwrap_or(false) {
            let is_here = *role.borrow_and_update() != FailoverRole::Standby;
            held_until = is_here.then(|| Instant::now() + failover.settle_timeout);
            // Should another worker have changed the role in the moment when the wait was over.
            system.hold(true);
        }
        if let Some(until) = held_until
            && (Instant::now() >= until || failover.role().is_active() && all_have_offered(&worker, &system))
        {
            held_until = None;
            system.hold(false);
            tracing::info!("packets of unknown connections are the kernel's now");
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn all_have_offered(worker: &Worker, system: &System) -> bool {
    let backends = worker.shared.backends.load();
    agents(&backends).is_some_and(|agents| system.offers.are_all_heard(&agents))
}

/// Tells an agent of the front-end's role, on a link that is up, whenever it changes.
pub(super) struct RoleTeller {
    role: Option<watch::Receiver<FailoverRole>>,
    said: bool,
}

impl RoleTeller {
    /// On a link that has just come up.
    pub(super) fn new(system: &System) -> Self {
        Self { role: system.failover.as_ref().map(|failover| failover.subscribe()), said: false }
    }

    /// Tells the role, if it is not what the agent takes it for.
    pub(super) fn tell(&mut self, worker: &Worker, handoffs: &Handoffs, link: &AgentLink) {
        let Some(role) = &mut self.role else { return };
        let now = *role.borrow_and_update();
        // Before the agent offers anything.
        catch_up(worker, handoffs, now);
        match now {
            FailoverRole::Active { term } => {
                self.said = link.push(&ToAgent::Activate { term });
                link.set_term(self.said.then_some(term));
            }
            FailoverRole::Standby | FailoverRole::Superseded if self.said => {
                self.said = !link.push(&ToAgent::Deactivate);
                link.set_term(None);
            }
            FailoverRole::Standby | FailoverRole::Superseded => {}
        }
    }

    /// Waits until the role changes; for ever without other front-ends.
    pub(super) async fn changed(&mut self) {
        if let Some(role) = &mut self.role
            && role.changed().await.is_ok()
        {
            return role.mark_changed();
        }
        pending::<()>().await;
    }
}
