//! Front-ends that read requests before they choose: connections are handed off, once or for each request, or back-ends fetch from one
//! another. Source: Pai et al., ASPLOS 1998, section 5, which leaves open what is best on connections that stay.

use plimsoll_policy::{Assigned, Ending, Kind, Nanos, Request, SniffedKind};

use super::ApacheCluster;
use crate::config::DecisionMade;
use crate::models::apache::connections::{
    ConnectionId, ConnectionRole, ConnectionStage, NO_PROCESS, WebConnection,
};
use crate::models::apache::processes::ProcessStage;

/// Of [`ApacheParams::front_end`](super::ApacheParams): back-ends fetch from one another.
const FETCHES: u32 = 3;

impl ApacheCluster<'_> {
    /// The request of a connection, as a front-end sees it that reads it.
    pub(super) fn read_request(&self, id: ConnectionId, number: u64) -> Request {
        let (connection, targets) = (self.connections.get(id), self.config.targets);
        let (asked, target) = (&connection.asked, connection.asked.target as usize);
        Request {
            size_bytes: Some(targets.size_bytes[target]),
            kind: if asked.kind == SniffedKind::Dynamic { Kind::Dynamic } else { Kind::Static },
            client: u64::from(connection.client),
            class: asked.class,
            ..Request::of(number, targets.id[target])
        }
    }

    /// A back-end was chosen for a request that the front-end has read.
    pub(super) fn hand_off(&mut self, id: ConnectionId, assigned: &Assigned) {
        let (target, b) = (self.connections.get(id).asked.target, assigned.backend.0);
        let load = self.core.view().load(assigned.backend);
        self.load_changed(b);
        let connection = self.connections.get_mut(id);
        (connection.assigned, connection.load) = (Some(*assigned), load);
        let (old, p, number) = (connection.backend, connection.process, connection.number);
        let is_first = connection.requests == 0;
        self.observer.decided(DecisionMade {
            request: number,
            time: self.now,
            target,
            backend: assigned.backend,
        });
        self.tally.assigned();
        self.results.opened += u64::from(is_first);
        if p != NO_PROCESS {
            if old == b {
                return self.take_up(b, p, id);
            }
            if self.params.front_end == FETCHES {
                return self.fetch_from(id, b);
            }
            self.kernel(old, self.costs.handoff);
            self.release(old, p);
        }
        let connection = self.connections.get_mut(id);
        (connection.backend, connection.stage) = (b, ConnectionStage::Pending);
        if !self.accepts(b, id, self.costs.handoff) {
            return self.hand_off_refused(id, assigned);
        }
        let p = self.connections.get(id).process;
        if p != NO_PROCESS {
            self.take_up(b, p, id);
        }
    }

    /// A back-end has no room for a connection that is established: its client gets a reset, and does not come again.
    #[inline(never)]
    fn hand_off_refused(&mut self, id: ConnectionId, assigned: &Assigned) {
        self.core.complete(assigned, Ending::FAILED, self.now);
        self.load_changed(assigned.backend.0);
        self.results.refusals[0] += 1;
        self.results.given_up += 1;
        self.tally.rejected += 1;
        self.forget(id);
        self.start_waiting();
    }

    /// A request is answered whose connection stays, and where the next one is chosen for anew: nobody has load of it meanwhile.
    pub(super) fn request_ends(&mut self, id: ConnectionId) {
        let connection = self.connections.get_mut(id);
        if let Some(assigned) = connection.assigned.take() {
            let bytes = connection.asked.bytes;
            self.core.complete(&assigned, Ending::answered(Some(bytes)), self.now);
            self.load_changed(assigned.backend.0);
            self.start_waiting();
        }
    }

    /// The back-end of connection `owner` asks back-end `from` for the answer.
    fn fetch_from(&mut self, owner: ConnectionId, from: u16) {
        let connection = self.connections.get_mut(owner);
        connection.stage = ConnectionStage::Served;
        connection.requests += 1;
        let of_owner = *connection;
        let node = &mut self.nodes[usize::from(of_owner.backend)];
        node.pool.get_mut(of_owner.process).stage = ProcessStage::Fetches;
        *node.at_work.serving(of_owner.asked.kind) += 1;
        let id = self.connections.insert(WebConnection {
            stage: ConnectionStage::Pending,
            role: ConnectionRole::Fetch(owner, of_owner.generation),
            assigned: None,
            backend: from,
            process: NO_PROCESS,
            persistent: false,
            round_trip: Nanos::ZERO,
            requests: 0,
            ..of_owner
        });
        let node = &mut self.nodes[usize::from(from)];
        let (p, is_new) = node.pool.helper();
        if is_new {
            node.cpu.enlist(p);
        }
        self.hold(from, p, id);
    }

    /// Another back-end has answered on connection `id`: the process of connection `owner` takes that and sends it on.
    pub(super) fn fetched(&mut self, id: ConnectionId, owner: ConnectionId, generation: u32) {
        self.forget(id);
        let Some(connection) = self.connections.current(owner, generation) else { return };
        let (b, p) = (connection.backend, connection.process);
        let work = self.answer_work(b, p, owner, self.costs.relay(connection.asked.bytes));
        self.nodes[usize::from(b)].cpu.set_left(p, work);
        self.wake(b, p);
    }

    /// The back-end from which the back-end of connection `owner` fetches has failed: the connection is lost.
    pub(super) fn fetch_fails(&mut self, owner: ConnectionId, generation: u32) {
        let Some(connection) = self.connections.current(owner, generation) else { return };
        if let Some(assigned) = &connection.assigned {
            self.core.complete(assigned, Ending::FAILED, self.now);
            self.load_changed(assigned.backend.0);
            self.tally.lost += 1;
        }
        *self.nodes[usize::from(connection.backend)].at_work.serving(connection.asked.kind) -= 1;
        self.release(connection.backend, connection.process);
        self.forget(owner);
    }
}
