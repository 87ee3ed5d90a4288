//! Back-ends that serve requests in order of arrival, each with one or more workers.
//!
//! The service time is the trace's where it gives one, else exponential with mean `service_s`. With a network latency the
//! request is on its way for that time, and so is the response; the queue length that a back-end tells counts what is there.
//!
//! A request costs one event, the one with which its response is back at the front-end: then the worker's next request is looked
//! at, which has begun by then, or will begin when it arrives. What has happened at a back-end since its last event is
//! reckoned when somebody asks for it.
//!
//! Source: Shen, Yang and Chu, "Cluster load balancing for fine-grain network services", section 2, where the latency is half of
//! a TCP round trip with connection setup and teardown: 258 µs each way.

use std::collections::VecDeque;

use plimsoll_policy::params::{ParamSet, Params as _};
use plimsoll_policy::{BackendId, Exponentials, Nanos, Rng, Time};

use crate::event_queue::EventQueue;
use crate::model::{Busy, JobId, Model, ModelContext, ModelEvent, Usage};
use crate::model_spec::{ModelSpec, RunResult, Simulation};
use crate::workload::SimRequest;

plimsoll_policy::params! {
    /// Parameters of the FIFO model.
    pub struct FifoParams {
        /// Mean of the exponential service time, where the trace gives none.
        service_s: Nanos = Nanos::from_millis(10), 0.000000001..=1000000.0, "s";
        /// Network latency of a request to its back-end, and of the response back.
        latency_s: Nanos = Nanos::ZERO, 0.0..=10.0, "s";
        /// Requests that a back-end serves at once.
        workers: u32 = 1, 1..=64, "";
    }
}

/// Stream of the run's seed from which service times are drawn.
const STREAM: u64 = 0x6669_666F;

/// A request that no worker has begun.
#[derive(Clone, Copy)]
struct FifoWaiting {
    job: JobId,
    service: Nanos,
    arrives: Time,
}

/// What serves one request at a time. It has one until its response is back, also after its end.
#[derive(Clone, Copy, Default)]
struct Worker {
    job: JobId,
    begins: Time,
    busy: Busy,
}

impl Worker {
    #[inline]
    fn serves(&self, now: Time) -> bool {
        // Without a branch, which would be hard to predict.
        (self.begins <= now) & (now < self.busy.ends())
    }

    /// Time busy up to `now`, of a request that has not begun none.
    fn busy_until(&self, now: Time) -> Nanos {
        self.busy.until(now.max(self.begins))
    }
}

/// What the workers have done with waiting requests since the last event.
#[derive(Default)]
struct Progress {
    ended: u32,
    busy: Nanos,
}

struct FifoBackend {
    /// In the order in which they arrive. Empty while a worker is idle.
    queue: VecDeque<FifoWaiting>,
    /// When the last request that had to wait arrives.
    last_arrives: Time,
    workers: Box<[Worker]>,
    /// One bit for each worker that has no request.
    idle: u64,
    /// CPU time of inquiries, which delays the request that is served next.
    debt: Nanos,
    /// CPU time of inquiries, and of requests that were lost, that is booked with no worker; and time that is booked with one
    /// although it was before the measurement.
    beside: Nanos,
    before: Nanos,
    /// Time that a unit of service takes.
    slowness: f64,
    epoch: u32,
}

/// See the module's documentation.
pub struct FifoModel {
    params: FifoParams,
    /// Since when usage is counted.
    counted_from: Time,
    /// Draws service times.
    exponentials: Exponentials,
    nodes: Vec<FifoBackend>,
}

impl FifoModel {
    /// `backends` idle back-ends.
    #[must_use]
    pub fn new(params: FifoParams, backends: usize, seed: u64) -> Self {
        Self {
            params,
            counted_from: Time::ZERO,
            exponentials: Exponentials::new(Rng::new(seed, STREAM)),
            nodes: (0..backends).map(|_| FifoBackend::new(params.workers)).collect(),
        }
    }
}

impl FifoBackend {
    fn new(workers: u32) -> Self {
        Self {
            queue: VecDeque::new(),
            last_arrives: Time::ZERO,
            workers: vec![Worker::default(); workers as usize].into(),
            idle: u64::MAX >> (64 - workers),
            debt: Nanos::ZERO,
            beside: Nanos::ZERO,
            before: Nanos::ZERO,
            slowness: 1.0,
            epoch: 0,
        }
    }

    #[inline]
    fn takes(&self, service: Nanos) -> Nanos {
        if self.slowness == 1.0 { service } else { service.scaled(self.slowness) }
    }

    /// A worker begins a request, not before `earliest`. The event comes when the response is back.
    #[inline(always)]
    fn serve(
        &mut self,
        (backend, unit): (u16, u8),
        waiting: FifoWaiting,
        earliest: Time,
        latency: Nanos,
        queue: &mut EventQueue<ModelEvent>,
    ) {
        let takes = self.takes(waiting.service) + std::mem::replace(&mut self.debt, Nanos::ZERO);
        let worker = &mut self.workers[usize::from(unit)];
        (worker.job, worker.begins) = (waiting.job, waiting.arrives.max(earliest));
        worker.busy.begin(worker.begins, takes);
        queue.push(worker.busy.ends() + latency, ModelEvent { backend, kind: 0, unit, epoch: self.epoch });
    }

    /// Requests that are there: arrived, and not at their end.
    #[inline]
    fn there(&self, now: Time) -> u32 {
        // One that is idle has ended its last request.
        let serving = self.workers.iter().filter(|worker| worker.serves(now)).count();
        let waiting = match self.last_arrives <= now {
            true => self.queue.len(),
            false => self.queue.partition_point(|waiting| waiting.arrives <= now),
        };
        let there = (serving + waiting) as u32;
        // Both are common, and one or the other is nearly always so.
        let is_all = (waiting == 0) | (serving == self.workers.len());
        if is_all { there } else { there - self.progress(now).ended }
    }

    /// See [`Progress`]. Nothing for nearly all: a worker's end is as long ago as a response takes at most.
    fn progress(&self, now: Time) -> Progress {
        if self.queue.is_empty() { Progress::default() } else { self.progress_of_waiting(now) }
    }

    #[inline(never)]
    fn progress_of_waiting(&self, now: Time) -> Progress {
        let mut progress = Progress::default();
        let mut free: Vec<Time> = self.workers.iter().map(|worker| worker.busy.ends()).collect();
        let mut debt = self.debt;
        for waiting in &self.queue {
            let Some(first) = free.iter_mut().min() else { break };
            let begins = waiting.arrives.max(*first);
            if begins > now {
                break;
            }
            *first = begins + self.takes(waiting.service) + std::mem::replace(&mut debt, Nanos::ZERO);
            progress.busy += now.min(*first).since(begins);
            progress.ended += u32::from(*first <= now);
        }
        progress
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
        let service = if request.service.is_zero() {
            self.params.service_s.scaled(self.exponentials.draw())
        } else {
            request.service
        };
        let latency = self.params.latency_s;
        let node = &mut self.nodes[backend.index()];
        let waiting = FifoWaiting { job, service, arrives: context.now + latency };
        if node.idle == 0 {
            node.queue.push_back(waiting);
            node.last_arrives = waiting.arrives;
        } else {
            let unit = node.idle.trailing_zeros() as u8;
            node.idle &= node.idle - 1;
            node.serve((backend.0, unit), waiting, Time::ZERO, latency, context.queue);
        }
        service + latency + latency
    }

    #[inline(always)]
    fn handle(&mut self, event: ModelEvent, context: &mut ModelContext<'_>) {
        let ModelEvent { backend, unit, epoch, .. } = event;
        let node = &mut self.nodes[usize::from(backend)];
        if epoch != node.epoch {
            return;
        }
        let Worker { job, busy, .. } = node.workers[usize::from(unit)];
        context.done.push(job);
        match node.queue.pop_front() {
            Some(waiting) => {
                node.serve((backend, unit), waiting, busy.ends(), self.params.latency_s, context.queue);
            }
            None => node.idle |= 1 << unit,
        }
    }

    fn fail(&mut self, backend: BackendId, now: Time) {
        let node = &mut self.nodes[backend.index()];
        node.beside += node.progress(now).busy;
        for worker in &mut node.workers {
            worker.busy.stop(now.max(worker.begins));
        }
        node.queue.clear();
        node.idle = u64::MAX >> (64 - self.params.workers);
        (node.debt, node.epoch) = (Nanos::ZERO, node.epoch + 1);
    }

    #[inline(always)]
    fn queue_length(&self, backend: BackendId, now: Time) -> Option<u32> {
        let node = &self.nodes[backend.index()];
        if self.params.latency_s.is_zero() {
            return Some(self.params.workers - node.idle.count_ones() + node.queue.len() as u32);
        }
        Some(node.there(now))
    }

    /// Where a worker is idle, nobody waits for the answer.
    #[inline]
    fn inquired(&mut self, backend: BackendId, cpu: Nanos, now: Time) -> Nanos {
        if cpu.is_zero() {
            return cpu;
        }
        let node = &mut self.nodes[backend.index()];
        if node.there(now) < self.params.workers {
            node.beside += cpu;
        } else {
            node.debt += cpu;
        }
        cpu
    }

    fn set_speed(&mut self, backend: BackendId, speed: f64) -> bool {
        self.nodes[backend.index()].slowness = 1.0 / speed;
        true
    }

    /// Of several workers the mean. A request may begin while an idle worker is still at an inquiry, which does not delay it: what finds
    /// no idle time is not counted.
    fn usage(&self, backend: BackendId, now: Time) -> Usage {
        let node = &self.nodes[backend.index()];
        let workers: u64 = node.workers.iter().map(|worker| worker.busy_until(now).as_nanos()).sum();
        let total = Nanos::new(workers) + node.beside + node.progress(now).busy - node.before;
        let cpu = Nanos::new(total.as_nanos() / u64::from(self.params.workers));
        Usage { cpu: cpu.min(now.since(self.counted_from)), ..Usage::default() }
    }

    fn disks(&self) -> u32 {
        0
    }

    fn restart_usage(&mut self, now: Time) {
        self.counted_from = now;
        for node in &mut self.nodes {
            (node.beside, node.before) = (Nanos::ZERO, node.progress(now).busy);
            for worker in &mut node.workers {
                worker.busy.restart(now.max(worker.begins));
            }
        }
    }
}

fn run(params: &ParamSet, simulation: Simulation<'_>) -> RunResult {
    let model = FifoModel::new(FifoParams::of(params), simulation.backends(), simulation.config.seed);
    simulation.run(model)
}

/// Registry entry.
pub static SPEC: ModelSpec = ModelSpec {
    name: "fifo",
    summary: "workers with one queue, service times from the trace, of a distribution (--service), or exponential",
    source: "Shen, Yang and Chu, IPDPS 2002, section 2; textbook G/M/k",
    has_cache: false,
    spends_on_messages: true,
    params: FifoParams::SPECS,
    run,
};
