//! Processes at work: CPU, disk, forks.

use plimsoll_policy::SniffedKind;

use super::{ApacheCluster, ApacheEvent};
use crate::models::apache::connections::{ConnectionId, ConnectionRole, ConnectionStage, NO_PROCESS};
use crate::models::apache::cpu::{Discipline, SliceEnd};
use crate::models::apache::processes::{DAEMON, NO_MARK, PARENT, ProcessStage};

impl ApacheCluster<'_> {
    /// The kernel of `b` works on packets. Returns when it is done.
    #[inline]
    pub(super) fn kernel(&mut self, b: u16, cost: u64) -> plimsoll_policy::Time {
        let node = &mut self.nodes[usize::from(b)];
        let until = node.cpu.steal(node.takes(cost), self.now);
        if node.cpu.discipline() == Discipline::Sharing {
            self.dispatch(b);
        }
        until
    }

    /// Process `p` takes up the request of connection `id`.
    #[inline]
    pub(super) fn take_up(&mut self, b: u16, p: u16, id: ConnectionId) {
        let connection = self.connections.get_mut(id);
        connection.stage = ConnectionStage::Served;
        connection.requests += 1;
        let kind = connection.asked.kind;
        let node = &mut self.nodes[usize::from(b)];
        *node.at_work.serving(kind) += 1;
        node.pool.get_mut(p).stage = ProcessStage::Begins;
        node.cpu.set_left(p, 0);
        if node.cpu.discipline() == Discipline::Sharing {
            let work = self.first_work(b, p);
            self.nodes[usize::from(b)].cpu.set_left(p, work);
        }
        self.wake(b, p);
    }

    #[inline]
    pub(super) fn wake(&mut self, b: u16, p: u16) {
        self.nodes[usize::from(b)].cpu.wake(p, self.now);
        self.dispatch(b);
    }

    /// Lets the CPU run a process, if it is free.
    #[inline]
    fn dispatch(&mut self, b: u16) {
        let node = &mut self.nodes[usize::from(b)];
        if node.cpu.discipline() == Discipline::Sharing {
            if let Some(due) = node.cpu.shared_due() {
                node.cpu.turn = node.cpu.turn.wrapping_add(1);
                self.queue.push(due.max(self.now), ApacheEvent::Slice(b, node.cpu.turn));
            }
            return;
        }
        let Some(p) = node.cpu.next() else { return };
        if p > DAEMON && node.pool.get(p).stage == ProcessStage::Begins {
            let work = self.first_work(b, p);
            self.nodes[usize::from(b)].cpu.set_left(p, work);
        }
        let node = &mut self.nodes[usize::from(b)];
        let ends = node.cpu.start(p, self.now);
        self.queue.push(ends, ApacheEvent::Slice(b, node.cpu.turn));
    }

    /// The first work on a request, in nanoseconds: all of it, where the document is in memory or there is none.
    #[inline]
    fn first_work(&mut self, b: u16, p: u16) -> u64 {
        let id = self.nodes[usize::from(b)].pool.get(p).connection;
        let connection = self.connections.get(id);
        let asked = &connection.asked;
        let before = self.costs.basic + asked.compute;
        let needs_document =
            asked.kind == SniffedKind::Static && asked.bytes > 0 && connection.role != ConnectionRole::Probe;
        let expected = connection.expected_miss;
        let node = &mut self.nodes[usize::from(b)];
        if needs_document && !node.cache.access(u64::from(asked.target)) {
            node.pool.get_mut(p).stage = ProcessStage::Looks;
            return node.takes(before);
        }
        if needs_document {
            self.note_prediction(expected, false);
        }
        self.answer_work(b, p, id, before)
    }

    /// The work from here to the end of what a process does for a request: it begins with `before`, sends what the first window
    /// allows, and closes the connection unless that stays.
    #[inline]
    pub(super) fn answer_work(&mut self, b: u16, p: u16, id: ConnectionId, before: u64) -> u64 {
        let close = self.teardown(id);
        let connection = self.connections.get_mut(id);
        let bytes = connection.asked.bytes;
        let segment = self.params.segment_bytes;
        connection.window = self.params.initial_window;
        connection.sent = match connection.round_trip.is_zero() {
            true => bytes,
            false => bytes.min(segment * u64::from(connection.window)),
        };
        let before = before + if connection.asked.has_document() { 0 } else { self.costs.no_document };
        let first = bytes.min(segment);
        let after = self.costs.transmit(first, connection.sent) + close;
        let work = before + self.costs.transmit(0, first) + after;
        let node = &mut self.nodes[usize::from(b)];
        let (work, mark) = (node.takes(work), node.takes(after));
        let process = node.pool.get_mut(p);
        (process.stage, process.mark) = (ProcessStage::Answers, mark);
        work
    }

    /// Whether the connection ends with the answer under way.
    #[inline]
    pub(super) fn closes(&self, id: ConnectionId) -> bool {
        let connection = self.connections.get(id);
        !connection.persistent || connection.requests >= self.params.keep_alive_requests
    }

    /// What a process needs to close its connection after the answer under way, in nanoseconds. Back-ends keep theirs to one another.
    #[inline]
    pub(super) fn teardown(&self, id: ConnectionId) -> u64 {
        let of_client = !matches!(self.connections.get(id).role, ConnectionRole::Fetch(..));
        if of_client && self.closes(id) { self.costs.teardown } else { 0 }
    }

    /// A slice ends, if it is the one under way.
    #[inline]
    pub(super) fn slice(&mut self, b: u16, turn: u32) {
        let node = &mut self.nodes[usize::from(b)];
        if node.cpu.turn != turn {
            return;
        }
        if node.cpu.discipline() == Discipline::Sharing {
            while let Some(p) = self.nodes[usize::from(b)].cpu.shared_done(self.now) {
                self.check_first_segment(b, p);
                self.done(b, p);
            }
        } else {
            match node.cpu.due(self.now) {
                Some(SliceEnd::Later(at)) => {
                    self.queue.push(at, ApacheEvent::Slice(b, turn));
                    return;
                }
                Some(SliceEnd::Spent(p)) => self.check_first_segment(b, p),
                Some(SliceEnd::Done(p)) => {
                    self.check_first_segment(b, p);
                    self.done(b, p);
                }
                None => {}
            }
        }
        self.dispatch(b);
    }

    /// Notes when the first segment of a response went out, if it did in the slice that has ended.
    #[inline]
    fn check_first_segment(&mut self, b: u16, p: u16) {
        if p <= DAEMON {
            return;
        }
        let node = &mut self.nodes[usize::from(b)];
        let left = node.cpu.left(p);
        let process = node.pool.get_mut(p);
        if process.mark == NO_MARK || left > process.mark {
            return;
        }
        let since_ns = process.mark - left;
        process.mark = NO_MARK;
        let connection = self.connections.get(process.connection);
        if connection.role == ConnectionRole::Client {
            let latency_ns = self.now.since(connection.requested).as_nanos().saturating_sub(since_ns);
            self.results.server_latency_ns.record(latency_ns);
        }
    }

    /// A process has done its work.
    #[inline]
    fn done(&mut self, b: u16, p: u16) {
        match p {
            PARENT => self.forked(b),
            DAEMON => self.measured(b),
            _ if self.nodes[usize::from(b)].pool.get(p).stage == ProcessStage::Looks => self.look(b, p),
            _ => self.written(b, p),
        }
    }

    /// A document was not in memory when its request began.
    fn look(&mut self, b: u16, p: u16) {
        let node = &mut self.nodes[usize::from(b)];
        let id = node.pool.get(p).connection;
        let asked = self.connections.get(id).asked;
        // A read that has ended since may have brought it.
        let expected = self.connections.get(id).expected_miss;
        if node.cache.access(u64::from(asked.target)) {
            self.note_prediction(expected, false);
            let work = self.answer_work(b, p, id, 0);
            let cpu = &mut self.nodes[usize::from(b)].cpu;
            cpu.set_left(p, work);
            cpu.goes_on(p, self.now);
            return;
        }
        self.note_prediction(expected, true);
        let node = &mut self.nodes[usize::from(b)];
        node.at_work.serving_static -= 1;
        node.at_work.at_disk += 1;
        node.pool.get_mut(p).stage = ProcessStage::Reads;
        let size_bytes = self.config.targets.size_bytes[asked.target as usize];
        let takes = self.costs.read(size_bytes.max(asked.bytes));
        if let Some(ends) = node.disk.wait(p, asked.target, takes, self.now) {
            self.queue.push(ends, ApacheEvent::Read(b, node.epoch));
        }
    }

    /// A document was in memory, or not.
    fn note_prediction(&mut self, expected_miss: Option<bool>, missed: bool) {
        if let Some(expected_miss) = expected_miss {
            self.results.predictions[usize::from(expected_miss)][usize::from(missed)] += 1;
        }
    }

    /// A read has ended.
    pub(super) fn read(&mut self, b: u16, epoch: u32) {
        let node = &mut self.nodes[usize::from(b)];
        if node.epoch != epoch {
            return;
        }
        let mut woken = std::mem::take(&mut self.woken);
        if let Some((target, next)) = node.disk.ended(self.now, &mut woken) {
            if let Some(ends) = next {
                self.queue.push(ends, ApacheEvent::Read(b, epoch));
            }
            let size_bytes = self.config.targets.size_bytes[target as usize];
            node.cache.insert(u64::from(target), size_bytes, &mut self.evicted);
            self.evicted.clear();
        }
        for &p in &woken {
            let node = &mut self.nodes[usize::from(b)];
            node.at_work.at_disk -= 1;
            node.at_work.serving_static += 1;
            let id = node.pool.get(p).connection;
            let work = self.answer_work(b, p, id, 0);
            self.nodes[usize::from(b)].cpu.set_left(p, work);
            self.wake(b, p);
        }
        woken.clear();
        self.woken = woken;
    }

    /// The parent has forked a process.
    fn forked(&mut self, b: u16) {
        let fork = self.costs.fork;
        let node = &mut self.nodes[usize::from(b)];
        node.pool.forking -= 1;
        node.forks += 1;
        if node.pool.forking > 0 {
            let work = node.takes(fork);
            node.cpu.set_left(PARENT, work);
            node.cpu.goes_on(PARENT, self.now);
        }
        let p = node.pool.add();
        node.cpu.enlist(p);
        if let Some(id) = node.pending.pop_front() {
            // Nobody else is idle where connections wait.
            node.pool.take_idle(id);
            self.hold(b, p, id);
        }
    }

    /// Process `p`, which was idle or has just become free, holds connection `id`.
    #[inline]
    pub(super) fn hold(&mut self, b: u16, p: u16, id: ConnectionId) {
        let process = self.nodes[usize::from(b)].pool.get_mut(p);
        (process.stage, process.connection) = (ProcessStage::Waits, id);
        let connection = self.connections.get_mut(id);
        connection.process = p;
        if connection.stage == ConnectionStage::Pending {
            self.take_up(b, p, id);
        }
    }

    /// Process `p` leaves its connection: it gets one that waits, or is idle.
    #[inline]
    pub(super) fn release(&mut self, b: u16, p: u16) {
        let node = &mut self.nodes[usize::from(b)];
        let id = node.pool.get(p).connection;
        self.connections.get_mut(id).process = NO_PROCESS;
        if node.pool.get(p).helps {
            node.pool.release(p);
            return;
        }
        match node.pending.pop_front() {
            Some(next) => self.hold(b, p, next),
            None => node.pool.release(p),
        }
    }

    /// The parent looks after its processes.
    pub(super) fn maintain(&mut self, b: u16) {
        let node = &mut self.nodes[usize::from(b)];
        if node.pool.maintain() > 0 {
            let work = node.takes(self.costs.fork);
            node.cpu.set_left(PARENT, work);
            self.wake(b, PARENT);
        }
        self.queue.push(self.now + self.params.maintenance_s, ApacheEvent::Maintain(b));
    }
}
