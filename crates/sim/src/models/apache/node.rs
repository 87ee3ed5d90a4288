//! A back-end: its CPU, disk, processes and memory, and the connections that wait for a process.

use std::collections::VecDeque;

use plimsoll_cache::Cache;
use plimsoll_policy::{Nanos, SniffedKind, Time};

use super::connections::ConnectionId;
use super::cpu::{CreditCpu, Discipline};
use super::page_disk::PageDisk;
use super::params::ApacheParams;
use super::processes::{DAEMON, PARENT, ProcessPool};
use crate::config::CacheConfig;
use crate::model::Usage;

/// The small request by which a front-end measures a back-end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FrontEndProbe {
    /// The outstanding one was sent then.
    pub(super) sent: Option<Time>,
    /// It was refused, and has to be sent again.
    pub(super) refused: bool,
    /// How long the last one took.
    pub(super) took: Option<Nanos>,
}

impl FrontEndProbe {
    /// The forward metric at `now`: an outstanding one counts with its age.
    pub(super) fn time(&self, now: Time) -> Option<Nanos> {
        self.sent.map(|sent| now.since(sent)).or(self.took)
    }
}

/// What processes are at, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AtWork {
    pub(super) at_disk: u32,
    pub(super) serving_static: u32,
    pub(super) serving_dynamic: u32,
}

impl AtWork {
    /// Those that answer requests of this kind, which do not wait for the disk.
    pub(super) fn serving(&mut self, kind: SniffedKind) -> &mut u32 {
        match kind {
            SniffedKind::Dynamic => &mut self.serving_dynamic,
            _ => &mut self.serving_static,
        }
    }
}

/// See the module's documentation.
pub(super) struct ApacheNode {
    pub(super) cpu: CreditCpu,
    pub(super) disk: PageDisk,
    pub(super) pool: ProcessPool,
    pub(super) cache: Box<dyn Cache>,
    /// Connections without a process, in the order in which they get one.
    pub(super) pending: VecDeque<ConnectionId>,
    /// Connections that are not established yet, where no process holds those.
    pub(super) coming: u32,
    pub(super) at_work: AtWork,
    pub(super) probe: FrontEndProbe,
    /// CPU time, in nanoseconds, of measurements that the daemon has not begun.
    pub(super) daemon_owes: u64,
    pub(super) daemon_works: bool,
    pub(super) down: bool,
    /// Time that a unit of work takes.
    pub(super) slowness: f64,
    /// Counts failures: ends of reads before one are void.
    pub(super) epoch: u32,
    pub(super) forks: u64,
    counted_from: Time,
}

impl ApacheNode {
    pub(super) fn new(params: &ApacheParams, switch: u64, cache: &CacheConfig) -> Self {
        let mut node = Self {
            cpu: CreditCpu::new(Discipline::of(params.scheduler), params.slice_s, switch),
            disk: PageDisk::default(),
            pool: ProcessPool::new(params),
            cache: cache.build(),
            pending: VecDeque::new(),
            coming: 0,
            at_work: AtWork::default(),
            probe: FrontEndProbe::default(),
            daemon_owes: 0,
            daemon_works: false,
            down: false,
            slowness: 1.0,
            epoch: 0,
            forks: 0,
            counted_from: Time::ZERO,
        };
        node.boot(params);
        node
    }

    /// Starts the processes.
    fn boot(&mut self, params: &ApacheParams) {
        self.cpu.enlist(PARENT);
        self.cpu.enlist(DAEMON);
        for _ in 0..params.start_servers.min(params.max_clients) {
            let p = self.pool.add();
            self.cpu.enlist(p);
        }
    }

    /// Fails at `now` and starts again: everything that it had is gone.
    pub(super) fn fail(&mut self, params: &ApacheParams, now: Time) {
        self.cpu.stop(now);
        self.disk.stop(now);
        self.pool = ProcessPool::new(params);
        self.cache.clear();
        self.pending.clear();
        (self.coming, self.at_work, self.probe) = (0, AtWork::default(), FrontEndProbe::default());
        (self.daemon_owes, self.daemon_works) = (0, false);
        self.epoch += 1;
        self.boot(params);
    }

    /// How long work takes at its speed.
    #[inline]
    pub(super) fn takes(&self, work: u64) -> u64 {
        if self.slowness == 1.0 { work } else { (work as f64 * self.slowness + 0.5) as u64 }
    }

    pub(super) fn usage(&self, now: Time) -> Usage {
        Usage {
            reads: self.disk.read_count,
            joined: self.disk.joined_count,
            // What the kernel has to do is counted ahead.
            cpu: self.cpu.used(now).min(now.since(self.counted_from)),
            disk: self.disk.used(now),
        }
    }

    pub(super) fn restart_usage(&mut self, now: Time) {
        self.cpu.restart_usage(now);
        self.disk.restart_usage(now);
        (self.forks, self.counted_from) = (0, now);
    }
}
