//! Requests at back-ends that were found down: clients to whom nothing comes any more are reset.
//!
//! An agent says nothing of a server that hangs, as one that works long on a request looks the same to it. Health checks tell
//! them apart. What the front-end proxies is answered with 502 at that moment; here the client is the back-end's, so all that can
//! be done for it is to say that its connection is over.
//!
//! An agent that is stopping says so: it gives the requests under way their time, and resets the rest itself.
//!
//! Behind the shim the server has connections between requests, too, and the agent hears of a next request when the server reads it.
//! So a connection without a request counts as one with a request if its client has sent something since the last request that is known.

use std::rc::Rc;
use std::time::Instant;

use plimsoll_policy::Health;
use plimsoll_wire::message::Conn;

use super::handoffs::Handoffs;
use super::last_look::{INTERVAL, LastLook, SeenRequest};
use super::link::AgentLink;
use super::numbers::SeenNumbers;
use super::recover;
use super::table::HandoffEntry;
use crate::worker::Worker;

/// Looks at the back-ends that are down, each at intervals.
pub(super) fn look(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>, now: Instant) {
    let links: Vec<Rc<AgentLink>> = handoffs.links.borrow().iter().flatten().map(Rc::clone).collect();
    for link in links {
        let mut last = link.last_look.borrow_mut();
        let backend = link.backend();
        if link.is_stopping() {
            // Health checks are no longer answered there, but the requests under way are.
            *last = None;
            continue;
        }
        // One in doubt that takes requests may work on them for as long as by proxy.
        let interval = match backend.health() {
            Health::Down => INTERVAL,
            _ if backend.stands_in() => worker.shared.config.load().timeouts.first_byte,
            _ => {
                *last = None;
                continue;
            }
        };
        if last.as_ref().is_some_and(|last| !last.is_due(now, interval)) {
            continue;
        }
        let found = requests(handoffs, &link);
        if let Some(last) = last.replace(LastLook { at: now, requests: found.clone() }) {
            let stuck: Vec<Conn> = last.still(&found).collect();
            if !stuck.is_empty() {
                tracing::warn!(
                    backend = &*link.backend().name,
                    connections = stuck.len(),
                    "clients of a back-end that is down are reset"
                );
            }
            stuck.into_iter().for_each(|conn| recover::abandon(worker, handoffs, conn));
        }
    }
}

/// The connections of a link that have a request under way, or may have.
fn requests(handoffs: &Handoffs, link: &Rc<AgentLink>) -> Vec<SeenRequest> {
    // Each look reads the kernel's entry of each: some 10 ms for the most connections that an agent has by default.
    let mut table = handoffs.table.borrow_mut();
    let of_link = table.iter_mut().filter(|entry| Rc::ptr_eq(&entry.link, link));
    let request = |entry: &mut HandoffEntry| {
        // One that the agent has asked about waits for this front-end.
        if entry.active.is_none() && (!entry.is_idle() || entry.asked.is_some()) {
            return None;
        }
        let flow = handoffs.system.entry(&entry.flow);
        let has_unknown = || flow.as_ref().is_some_and(|flow| entry.has_unknown(flow));
        let is_wanted = entry.active.is_some() || has_unknown();
        is_wanted.then(|| (entry.conn, entry.requests, flow.as_ref().map(SeenNumbers::of)))
    };
    of_link.filter_map(request).collect()
}
