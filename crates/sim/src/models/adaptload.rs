//! The back-end of the `AdaptLoad` study: a network queue served round robin, a disk, a memory cache, and a server for
//! dynamic requests.
//!
//! Source: Zhang, Riska, Sun, Smirni and Ciardo, "Workload-aware load balancing for clustered web servers", sections 5 and
//! 7.1. A static request whose document is in the cache is transmitted; else the document is read from disk, enters the
//! cache, and is transmitted then. A dynamic request is computed, then transmitted. Connections cost nothing by default; what
//! they cost (`connection_us`) is added to the transmission.
//! - Network and CPU are one queue, served round robin with a quantum of one packet (see `packet_ring.rs`); costs are linear
//!   in bytes, and a response without a body takes 1 ns.
//! - The disk reads one document after the other, whole. Requests for a document that is being read, or about to be, wait
//!   for that read. The paper does not say so, but without it a popular document that is missing would be read over and over.
//! - The cache is looked up when a request comes. Documents larger than the cache are not cached.
//! - Requests without a body (HEAD, 304) touch neither cache nor disk.
//! - Dynamic requests share a processor (see `processor_sharing.rs`). Their times are lognormal, or those of the trace where
//!   it has any. They touch neither cache nor disk. The server for them is not among the units whose use is reported.
//! - `speed` divides all times of network and disk, by which the paper makes load light or heavy. The first `fast_backends`
//!   back-ends are `fast_speed` times as fast as that (section 4); a policy learns of it by their weights alone. Slowdown
//!   compares with the fastest back-end.

use plimsoll_cache::Cache;
use plimsoll_policy::params::{ParamSet, Params as _};
use plimsoll_policy::{BackendId, Kind, Nanos, Rng, Time};

use super::alarm::Alarm;
use super::lard_costs::{Costs, LardModelParams, linear};
use super::packet_ring::PacketRing;
use super::processor_sharing::ProcessorSharing;
use super::read_queue::ReadQueue;
use crate::config::CacheConfig;
use crate::model::{Busy, JobId, Model, ModelContext, ModelEvent, Usage};
use crate::model_spec::{ModelSpec, RunResult, Simulation};
use crate::workload::{SimRequest, Targets};
use plimsoll_synth::{TimeDistribution, TimeDraws, TimeShape};

plimsoll_policy::params! {
    /// Parameters of the `AdaptLoad` model; defaults from sections 5 and 7.1.
    pub struct AdaptLoadModelParams {
        /// Network and CPU time to transmit 512 bytes.
        transmit_per_512_bytes_us: f64 = 40.0, 0.0..=1e9, "µs";
        /// Network and CPU time to establish a connection and to tear it down.
        connection_us: f64 = 0.0, 0.0..=1e9, "µs";
        /// What a transmission sends before the next one has its turn: a packet.
        quantum_bytes: u64 = 1_536, 1..=1_000_000_000, "bytes";
        /// Disk latency before a document: two seeks and rotation.
        disk_latency_us: f64 = 28000.0, 0.0..=1e9, "µs";
        /// Disk time to transfer 4,096 bytes.
        disk_transfer_per_4096_bytes_us: f64 = 410.0, 0.0..=1e9, "µs";
        /// Disk latency for every further block or part of one: seek and rotation.
        disk_seek_us: f64 = 14000.0, 0.0..=1e9, "µs";
        /// Bytes between two seeks.
        block_bytes: u64 = 45_056, 512..=1_000_000_000_000, "bytes";
        /// Speed of network and disk as a multiple of those that have these costs.
        speed: f64 = 1.0, 0.001..=100000.0, "";
        /// How many back-ends, from the first on, are faster.
        fast_backends: u32 = 0, 0..=65_534, "back-ends";
        /// Speed of these as a multiple of the others'.
        fast_speed: f64 = 1.0, 1.0..=1000.0, "";
        /// Mean time to compute a dynamic response.
        dynamic_mean_ms: f64 = 3.25, 0.000001..=1e9, "ms";
        /// Coefficient of variation of that time.
        dynamic_cv: f64 = 3.4, 0.0..=1000.0, "";
    }
}

/// Stream of the run's seed from which the times of dynamic requests are drawn.
const STREAM: u64 = 0x6164_796E;

const NETWORK: u8 = 0;
const DISK: u8 = 1;
const DYNAMIC: u8 = 2;

struct AdaptLoadBackend {
    costs: Costs,
    network: PacketRing,
    network_alarm: Alarm,
    /// A transmission that ended at the time another request came; that time's event reports it.
    ended: Option<JobId>,
    reads: ReadQueue,
    disk_busy: Busy,
    dynamic: ProcessorSharing,
    dynamic_alarm: Alarm,
    epoch: u32,
    read_count: u64,
    joined_count: u64,
}

/// See the module's documentation.
pub struct AdaptLoadModel<'t> {
    /// Of the fastest back-end, with which slowdowns compare.
    least_costs: Costs,
    block_bytes: u64,
    targets: &'t Targets,
    nodes: Vec<AdaptLoadBackend>,
    caches: Vec<Box<dyn Cache>>,
    times: TimeDraws<Rng>,
    evicted: Vec<u64>,
}

impl<'t> AdaptLoadModel<'t> {
    /// `backends` idle back-ends with empty caches.
    #[must_use]
    pub fn new(
        params: &AdaptLoadModelParams,
        backends: usize,
        cache: CacheConfig,
        targets: &'t Targets,
        seed: u64,
    ) -> Self {
        let p = params;
        let fast = usize::try_from(p.fast_backends).unwrap_or(usize::MAX);
        let speed_of = |backend: usize| if backend < fast { p.speed * p.fast_speed } else { p.speed };
        let node = |speed: f64| AdaptLoadBackend {
            costs: costs(p, speed),
            network: PacketRing::new(costs(p, speed).transmit(p.quantum_bytes)),
            network_alarm: Alarm::default(),
            ended: None,
            reads: ReadQueue::default(),
            disk_busy: Busy::default(),
            dynamic: ProcessorSharing::default(),
            dynamic_alarm: Alarm::default(),
            epoch: 0,
            read_count: 0,
            joined_count: 0,
        };
        Self {
            least_costs: costs(p, speed_of(0)),
            block_bytes: p.block_bytes,
            targets,
            nodes: (0..backends).map(|backend| node(speed_of(backend))).collect(),
            caches: (0..backends).map(|_| cache.build()).collect(),
            times: TimeDraws::new(
                TimeDistribution {
                    mean_ns: p.dynamic_mean_ms * 1e6,
                    shape: TimeShape::Lognormal { cv: p.dynamic_cv },
                },
                Rng::new(seed, STREAM),
            ),
            evicted: Vec::new(),
        }
    }

    /// Time to read a whole document with these costs: the first block's latency, a seek for each further block, and
    /// the transfer.
    fn read_time(&self, costs: &Costs, size_bytes: u64) -> Nanos {
        let further = size_bytes.saturating_sub(1) / self.block_bytes;
        let seeks = Nanos::new(further.saturating_mul(costs.disk_seek.as_nanos()));
        costs.disk_latency + seeks + linear(size_bytes, 4096, costs.disk_transfer_4096)
    }

    /// Handles a request whose document is not in memory.
    fn miss(&mut self, b: u16, job: JobId, request: &SimRequest, context: &mut ModelContext<'_>) {
        let node = &mut self.nodes[usize::from(b)];
        if node.reads.join(request.target, job, request.size_bytes) {
            node.joined_count += 1;
            return;
        }
        node.read_count += 1;
        // A log may contain a response larger than the document's size.
        let size_bytes = self.targets.size_bytes[request.target as usize].max(request.size_bytes);
        let idle = node.reads.current().is_none();
        node.reads.push(request.target, size_bytes, job, request.size_bytes);
        if idle {
            self.read(b, context);
        }
    }

    /// Starts the disk on the next document, if there is one.
    fn read(&mut self, b: u16, context: &mut ModelContext<'_>) {
        let Some(size_bytes) = self.nodes[usize::from(b)].reads.current().map(|read| read.size_bytes) else {
            return;
        };
        let span = self.read_time(&self.nodes[usize::from(b)].costs, size_bytes);
        let node = &mut self.nodes[usize::from(b)];
        node.disk_busy.begin(context.now, span);
        let event = ModelEvent { backend: b, kind: DISK, unit: 0, epoch: node.epoch };
        context.queue.push(context.now + span, event);
    }

    fn disk_done(&mut self, b: u16, context: &mut ModelContext<'_>) {
        let Some((slot, read)) = self.nodes[usize::from(b)].reads.finish() else { return };
        let size_bytes = self.targets.size_bytes[read.target as usize];
        self.caches[usize::from(b)].insert(u64::from(read.target), size_bytes, &mut self.evicted);
        self.evicted.clear();
        let node = &mut self.nodes[usize::from(b)];
        for &(job, bytes) in &read.waiters {
            node.transmit(b, job, bytes, context);
        }
        node.reads.give_back(slot, read);
        self.read(b, context);
    }
}

/// The costs of a back-end with this speed.
fn costs(p: &AdaptLoadModelParams, speed: f64) -> Costs {
    Costs::new(&LardModelParams {
        connect_us: p.connection_us / speed,
        transmit_per_512_bytes_us: p.transmit_per_512_bytes_us / speed,
        disk_latency_us: p.disk_latency_us / speed,
        disk_transfer_per_4096_bytes_us: p.disk_transfer_per_4096_bytes_us / speed,
        disk_seek_us: p.disk_seek_us / speed,
        ..LardModelParams::default()
    })
}

/// Time to transmit this many bytes alone, the connection's included.
#[inline]
fn transmission(costs: &Costs, bytes: u64) -> Nanos {
    (costs.connect + costs.transmit(bytes)).max(Nanos::new(1))
}

impl AdaptLoadBackend {
    #[inline]
    fn transmit(&mut self, b: u16, job: JobId, bytes: u64, context: &mut ModelContext<'_>) {
        let service = transmission(&self.costs, bytes);
        if let Some(ended) = self.network.complete(context.now) {
            self.ended = Some(ended);
        }
        self.network.enter(job, service, context.now);
        self.set_network_alarm(b, context);
    }

    #[inline]
    fn set_network_alarm(&mut self, b: u16, context: &mut ModelContext<'_>) {
        if let Some(due) = self.network.due()
            && self.network_alarm.set(due)
        {
            context.queue.push(due, ModelEvent { backend: b, kind: NETWORK, unit: 0, epoch: self.epoch });
        }
    }

    fn set_dynamic_alarm(&mut self, b: u16, context: &mut ModelContext<'_>) {
        if let Some(due) = self.dynamic.due()
            && self.dynamic_alarm.set(due)
        {
            context.queue.push(due, ModelEvent { backend: b, kind: DYNAMIC, unit: 0, epoch: self.epoch });
        }
    }

    #[inline]
    fn network_event(&mut self, b: u16, context: &mut ModelContext<'_>) {
        self.network_alarm.rang();
        context.done.extend(self.ended.take());
        context.done.extend(self.network.complete(context.now));
        self.set_network_alarm(b, context);
    }

    fn dynamic_event(&mut self, b: u16, context: &mut ModelContext<'_>) {
        self.dynamic_alarm.rang();
        while let Some((job, bytes)) = self.dynamic.complete(context.now) {
            self.transmit(b, job, bytes, context);
        }
        self.set_dynamic_alarm(b, context);
    }
}

impl Model for AdaptLoadModel<'_> {
    #[inline]
    fn start(
        &mut self,
        backend: BackendId,
        job: JobId,
        request: &SimRequest,
        context: &mut ModelContext<'_>,
    ) -> Nanos {
        let alone = transmission(&self.least_costs, request.size_bytes);
        let node = &mut self.nodes[backend.index()];
        if request.kind == Kind::Dynamic {
            let computing = if request.service == Nanos::ZERO {
                Nanos::new(self.times.draw_ns())
            } else {
                request.service
            };
            node.dynamic.enter(job, computing, request.size_bytes, context.now);
            node.set_dynamic_alarm(backend.0, context);
            return computing + alone;
        }
        if request.size_bytes == 0 || self.caches[backend.index()].access(u64::from(request.target)) {
            node.transmit(backend.0, job, request.size_bytes, context);
        } else {
            self.miss(backend.0, job, request, context);
        }
        alone
    }

    #[inline]
    fn handle(&mut self, event: ModelEvent, context: &mut ModelContext<'_>) {
        let node = &mut self.nodes[usize::from(event.backend)];
        if event.epoch != node.epoch {
            return;
        }
        match event.kind {
            NETWORK => node.network_event(event.backend, context),
            DISK => self.disk_done(event.backend, context),
            _ => node.dynamic_event(event.backend, context),
        }
    }

    fn fail(&mut self, backend: BackendId, now: Time) {
        let node = &mut self.nodes[backend.index()];
        node.network.clear(now);
        node.network_alarm.clear();
        node.ended = None;
        node.reads = ReadQueue::default();
        node.disk_busy.stop(now);
        node.dynamic.clear();
        node.dynamic_alarm.clear();
        node.epoch += 1;
        self.caches[backend.index()].clear();
    }

    fn usage(&self, backend: BackendId, now: Time) -> Usage {
        let node = &self.nodes[backend.index()];
        Usage {
            reads: node.read_count,
            joined: node.joined_count,
            cpu: node.network.busy(now),
            disk: node.disk_busy.until(now),
        }
    }

    fn disks(&self) -> u32 {
        1
    }

    fn restart_usage(&mut self, now: Time) {
        for node in &mut self.nodes {
            node.network.restart_busy(now);
            node.disk_busy.restart(now);
            (node.read_count, node.joined_count) = (0, 0);
        }
    }
}

fn run(params: &ParamSet, simulation: Simulation<'_>) -> RunResult {
    let (cache, config) = (simulation.cache, simulation.config);
    let params = AdaptLoadModelParams::of(params);
    let model = AdaptLoadModel::new(&params, simulation.backends(), cache, config.targets, config.seed);
    simulation.run(model)
}

/// Registry entry.
pub static SPEC: ModelSpec = ModelSpec {
    name: "adaptload",
    summary: "network served packet by packet, a disk, memory cache of whole files, and a server for dynamic requests",
    source: "Zhang et al. (AdaptLoad), sections 5 and 7.1",
    has_cache: true,
    spends_on_messages: false,
    params: AdaptLoadModelParams::SPECS,
    run,
};
