//! The back-end of the LARD study: a CPU and disks with a queue each, and a memory cache of whole files.
//!
//! Source: Pai et al., ASPLOS 1998, section 3.1. A request takes connection establishment, disk reads if needed,
//! transmission and teardown. Readings of what the paper leaves open:
//! - The CPU serves tasks first come first served and a task keeps it until it waits for the disk: a hit is one visit
//!   (establishment, transmission, teardown), a miss one for establishment and one per block, the last with teardown.
//! - A file is read in blocks of 44 KB, not interleaved with another file on the same disk: 28 ms before the first
//!   block, 14 ms before each further one that is started, plus the transfer. The transmission of a block queues for
//!   the CPU when the block has been read, and overlaps the reading of the next.
//! - A request for a file under read joins that read: it gets the blocks read so far at once, the others as they come.
//! - A file enters the cache when it has been read to its end. CPU and transfer costs are linear in bytes.
//! - Requests without a body (HEAD, 304) take establishment and teardown only. The service time that a trace gives of
//!   a dynamic request is CPU time on top of establishment; that of a stored document is ignored. Dynamic requests touch neither cache nor disk, unless `cached_results` says that their results are kept
//!   (section 8: what can be cached of them gains by locality, too). Then one whose result is in the cache takes no service time.

use plimsoll_cache::Cache;
use plimsoll_policy::{BackendId, Kind, Nanos, Time};

use super::global_memory::GlobalMemory;
use super::lard_backend::{CpuStep, Disk, FileRead, LardBackend, Task, disk_of};
pub use super::lard_costs::LardModelParams;
use super::lard_costs::{Costs, linear};
pub use super::lard_specs::{GLOBAL_MEMORY_SPEC, SPEC};
use crate::config::CacheConfig;
use crate::model::{JobId, Model, ModelContext, ModelEvent, Usage};
use crate::workload::{SimRequest, Targets};

/// The most blocks of one file, about; reached at 5.8 MB with blocks of 44 KiB. Each block is two events.
const MOST_BLOCKS: u64 = 1 << 7;

const CPU: u8 = 0;
const DISK: u8 = 1;

/// See the module's documentation.
pub struct LardModel<'t> {
    params: LardModelParams,
    costs: Costs,
    targets: &'t Targets,
    cache: CacheConfig,
    nodes: Vec<LardBackend>,
    caches: Vec<Box<dyn Cache>>,
    global_memory: Option<GlobalMemory>,
    evicted: Vec<u64>,
    /// What was found in the cache, by request, where back-ends tell it.
    hits: Vec<Option<bool>>,
}

impl<'t> LardModel<'t> {
    /// `backends` idle back-ends, with empty caches unless these `starts_full`; `global_memory` joins their memories (`lard_gms`).
    #[must_use]
    pub fn new(
        params: LardModelParams,
        backends: usize,
        cache: CacheConfig,
        targets: &'t Targets,
        global_memory: bool,
    ) -> Self {
        let mut model = Self {
            params,
            costs: Costs::new(&params),
            targets,
            cache,
            nodes: (0..backends).map(|_| LardBackend::new(params.disks)).collect(),
            caches: (0..backends).map(|_| cache.build()).collect(),
            global_memory: global_memory.then(|| GlobalMemory::new(targets.len())),
            evicted: Vec::new(),
            hits: Vec::new(),
        };
        if params.starts_full > 0 {
            for b in 0..backends as u16 {
                for target in 0..targets.len() as u32 {
                    model.store(b, target);
                }
            }
        }
        model
    }

    /// Starts the CPU of `b` on `task`.
    #[inline]
    fn run(&mut self, b: u16, mut task: Task, context: &mut ModelContext<'_>) {
        let connects = task.step == CpuStep::Connect;
        let computes = connects && task.dynamic && self.params.cached_results > 0 && task.bytes > 0;
        if computes {
            task.computed = !self.finds(b, &task);
            if task.computed {
                self.tell(&task, false);
                self.nodes[usize::from(b)].read_count += 1;
            } else {
                task.extra = Nanos::ZERO;
            }
        }
        if connects && (task.bytes == 0 || task.dynamic || self.finds(b, &task)) {
            task.step = CpuStep::Send { last: true };
        }
        let costs = &self.costs;
        let mut span = if connects { costs.connect + std::mem::take(&mut task.extra) } else { Nanos::ZERO };
        if let CpuStep::Send { last } = task.step {
            span += task.extra + costs.transmit(task.bytes);
            if last {
                span += costs.teardown;
            }
        }
        let node = &mut self.nodes[usize::from(b)];
        let span = node.slowed(span);
        node.cpu_busy.begin(context.now, span);
        node.cpu = Some(task);
        context
            .queue
            .push(context.now + span, ModelEvent { backend: b, kind: CPU, unit: 0, epoch: node.epoch });
    }

    /// Whether `b` has in its cache what the task asks for. If it has, it tells so.
    #[inline]
    fn finds(&mut self, b: u16, task: &Task) -> bool {
        let hit = self.caches[usize::from(b)].access(u64::from(task.target));
        if let Some(global) = &mut self.global_memory {
            global.touch(task.target, hit.then_some(b));
        }
        if hit {
            self.tell(task, true);
        }
        hit
    }

    /// Tells with the response whether it was a hit, where back-ends do. Who waits for another request's read is told nothing.
    #[inline]
    fn tell(&mut self, task: &Task, hit: bool) {
        if let Some(told) = self.hits.get_mut(task.job as usize) {
            *told = Some(hit);
        }
    }

    fn cpu_done(&mut self, b: u16, context: &mut ModelContext<'_>) {
        let Some(task) = self.nodes[usize::from(b)].cpu.take() else {
            return;
        };
        match task.step {
            CpuStep::Send { last: true } => {
                if task.computed {
                    self.store(b, task.target);
                }
                context.done.push(task.job);
            }
            CpuStep::Send { last: false } => {}
            CpuStep::Connect => {
                if let Some(more) = self.missed(b, task, context) {
                    // The request does not have to wait, so it keeps the CPU.
                    self.run(b, more, context);
                    return;
                }
            }
        }
        if let Some(next) = self.nodes[usize::from(b)].cpu_queue.pop_front() {
            self.run(b, next, context);
        }
    }

    /// Handles a miss. Returns what the CPU can do at once, if anything.
    fn missed(&mut self, b: u16, task: Task, context: &mut ModelContext<'_>) -> Option<Task> {
        let node = &mut self.nodes[usize::from(b)];
        if let Some(&slot) = node.reading.get(&task.target) {
            node.joined_count += 1;
            let read = &mut node.reads[slot as usize];
            // A log may contain a response larger than the document's size.
            read.size_bytes = read.size_bytes.max(task.bytes);
            let ready = read.read_bytes.min(task.bytes);
            if ready < task.bytes {
                read.waiters.push((task.job, task.bytes - ready));
            }
            return (ready > 0).then_some(Task {
                step: CpuStep::Send { last: ready == task.bytes },
                bytes: ready,
                ..task
            });
        }
        // A read that ended while the connection was being established may have brought the file in.
        if self.finds(b, &task) {
            return Some(Task { step: CpuStep::Send { last: true }, ..task });
        }
        if let Some(global) = &mut self.global_memory
            && global.fetch(&mut self.caches, b, task.target)
        {
            let size_bytes = self.targets.size_bytes[task.target as usize];
            let extra = linear(size_bytes, 512, self.costs.remote_copy_512);
            self.store(b, task.target);
            return Some(Task { step: CpuStep::Send { last: true }, extra, ..task });
        }
        self.tell(&task, false);
        self.begin_read(b, task, context);
        None
    }

    fn begin_read(&mut self, b: u16, task: Task, context: &mut ModelContext<'_>) {
        let size_bytes = self.targets.size_bytes[task.target as usize].max(task.bytes);
        let unit = disk_of(self.targets.rank[task.target as usize], self.params.disks);
        let node = &mut self.nodes[usize::from(b)];
        node.read_count += 1;
        let slot = node.free_reads.pop().unwrap_or_else(|| {
            node.reads.push(FileRead::default());
            (node.reads.len() - 1) as u32
        });
        let read = &mut node.reads[slot as usize];
        (read.target, read.size_bytes, read.read_bytes) = (task.target, size_bytes, 0);
        read.waiters.push((task.job, task.bytes));
        node.reading.insert(task.target, slot);
        let disk = &mut node.disks[unit as usize];
        if disk.reading.is_none() {
            disk.reading = Some(slot);
            self.read_block(b, unit as u8, context);
        } else {
            disk.queue.push_back(slot);
        }
    }

    /// Starts the next block of the file that the disk is reading.
    fn read_block(&mut self, b: u16, unit: u8, context: &mut ModelContext<'_>) {
        let node = &mut self.nodes[usize::from(b)];
        let Some(slot) = node.disks[usize::from(unit)].reading else { return };
        let read = &mut node.reads[slot as usize];
        let seek = if read.read_bytes == 0 { self.costs.disk_latency } else { self.costs.disk_seek };
        // Enormous files get larger blocks, so that no single file dominates a run.
        let block_bytes = self.params.block_bytes.max(read.size_bytes / MOST_BLOCKS);
        read.block_bytes = (read.size_bytes - read.read_bytes).min(block_bytes);
        let span = seek + linear(read.block_bytes, 4096, self.costs.disk_transfer_4096);
        let span = node.slowed(span);
        node.disks[usize::from(unit)].busy.begin(context.now, span);
        context
            .queue
            .push(context.now + span, ModelEvent { backend: b, kind: DISK, unit, epoch: node.epoch });
    }

    fn disk_done(&mut self, b: u16, unit: u8, context: &mut ModelContext<'_>) {
        let node = &mut self.nodes[usize::from(b)];
        let Some(slot) = node.disks[usize::from(unit)].reading else {
            return;
        };
        let read = &mut node.reads[slot as usize];
        let block = read.block_bytes;
        read.read_bytes += block;
        let (target, complete) = (read.target, read.read_bytes == read.size_bytes);
        let cpu_queue = &mut node.cpu_queue;
        read.waiters.retain_mut(|(job, remaining)| {
            let bytes = block.min(*remaining);
            *remaining -= bytes;
            let step = CpuStep::Send { last: *remaining == 0 };
            cpu_queue.push_back(Task {
                job: *job,
                target,
                step,
                dynamic: false,
                computed: false,
                bytes,
                extra: Nanos::ZERO,
            });
            *remaining > 0
        });
        if complete {
            debug_assert!(read.waiters.is_empty(), "a file read to its end leaves nobody waiting");
            node.reading.remove(&target);
            node.free_reads.push(slot);
            node.disks[usize::from(unit)].reading = node.disks[usize::from(unit)].queue.pop_front();
            self.store(b, target);
        }
        self.read_block(b, unit, context);
        let node = &mut self.nodes[usize::from(b)];
        if node.cpu.is_none()
            && let Some(task) = node.cpu_queue.pop_front()
        {
            self.run(b, task, context);
        }
    }

    /// Adds a file that was read completely to the cache.
    fn store(&mut self, b: u16, target: u32) {
        let size_bytes = self.targets.size_bytes[target as usize];
        let stored = self.caches[usize::from(b)].insert(u64::from(target), size_bytes, &mut self.evicted);
        if let Some(global) = &mut self.global_memory {
            if stored {
                global.stored(b, target);
            }
            global.evicted(&mut self.caches, b, &self.evicted, self.targets);
        }
        self.evicted.clear();
    }
}

impl Model for LardModel<'_> {
    fn start(
        &mut self,
        backend: BackendId,
        job: JobId,
        request: &SimRequest,
        context: &mut ModelContext<'_>,
    ) -> Nanos {
        // Of a stored document it is how long another server took, its disk and its clients included.
        let dynamic = request.kind == Kind::Dynamic;
        let service = if dynamic { request.service } else { Nanos::ZERO };
        let task = Task {
            job,
            target: request.target,
            step: CpuStep::Connect,
            dynamic,
            computed: false,
            bytes: request.size_bytes,
            extra: service,
        };
        if self.params.tells_hits > 0 {
            self.hits.resize(self.hits.len().max(job as usize + 1), None);
            self.hits[job as usize] = None;
        }
        let costs = &self.costs;
        let cached = task.dynamic && self.params.cached_results > 0 && task.bytes > 0;
        let service = if cached { Nanos::ZERO } else { service };
        let alone = costs.connect + service + costs.transmit(request.size_bytes) + costs.teardown;
        let node = &mut self.nodes[backend.index()];
        if node.cpu.is_none() {
            self.run(backend.0, task, context);
        } else {
            node.cpu_queue.push_back(task);
        }
        alone
    }

    fn set_speed(&mut self, backend: BackendId, speed: f64) -> bool {
        self.nodes[backend.index()].slowness = 1.0 / speed;
        true
    }

    fn set_memory(&mut self, backend: BackendId, bytes: u64) -> bool {
        let cache = &mut self.caches[backend.index()];
        if let Some(global) = &mut self.global_memory {
            global.failed(&mut **cache, backend.0);
        }
        *cache = CacheConfig { capacity_bytes: bytes, ..self.cache }.build();
        true
    }

    #[inline]
    fn handle(&mut self, event: ModelEvent, context: &mut ModelContext<'_>) {
        if event.epoch != self.nodes[usize::from(event.backend)].epoch {
            return;
        }
        match event.kind {
            CPU => self.cpu_done(event.backend, context),
            _ => self.disk_done(event.backend, event.unit, context),
        }
    }

    fn fail(&mut self, backend: BackendId, now: Time) {
        let node = &mut self.nodes[backend.index()];
        node.cpu_busy.stop(now);
        let stopped = |disk: &Disk| {
            let mut busy = disk.busy;
            busy.stop(now);
            Disk { busy, ..Disk::default() }
        };
        *node = LardBackend {
            disks: node.disks.iter().map(stopped).collect(),
            epoch: node.epoch + 1,
            cpu_busy: node.cpu_busy,
            read_count: node.read_count,
            joined_count: node.joined_count,
            slowness: node.slowness,
            ..LardBackend::new(0)
        };
        let cache = &mut self.caches[backend.index()];
        if let Some(global) = &mut self.global_memory {
            global.failed(&mut **cache, backend.0);
        }
        cache.clear();
    }

    fn usage(&self, backend: BackendId, now: Time) -> Usage {
        let node = &self.nodes[backend.index()];
        let disk = node.disks.iter().fold(Nanos::ZERO, |sum, disk| sum + disk.busy.until(now));
        Usage { reads: node.read_count, joined: node.joined_count, cpu: node.cpu_busy.until(now), disk }
    }

    fn disks(&self) -> u32 {
        self.params.disks
    }

    fn told_hit(&self, job: JobId) -> Option<bool> {
        self.hits.get(job as usize).copied().flatten()
    }

    fn restart_usage(&mut self, now: Time) {
        for node in &mut self.nodes {
            node.cpu_busy.restart(now);
            node.disks.iter_mut().for_each(|disk| disk.busy.restart(now));
            (node.read_count, node.joined_count) = (0, 0);
        }
    }
}
