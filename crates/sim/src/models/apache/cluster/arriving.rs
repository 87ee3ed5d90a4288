//! Connections come: the core chooses, the back-end takes or refuses them, and requests follow.

use plimsoll_policy::{
    Assigned, BackendId, Ending, Health, Kind, Nanos, Offered, PollAnswer, Request, SniffedKind,
    SniffedRequest, TargetId,
};

use super::{ApacheCluster, ApacheEvent};
use crate::config::{DecisionMade, RunError};
use crate::model_spec::SourceError;
use crate::models::apache::connections::{
    ConnectionId, ConnectionRole, ConnectionStage, NO_CONNECTION, NO_PROCESS, WebConnection,
};
use crate::workload::SimRequest;

impl ApacheCluster<'_> {
    /// Lets the upcoming request arrive and fetches the one after it.
    #[inline]
    pub(super) fn arrive(&mut self) -> Result<(), RunError<SourceError>> {
        let Some(request) = self.upcoming else { return Ok(()) };
        let number = self.arrived;
        self.arrived += 1;
        self.fetch()?;
        if self.upcoming.is_none() {
            self.input_ends();
        }
        let mut persistent = self.clients.uses_http11(&request);
        let mut connection = self.connection_for(&request, number, persistent);
        if persistent && self.goes_on(&connection) {
            return Ok(());
        }
        if persistent && self.has_busy_connection(request.client) {
            // Beside the one that stays, a client opens others for one request each: were all to stay, idle ones would soon hold every process.
            (persistent, connection.persistent) = (false, false);
        }
        let id = self.connections.insert(connection);
        if persistent {
            let client = request.client as usize;
            if self.kept.len() <= client {
                self.kept.resize(client + 1, NO_CONNECTION);
            }
            self.kept[client] = id;
        }
        if self.reads_requests {
            // The front-end accepts by itself, and chooses when the request is there.
            let connection = self.connections.get(id);
            let (at, generation) = (self.now + connection.round_trip, connection.generation);
            self.queue.push(at, ApacheEvent::Request(id, generation));
        } else {
            self.syn(id);
        }
        Ok(())
    }

    #[inline]
    fn connection_for(&mut self, request: &SimRequest, number: u64, persistent: bool) -> WebConnection {
        // Asked for first: the order of draws is part of the results.
        let asked = self.clients.ask(request);
        let round_trip = self.clients.round_trip();
        let new = WebConnection::new(ConnectionRole::Client, asked, round_trip, self.now);
        WebConnection { number, persistent, client: request.client, ..new }
    }

    /// Whether a client's persistent connection is coming or at work.
    fn has_busy_connection(&self, client: u32) -> bool {
        self.kept.get(client as usize).is_some_and(|id| *id != NO_CONNECTION)
    }

    /// A further request of a client whose connection has stayed goes on it. Returns whether there was one.
    fn goes_on(&mut self, new: &WebConnection) -> bool {
        let Some(&id) = self.kept.get(new.client as usize) else { return false };
        if id == NO_CONNECTION {
            return false;
        }
        let old = self.connections.get(id);
        let b = old.backend;
        if old.stage != ConnectionStage::Kept {
            return false;
        }
        if !self.chooses_each && self.core.view().health(BackendId(b)) != Health::Up {
            return false;
        }
        let connection = self.connections.get_mut(id);
        connection.generation = connection.generation.wrapping_add(1);
        (connection.number, connection.asked) = (new.number, new.asked);
        (connection.arrived, connection.requested) = (self.now, self.now);
        if self.chooses_each {
            connection.stage = ConnectionStage::Unassigned;
            self.syn(id);
            return true;
        }
        self.sniff_request(id);
        let process = self.connections.get(id).process;
        self.take_up(b, process, id);
        true
    }

    /// The SYN of a connection is at the front-end, or the request of one that the front-end has accepted itself.
    #[inline]
    pub(super) fn syn(&mut self, id: ConnectionId) {
        let number = self.offers;
        self.offers += 1;
        let request = if self.reads_requests {
            self.read_request(id, number)
        } else {
            let client = u64::from(self.connections.get(id).client);
            Request { kind: Kind::Connection, client, ..Request::of(number, TargetId(0)) }
        };
        let offered = self.core.offer_with(&request, &self.options, self.now);
        self.carry_out(id, number, offered);
    }

    #[inline]
    fn carry_out(&mut self, id: ConnectionId, number: u64, offered: Offered) {
        match offered {
            Offered::Assigned(assigned) => self.forward(id, &assigned),
            other => self.carry_out_unusual(id, number, other),
        }
    }

    #[inline(never)]
    fn carry_out_unusual(&mut self, id: ConnectionId, number: u64, offered: Offered) {
        match offered {
            Offered::Assigned(assigned) => self.forward(id, &assigned),
            Offered::Waits => {
                let after = self.waiting.iter().rev().take_while(|(n, _)| *n > number).count();
                self.waiting.insert(self.waiting.len() - after, (number, id));
            }
            Offered::Rejected(_) => {
                self.tally.rejected += 1;
                let WebConnection { backend, process, .. } = *self.connections.get(id);
                if process != NO_PROCESS {
                    self.release(backend, process);
                }
                self.forget(id);
            }
            Offered::Poll(candidates) => {
                // Answered at once with the loads of this instant.
                let answers: Vec<PollAnswer> = self.core.view().answers(candidates).collect();
                if let Some(offered) = self.core.answer(number, &answers, self.now) {
                    self.carry_out_unusual(id, number, offered);
                }
            }
        }
    }

    /// Starts connections that wait in the core and now have their turn.
    #[inline]
    pub(super) fn start_waiting(&mut self) {
        if self.core.waiting() > 0 {
            self.start_those_that_wait();
        }
    }

    #[inline(never)]
    fn start_those_that_wait(&mut self) {
        while let Some(started) = self.core.start_next(self.now) {
            let (number, id) = self.waiting.pop_front().expect("what waits in the core waits here");
            debug_assert_eq!(number, started.number, "the same order");
            self.carry_out(id, number, started.offered);
        }
    }

    /// The back-end that was chosen gets the SYN.
    #[inline]
    fn forward(&mut self, id: ConnectionId, assigned: &Assigned) {
        if self.reads_requests {
            return self.hand_off(id, assigned);
        }
        let (target, backend) = (self.connections.get(id).asked.target, assigned.backend);
        let b = backend.0;
        let load = self.core.view().load(backend);
        if self.params.counted_from_syn == 1 {
            self.load_changed(b);
        }
        let connection = self.connections.get_mut(id);
        (connection.assigned, connection.backend, connection.load) = (Some(*assigned), b, load);
        self.observer.decided(DecisionMade { request: connection.number, time: self.now, target, backend });
        if connection.refused == 0 {
            self.results.opened += 1;
            self.tally.assigned();
        }
        if !self.accepts(b, id, self.costs.establish) {
            self.refused(id);
            return;
        }
        let connection = self.connections.get_mut(id);
        connection.stage = ConnectionStage::Coming;
        let (at, generation) = (self.now + connection.round_trip, connection.generation);
        self.queue.push(at, ApacheEvent::Request(id, generation));
    }

    /// Whether back-end `b` takes a connection, which costs its kernel this: an idle process holds the connection, or there is room in the backlog.
    #[inline]
    pub(super) fn accepts(&mut self, b: u16, id: ConnectionId, cost: u64) -> bool {
        let node = &mut self.nodes[usize::from(b)];
        let backlog = self.params.backlog as usize;
        if self.holds_at_once {
            match node.pool.take_idle(id) {
                Some(p) => self.connections.get_mut(id).process = p,
                None if node.pending.len() < backlog => node.pending.push_back(id),
                None => return false,
            }
        } else if node.pending.len() + (node.coming as usize) < backlog {
            node.coming += 1;
        } else {
            return false;
        }
        self.kernel(b, cost);
        true
    }

    /// The back-end has refused a SYN: its client tries again later, or gives up.
    #[inline(never)]
    fn refused(&mut self, id: ConnectionId) {
        let connection = *self.connections.get(id);
        if let Some(assigned) = &connection.assigned {
            self.core.complete(assigned, Ending::FAILED, self.now);
            self.load_changed(connection.backend);
        }
        self.results.refusals[usize::from(connection.refused)] += 1;
        if u32::from(connection.refused) < self.params.retries {
            let slot = self.connections.get_mut(id);
            (slot.stage, slot.assigned) = (ConnectionStage::Unassigned, None);
            slot.refused += 1;
            let after = Nanos::new(self.params.retry_s.as_nanos() << connection.refused);
            self.queue.push(self.now + after, ApacheEvent::Retry(id, connection.generation));
        } else {
            self.results.given_up += 1;
            self.tally.rejected += 1;
            self.forget(id);
        }
        self.start_waiting();
    }

    pub(super) fn retry(&mut self, id: ConnectionId, generation: u32) {
        if self.connections.current(id, generation).is_some() {
            self.syn(id);
        }
    }

    /// A connection is established, and its request at the front-end: one round trip after the SYN.
    #[inline]
    pub(super) fn requested(&mut self, id: ConnectionId, generation: u32) {
        let connection = self.connections.get_mut(id);
        if connection.generation != generation {
            return;
        }
        connection.requested = self.now;
        if connection.stage == ConnectionStage::Unassigned {
            self.syn(id);
            return;
        }
        connection.stage = ConnectionStage::Pending;
        let (b, process) = (connection.backend, connection.process);
        if self.params.counted_from_syn == 0
            && let Some(assigned) = &mut connection.assigned
        {
            self.core.established(assigned, self.now);
            connection.load = self.core.view().load(assigned.backend);
            self.load_changed(b);
        }
        self.sniff_request(id);
        if process != NO_PROCESS {
            self.take_up(b, process, id);
        } else if !self.holds_at_once {
            self.established_at(b, id);
        }
    }

    /// Where processes hold connections from the establishment on: an idle process takes it up, or it waits.
    pub(super) fn established_at(&mut self, b: u16, id: ConnectionId) {
        let node = &mut self.nodes[usize::from(b)];
        node.coming -= 1;
        match node.pool.take_idle(id) {
            Some(p) => {
                self.connections.get_mut(id).process = p;
                self.take_up(b, p, id);
            }
            None => node.pending.push_back(id),
        }
    }

    /// The front-end sees the request pass.
    #[inline]
    fn sniff_request(&mut self, id: ConnectionId) {
        if self.sniffs {
            let asked = &self.connections.get(id).asked;
            let (kind, target, class) = (asked.kind, asked.target, asked.class);
            self.sniff(id, kind, Some(target), class);
            self.connections.get_mut(id).expected_miss = self.core.policy().expects_miss();
        }
    }

    /// The front-end sees the FIN pass.
    pub(super) fn sniff_end(&mut self, id: ConnectionId) {
        if self.sniffs {
            self.sniff(id, SniffedKind::Connection, None, 0);
        }
    }

    fn sniff(&mut self, id: ConnectionId, kind: SniffedKind, target: Option<u32>, class: u16) {
        let (connection, targets) = (self.connections.get(id), self.config.targets);
        let sniffed = SniffedRequest {
            backend: BackendId(connection.backend),
            kind,
            target: target.map_or(TargetId(0), |target| targets.id[target as usize]),
            class,
            size_bytes: target.map(|target| targets.size_bytes[target as usize]),
            round_trip: connection.round_trip,
        };
        self.core.sniffed(&sniffed, self.now);
    }

    /// A connection is gone.
    #[inline]
    pub(super) fn forget(&mut self, id: ConnectionId) {
        let connection = self.connections.get(id);
        if connection.persistent {
            let slot = &mut self.kept[connection.client as usize];
            // A later connection of the client may have taken its place.
            if *slot == id {
                *slot = NO_CONNECTION;
            }
        }
        self.connections.remove(id);
    }

    /// The load of `b` may have changed.
    #[inline]
    pub(super) fn load_changed(&mut self, b: u16) {
        if self.used.is_none() {
            let b = BackendId(b);
            self.tally.load_changed(b, self.core.view().load(b), self.now);
        }
    }
}
