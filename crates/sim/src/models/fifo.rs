//! Back-ends that serve one request after the other. Used to check the simulator against theory.
//!
//! The service time is the trace's where it gives one, else exponential with mean `service_s`.

use std::collections::VecDeque;

use plimsoll_policy::params::{ParamSet, Params as _};
use plimsoll_policy::{BackendId, Nanos, Rng, Time};

use crate::model::{Busy, JobId, Model, ModelContext, ModelEvent, Usage};
use crate::model_spec::{ModelSpec, RunResult, Simulation};
use crate::workload::SimRequest;

plimsoll_policy::params! {
    /// Parameters of the FIFO model.
    pub struct FifoParams {
        /// Mean of the exponential service time, where the trace gives none.
        service_s: Nanos = Nanos::from_millis(10), 0.000000001..=1000000.0, "s";
    }
}

/// Stream of the run's seed from which service times are drawn.
const STREAM: u64 = 0x6669_666F;

#[derive(Default)]
struct FifoBackend {
    queue: VecDeque<(JobId, Nanos)>,
    serving: Option<JobId>,
    busy: Busy,
    epoch: u32,
}

/// See the module's documentation.
pub struct FifoModel {
    params: FifoParams,
    rng: Rng,
    nodes: Vec<FifoBackend>,
}

impl FifoModel {
    /// `backends` idle back-ends.
    #[must_use]
    pub fn new(params: FifoParams, backends: usize, seed: u64) -> Self {
        Self {
            params,
            rng: Rng::new(seed, STREAM),
            nodes: (0..backends).map(|_| FifoBackend::default()).collect(),
        }
    }
}

impl FifoBackend {
    #[inline]
    fn serve(&mut self, backend: u16, job: JobId, service: Nanos, context: &mut ModelContext<'_>) {
        self.serving = Some(job);
        self.busy.begin(context.now, service);
        let event = ModelEvent { backend, kind: 0, unit: 0, epoch: self.epoch };
        context.queue.push(context.now + service, event);
    }
}

impl Model for FifoModel {
    #[inline]
    fn start(
        &mut self,
        backend: BackendId,
        job: JobId,
        request: &SimRequest,
        context: &mut ModelContext<'_>,
    ) -> Nanos {
        let service = if request.service == Nanos::ZERO {
            let mean_ns = self.params.service_s.as_nanos() as f64;
            // Adding a half and truncating rounds; a call to `round` is not inlined.
            Nanos::new((self.rng.exponential() * mean_ns + 0.5) as u64)
        } else {
            request.service
        };
        let node = &mut self.nodes[backend.index()];
        if node.serving.is_none() {
            node.serve(backend.0, job, service, context);
        } else {
            node.queue.push_back((job, service));
        }
        service
    }

    #[inline]
    fn handle(&mut self, event: ModelEvent, context: &mut ModelContext<'_>) {
        let node = &mut self.nodes[usize::from(event.backend)];
        if event.epoch != node.epoch {
            return;
        }
        context.done.extend(node.serving.take());
        if let Some((job, service)) = node.queue.pop_front() {
            node.serve(event.backend, job, service, context);
        }
    }

    fn fail(&mut self, backend: BackendId, now: Time) {
        let node = &mut self.nodes[backend.index()];
        node.busy.stop(now);
        *node = FifoBackend { busy: node.busy, epoch: node.epoch + 1, ..FifoBackend::default() };
    }

    fn usage(&self, backend: BackendId, now: Time) -> Usage {
        Usage { cpu: self.nodes[backend.index()].busy.until(now), ..Usage::default() }
    }

    fn disks(&self) -> u32 {
        0
    }

    fn restart_usage(&mut self, now: Time) {
        self.nodes.iter_mut().for_each(|n| n.busy.restart(now));
    }
}

fn run(params: &ParamSet, simulation: Simulation<'_>) -> RunResult {
    let model = FifoModel::new(FifoParams::of(params), simulation.backends(), simulation.config.seed);
    simulation.run(model)
}

/// Registry entry.
pub static SPEC: ModelSpec = ModelSpec {
    name: "fifo",
    summary: "one server with a queue, service times from the trace or exponential",
    source: "textbook G/M/1",
    has_cache: false,
    params: FifoParams::SPECS,
    run,
};
