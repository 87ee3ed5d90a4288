//! Responses on their way, and the ends of connections.

use plimsoll_policy::{BackendId, Ending, Nanos, Time};

use super::{ApacheCluster, ApacheEvent};
use crate::jobs::Job;
use crate::models::apache::connections::{
    ConnectionId, ConnectionRole, ConnectionStage, NO_PROCESS, WebConnection,
};
use crate::models::apache::processes::ProcessStage;

impl ApacheCluster<'_> {
    /// A process has written a response: what the first window allows is sent.
    #[inline]
    pub(super) fn written(&mut self, b: u16, p: u16) {
        let node = &mut self.nodes[usize::from(b)];
        let id = node.pool.get(p).connection;
        let connection = self.connections.get(id);
        *node.at_work.serving(connection.asked.kind) -= 1;
        let closes = self.closes(id);
        // It was sent before the connection was torn down.
        let teardown = self.nodes[usize::from(b)].takes(self.teardown(id));
        let connection = self.connections.get(id);
        let sent = Time::from_nanos(self.now.as_nanos() - teardown).max(connection.requested);
        let (is_whole, bytes) = (connection.sent == connection.asked.bytes, connection.asked.bytes);
        if !is_whole {
            let (next, generation) = (sent + connection.round_trip, connection.generation);
            self.queue.push(next.max(self.now), ApacheEvent::Round(id, generation));
        }
        if !is_whole && bytes > self.params.send_buffer_bytes {
            self.nodes[usize::from(b)].pool.get_mut(p).stage = ProcessStage::Blocked;
            return;
        }
        self.let_go(b, p, closes);
        if is_whole {
            self.answered(id, sent, closes);
        }
    }

    /// Process `p` has nothing more to do for its response.
    #[inline]
    fn let_go(&mut self, b: u16, p: u16, closes: bool) {
        if closes {
            self.release(b, p);
        } else {
            self.nodes[usize::from(b)].pool.get_mut(p).stage = ProcessStage::Waits;
        }
    }

    /// Acknowledgements have come: the window has doubled.
    #[inline]
    pub(super) fn round(&mut self, id: ConnectionId, generation: u32) {
        let connection = self.connections.get_mut(id);
        if connection.generation != generation {
            return;
        }
        connection.window = (connection.window * 2).min(self.params.most_window);
        let (acknowledged, bytes) = (connection.sent, connection.asked.bytes);
        let window_bytes = u64::from(connection.window) * self.params.segment_bytes;
        connection.sent = bytes.min(acknowledged + window_bytes);
        let (sent, b, p) = (connection.sent, connection.backend, connection.process);
        let next = self.now + connection.round_trip;
        let until = self.kernel(b, self.costs.transmit(acknowledged, sent));
        let closes = self.closes(id);
        let fits = sent == bytes || bytes - acknowledged <= self.params.send_buffer_bytes;
        if fits && p != NO_PROCESS && self.nodes[usize::from(b)].pool.get(p).stage == ProcessStage::Blocked {
            self.let_go(b, p, closes);
        }
        if sent == bytes {
            self.answered(id, until, closes);
        } else {
            self.queue.push(next, ApacheEvent::Round(id, generation));
        }
    }

    /// The whole response has been sent at `last`.
    #[inline]
    fn answered(&mut self, id: ConnectionId, last: Time, closes: bool) {
        let connection = *self.connections.get(id);
        let assigned = match (connection.role, connection.assigned) {
            (ConnectionRole::Client, Some(assigned)) => assigned,
            (ConnectionRole::Fetch(owner, generation), _) => return self.fetched(id, owner, generation),
            _ => return self.probe_answered(id, last),
        };
        let user = last.since(connection.arrived) + connection.round_trip;
        self.results.user_latency_ns.record(user.as_nanos());
        let job = Job {
            assigned,
            front_end: 0,
            load: connection.load,
            arrived: connection.arrived,
            alone: self.alone(&connection),
            size_bytes: connection.asked.bytes,
        };
        let starts = self.tally.answered(&job, last);
        if closes {
            if self.params.counted_until_fin == 1 && !connection.round_trip.is_zero() {
                self.connections.get_mut(id).stage = ConnectionStage::Closing;
                let fin = (last + connection.round_trip).max(self.now);
                self.queue.push(fin, ApacheEvent::Fin(id, connection.generation));
            } else {
                self.end(id);
            }
        } else {
            self.connections.get_mut(id).stage = ConnectionStage::Kept;
            let timeout = last.max(self.now) + self.params.keep_alive_s;
            self.queue.push(timeout, ApacheEvent::KeepAlive(id, connection.generation));
            if self.chooses_each {
                self.request_ends(id);
            }
        }
        if starts {
            self.restart();
        }
        if self.tally.point_is_due() {
            let nodes = &self.nodes;
            self.tally.close_point(self.now, |b: BackendId, now| nodes[b.index()].usage(now));
        }
    }

    /// The time from its arrival that a request takes on idle back-ends with the document in memory.
    #[inline]
    fn alone(&self, connection: &WebConnection) -> Nanos {
        let asked = &connection.asked;
        let answer =
            if asked.has_document() { self.costs.transmit(0, asked.bytes) } else { self.costs.no_document };
        let work = Nanos::new(self.costs.basic + asked.compute + answer);
        let segments = asked.bytes.div_ceil(self.params.segment_bytes);
        let (mut window, mut sent) = (u64::from(self.params.initial_window), 0);
        // One round trip for the connection, and one for each window after the first.
        let mut round_trips = u64::from(connection.requests <= 1);
        sent += window;
        while sent < segments {
            window = (window * 2).min(u64::from(self.params.most_window));
            // Many rounds are alike.
            let rounds = if window < u64::from(self.params.most_window) {
                1
            } else {
                (segments - sent).div_ceil(window)
            };
            sent += rounds * window;
            round_trips += rounds;
        }
        work + Nanos::new(connection.round_trip.as_nanos().saturating_mul(round_trips))
    }

    /// A connection has been without a request for as long as the server keeps it.
    pub(super) fn timed_out(&mut self, id: ConnectionId, generation: u32) {
        let Some(connection) = self.connections.current(id, generation) else { return };
        debug_assert_eq!(connection.stage, ConnectionStage::Kept, "another request voids the time-out");
        self.kernel(connection.backend, self.costs.teardown);
        if connection.process != NO_PROCESS {
            self.release(connection.backend, connection.process);
        }
        self.end(id);
    }

    /// The client's FIN is at the front-end.
    pub(super) fn fin(&mut self, id: ConnectionId, generation: u32) {
        if self.connections.current(id, generation).is_some() {
            self.end(id);
        }
    }

    /// A connection ends after its answers.
    #[inline]
    fn end(&mut self, id: ConnectionId) {
        let connection = *self.connections.get(id);
        self.sniff_end(id);
        if let Some(assigned) = &connection.assigned {
            let ending = Ending::answered(Some(connection.asked.bytes));
            self.core.complete(assigned, ending, self.now);
            self.load_changed(connection.backend);
        }
        self.forget(id);
        self.start_waiting();
    }
}
