//! What a core knows: the back-ends of its partition, its share of the admission limit, and loads that come for nothing.

use plimsoll_policy::{AdmissionControl, AdmissionLimit, BackendId, Health, Time};

use super::{Several, Source};
use crate::arrivals::Arrived;

impl Several<'_> {
    /// To a core, back-ends that do not host its partition are down.
    pub(super) fn partition(&mut self) {
        let partitions = &self.setup.partitions;
        for (number, core) in self.cores.iter_mut().enumerate() {
            for b in (0..core.view().len()).map(BackendId::new) {
                if !partitions.hosts(number % partitions.count(), b) {
                    core.set_health(b, Health::Down, Time::ZERO);
                }
            }
        }
    }

    pub(super) fn partition_of(&self, arrived: &Arrived) -> u16 {
        let target = self.targets.id[arrived.request.target as usize];
        self.setup.partitions.of_target(target) as u16
    }

    /// Each core lets its share of the admission limit in; a closed loop is limited where requests arrive.
    pub(super) fn share_limit(&mut self, now: Time) {
        let partitions = self.setup.partitions.count() as u64;
        let cores = self.cores.len() as u64;
        // A limit that follows from the back-ends is already that of a partition.
        let count = if matches!(self.limit, AdmissionLimit::Fixed(_)) { cores } else { cores / partitions };
        for core in &mut self.cores {
            let limit = match self.limit.requests(core.view()) {
                _ if self.closed => AdmissionLimit::Unlimited,
                u64::MAX => AdmissionLimit::Unlimited,
                limit => AdmissionLimit::Fixed(limit.div_ceil(count).max(1)),
            };
            // In a closed loop, what waits for a partition without a back-end would keep others out.
            let queue = if self.closed && partitions > 1 { 0 } else { core.admission().queue };
            core.set_admission(AdmissionControl { limit, queue }, now);
        }
    }

    /// Where all loads are known, this core knows them now.
    #[inline]
    pub(super) fn refresh(&mut self, core: usize) {
        match self.source {
            Source::Exact => self.refresh_all(core),
            Source::Own if self.overlap => self.refresh_own(core),
            _ => {}
        }
    }

    #[inline(never)]
    fn refresh_all(&mut self, core: usize) {
        let core = &mut self.cores[core];
        for (b, &load) in self.backends.loads().iter().enumerate() {
            let b = BackendId::new(b);
            if core.view().load(b) != load && !core.view().has_left(b) {
                core.see(b, load);
            }
        }
    }

    /// A front-end knows of back-ends of several partitions what all its cores have assigned.
    #[inline(never)]
    fn refresh_own(&mut self, core: usize) {
        let partitions = self.setup.partitions.count();
        let first = core - core % partitions;
        for b in (0..self.backends.loads().len()).map(BackendId::new) {
            let own = |core: &plimsoll_policy::Core| core.view().own_load(b);
            let load = self.cores[first..first + partitions].iter().map(own).sum();
            let core = &mut self.cores[core];
            if core.view().load(b) != load {
                core.see(b, load);
            }
        }
    }
}
