//! What front-ends measure: host metrics by a daemon on each back-end, and the forward metric by a small request.

use plimsoll_policy::{BackendId, HostMetrics, Nanos, SniffedKind, Time};

use super::{ApacheCluster, ApacheEvent};
use crate::models::apache::clients::AskedPage;
use crate::models::apache::connections::{
    ConnectionId, ConnectionRole, ConnectionStage, NO_PROCESS, WebConnection,
};
use crate::models::apache::processes::DAEMON;

impl ApacheCluster<'_> {
    /// The first measurements, if the policy wants any: probes are sent now, to be there when they are asked for.
    pub(super) fn begin_measuring(&mut self) {
        let Some(every) = self.core.metrics_interval() else { return };
        for b in 0..self.nodes.len() as u16 {
            self.probe(b);
        }
        self.queue.push(Time::ZERO + every, ApacheEvent::Measure);
    }

    /// Every back-end is measured.
    pub(super) fn measure(&mut self) {
        let Some(every) = self.core.metrics_interval() else { return };
        self.queue.push(self.now + every, ApacheEvent::Measure);
        let cost = self.params.metrics_cpu_s.as_nanos();
        let delayed = self.params.metrics_delayed == 1 && self.params.metrics_first == 0 && cost > 0;
        for b in 0..self.nodes.len() as u16 {
            if self.nodes[usize::from(b)].down {
                continue;
            }
            if !delayed {
                self.report(b);
            }
            if cost > 0 && self.params.metrics_first == 1 {
                self.kernel(b, cost);
            } else if cost > 0 {
                self.daemon_works(b, cost);
            }
            self.probe(b);
        }
        self.start_waiting();
    }

    /// The daemon of `b` has a further measurement to make.
    fn daemon_works(&mut self, b: u16, cost: u64) {
        let node = &mut self.nodes[usize::from(b)];
        if node.daemon_works {
            node.daemon_owes += cost;
            return;
        }
        node.daemon_works = true;
        let work = node.takes(cost);
        node.cpu.set_left(DAEMON, work);
        self.wake(b, DAEMON);
    }

    /// The daemon of `b` has made a measurement.
    pub(super) fn measured(&mut self, b: u16) {
        let node = &mut self.nodes[usize::from(b)];
        let owed = std::mem::take(&mut node.daemon_owes);
        if owed > 0 {
            let work = node.takes(owed);
            node.cpu.set_left(DAEMON, work);
            node.cpu.goes_on(DAEMON, self.now);
        } else {
            node.daemon_works = false;
        }
        if self.params.metrics_delayed == 1 {
            self.report(b);
        }
    }

    /// The front-end hears the metrics of `b` as they are now.
    fn report(&mut self, b: u16) {
        let node = &self.nodes[usize::from(b)];
        let metrics = HostMetrics {
            backend: BackendId(b),
            probe_time: if self.params.probes == 1 { node.probe.time(self.now) } else { None },
            pending: node.pending.len() as u32,
            at_disk: node.at_work.at_disk,
            serving_static: node.at_work.serving_static,
            serving_dynamic: node.at_work.serving_dynamic,
        };
        self.core.host_metrics(&metrics, self.now);
    }

    /// Sends a small request to `b`, unless one is outstanding. It takes no time on the network.
    fn probe(&mut self, b: u16) {
        let probe = &mut self.nodes[usize::from(b)].probe;
        if self.params.probes == 0 || (probe.sent.is_some() && !probe.refused) {
            return;
        }
        probe.sent.get_or_insert(self.now);
        probe.refused = false;
        let asked = AskedPage {
            kind: SniffedKind::Static,
            target: 0,
            class: 0,
            bytes: self.params.probe_bytes,
            compute: 0,
        };
        let new = WebConnection::new(ConnectionRole::Probe, asked, Nanos::ZERO, self.now);
        let stage = ConnectionStage::Pending;
        let id = self.connections.insert(WebConnection { stage, backend: b, ..new });
        if !self.accepts(b, id, self.costs.establish) {
            self.nodes[usize::from(b)].probe.refused = true;
            self.forget(id);
            return;
        }
        let process = self.connections.get(id).process;
        if process != NO_PROCESS {
            self.take_up(b, process, id);
        } else if !self.holds_at_once {
            self.established_at(b, id);
        }
    }

    /// A probe has been answered at `last`.
    pub(super) fn probe_answered(&mut self, id: ConnectionId, last: Time) {
        let probe = &mut self.nodes[usize::from(self.connections.get(id).backend)].probe;
        if let Some(sent) = probe.sent.take() {
            probe.took = Some(last.since(sent));
        }
        self.forget(id);
    }
}
