//! Requests at back-ends that were found down: clients to whom nothing comes any more are reset.
//!
//! An agent says nothing of a server that hangs, as one that works long on a request looks the same to it. Health checks tell
//! them apart. What the front-end proxies is answered with 502 at that moment; here the client is the back-end's, so all that can
//! be done for it is to say that its connection is over.

use std::rc::Rc;
use std::time::{Duration, Instant};

use plimsoll_policy::Health;
use plimsoll_wire::message::Conn;

use super::handoffs::Handoffs;
use super::link::AgentLink;
use super::numbers::SeenNumbers;
use super::recover;
use crate::worker::Worker;

/// Time between two looks: a client to whom nothing has come between them gets nothing.
const INTERVAL: Duration = Duration::from_millis(250);

/// What was seen at the last look at a back-end that is down.
pub(super) struct LastLook {
    at: Instant,
    /// Connections with a request under way, by their numbers: how many requests there were, and what their clients had.
    requests: Vec<(Conn, u64, Option<SeenNumbers>)>,
}

/// Looks at the back-ends that are down, each at intervals.
pub(super) fn look(worker: &Rc<Worker>, handoffs: &Rc<Handoffs>, now: Instant) {
    let links: Vec<Rc<AgentLink>> = handoffs.links.borrow().iter().flatten().map(Rc::clone).collect();
    for link in links {
        let mut last = link.last_look.borrow_mut();
        if link.backend().health() != Health::Down {
            *last = None;
            continue;
        }
        if last.as_ref().is_some_and(|last| now < last.at + INTERVAL) {
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

/// The connections of a link that have a request under way.
fn requests(handoffs: &Handoffs, link: &Rc<AgentLink>) -> Vec<(Conn, u64, Option<SeenNumbers>)> {
    let mut table = handoffs.table.borrow_mut();
    let of_link = table.iter_mut().filter(|entry| entry.active.is_some() && Rc::ptr_eq(&entry.link, link));
    let seen = |flow| handoffs.system.entry(flow).as_ref().map(SeenNumbers::of);
    of_link.map(|entry| (entry.conn, entry.requests, seen(&entry.flow))).collect()
}

impl LastLook {
    /// Those that are the same as before. Both are in the order of the table.
    fn still<'a>(&'a self, found: &'a [(Conn, u64, Option<SeenNumbers>)]) -> impl Iterator<Item = Conn> + 'a {
        let mut before = self.requests.iter().peekable();
        found.iter().filter_map(move |now| {
            let slot = |conn: Conn| conn.0 & 0xffff_ffff;
            while before.next_if(|b| slot(b.0) < slot(now.0)).is_some() {}
            before.peek().is_some_and(|b| **b == *now).then_some(now.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_to_which_nothing_came_are_stuck() {
        let of =
            |conns: &[(u64, u64)]| conns.iter().map(|&(conn, n)| (Conn(conn), n, None)).collect::<Vec<_>>();
        let last = LastLook { at: Instant::now(), requests: of(&[(0, 1), (2, 1), (3, 5), (7, 1)]) };
        // The second has another request, the third slot another connection, and one is new.
        let found = of(&[(0, 1), (2, 2), (1 << 32 | 3, 5), (6, 1), (7, 1)]);
        assert_eq!(last.still(&found).collect::<Vec<_>>(), [Conn(0), Conn(7)]);
    }
}
