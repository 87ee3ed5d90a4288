//! What the engine asks of the nodes.

use plimsoll_policy::{BackendId, Nanos, Time};

use super::transfer::{Transfer, Work, WorkStep};
use super::{CPU, FOUND, NIC, WebNodesModel, schedule};
use crate::model::{JobId, Model, ModelContext, ModelEvent, Usage};
use crate::workload::SimRequest;

impl Model for WebNodesModel<'_> {
    fn start(
        &mut self,
        backend: BackendId,
        job: JobId,
        request: &SimRequest,
        context: &mut ModelContext<'_>,
    ) -> Nanos {
        let server = backend.0;
        self.nodes[backend.index()].is_down = false;
        let accepted_by = self.accepting(server);
        if self.transfers.len() <= job as usize {
            self.transfers.resize_with(job as usize + 1, Transfer::default);
        }
        let life = self.transfers[job as usize].life.wrapping_add(1);
        let size_bytes = self.targets.size_bytes[request.target as usize];
        self.transfers[job as usize] = Transfer::new(request, (server, accepted_by), size_bytes, life);
        let sent_away = if accepted_by == server { Nanos::ZERO } else { self.costs.clone_send };
        let work = Work { job, life, step: WorkStep::Parse, bytes: 0 };
        self.use_cpu(accepted_by, work, self.costs.parse + sent_away, context);
        let bytes = request.size_bytes;
        self.costs.parse + request.service + self.costs.send(bytes) + self.costs.nic(bytes)
    }

    fn handle(&mut self, event: ModelEvent, context: &mut ModelContext<'_>) {
        let ModelEvent { backend, kind, .. } = event;
        if kind == FOUND {
            if let Some(work) = self.looking.pop_front() {
                self.fetch(work, context);
            }
            return;
        }
        let node = &mut self.nodes[usize::from(backend)];
        let station = match kind {
            CPU => &mut node.cpu,
            NIC => &mut node.nic,
            _ => &mut self.file_server,
        };
        let (work, next) = station.done(context.now);
        schedule(next, (backend, kind), context);
        if let Some(work) = work {
            self.done(backend, work, context);
        }
    }

    fn fail(&mut self, backend: BackendId, _: Time) {
        let lost = |transfer: &&mut Transfer| transfer.server == backend.0;
        for transfer in self.transfers.iter_mut().filter(lost) {
            transfer.life = transfer.life.wrapping_add(1);
        }
        let transfers = &self.transfers;
        let is_live = |work: &Work| transfers[work.job as usize].life == work.life;
        let node = &mut self.nodes[backend.index()];
        node.is_down = true;
        node.fetching.clear();
        node.cpu.keep(is_live);
        node.nic.keep(is_live);
        self.holders.fail(&mut *self.caches[backend.index()], backend.0);
    }

    fn usage(&self, backend: BackendId, now: Time) -> Usage {
        let node = &self.nodes[backend.index()];
        let disk = self.file_server.busy.until(now);
        Usage { reads: node.read_count, joined: node.joined_count, cpu: node.cpu.busy.until(now), disk }
    }

    fn disks(&self) -> u32 {
        1
    }

    fn restart_usage(&mut self, now: Time) {
        self.file_server.busy.restart(now);
        for node in &mut self.nodes {
            node.cpu.busy.restart(now);
            node.nic.busy.restart(now);
            (node.read_count, node.joined_count) = (0, 0);
        }
    }
}
