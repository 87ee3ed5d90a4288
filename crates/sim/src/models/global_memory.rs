//! The back-ends' memories joined into one (WRR/GMS of the LARD study), loosely after Feeley et al., SOSP
//! 1995.
//!
//! Assumptions, generous as the paper's (section 4.2): the directory of who holds what is always right and free; moving
//! a file to another memory and choosing whom to displace is free; fetching a file costs only CPU time of the receiver
//! (`remote_copy_per_512_bytes_us`). In particular:
//! - A miss that another memory can answer copies the file from there, never from disk. If the other back-end held it
//!   only on behalf of the cluster, the copy moves; if it serves requests from it, both keep one.
//! - A file that leaves a memory as the last copy in the cluster is forwarded to the back-end whose next victim was
//!   requested longest ago, if that was before the file itself was last requested. What it displaces is dropped.

use plimsoll_cache::Cache;
use smallvec::SmallVec;

use crate::workload::Targets;

/// A copy of a file in some memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MemoryCopy {
    on: u16,
    /// Held on behalf of the cluster, not for requests of this back-end.
    forwarded: bool,
}

/// The directory.
pub(super) struct GlobalMemory {
    copies: Vec<SmallVec<[MemoryCopy; 2]>>,
    last_request: Vec<u64>,
    clock: u64,
    displaced: Vec<u64>,
    /// Back-ends that failed and have not served since: nothing is forwarded to them.
    down: Vec<u16>,
}

impl GlobalMemory {
    pub(super) fn new(targets: usize) -> Self {
        Self {
            copies: vec![SmallVec::new(); targets],
            last_request: vec![0; targets],
            clock: 0,
            displaced: Vec::new(),
            down: Vec::new(),
        }
    }

    /// Notes a request for `target`. On a hit in the memory of `on`, that copy now serves its own requests.
    pub(super) fn touch(&mut self, target: u32, on: Option<u16>) {
        self.clock += 1;
        self.last_request[target as usize] = self.clock;
        if let Some(copy) = self.copies[target as usize].iter_mut().find(|c| Some(c.on) == on) {
            copy.forwarded = false;
        }
    }

    /// Whether a memory other than that of `b` can supply `target`. A copy held for the cluster then moves.
    pub(super) fn fetch(&mut self, caches: &mut [Box<dyn Cache>], b: u16, target: u32) -> bool {
        let copies = &mut self.copies[target as usize];
        let Some(at) = copies.iter().position(|c| c.on != b) else {
            return false;
        };
        if copies[at].forwarded {
            caches[usize::from(copies[at].on)].remove(u64::from(target));
            copies.remove(at);
        }
        true
    }

    /// Notes that `b` holds `target` for its own requests.
    pub(super) fn stored(&mut self, b: u16, target: u32) {
        self.down.retain(|d| *d != b);
        let copies = &mut self.copies[target as usize];
        copies.retain(|c| c.on != b);
        copies.push(MemoryCopy { on: b, forwarded: false });
    }

    /// Notes that these files left the memory of `b`, and forwards last copies.
    pub(super) fn evicted(&mut self, caches: &mut [Box<dyn Cache>], b: u16, gone: &[u64], targets: &Targets) {
        for &target in gone {
            let copies = &mut self.copies[target as usize];
            copies.retain(|c| c.on != b);
            if copies.is_empty() {
                self.forward(caches, b, target as u32, targets.size_bytes[target as usize]);
            }
        }
    }

    fn forward(&mut self, caches: &mut [Box<dyn Cache>], from: u16, target: u32, size_bytes: u64) {
        let mut oldest: Option<(u64, u16)> = None;
        let takes = |on: u16| on != from && !self.down.contains(&on);
        for (on, cache) in (0u16..).zip(caches.iter_mut()).filter(|(on, _)| takes(*on)) {
            let room = cache.capacity_bytes() - cache.used_bytes() >= size_bytes;
            let victim = if room { None } else { cache.victim() };
            let age = victim.map_or(0, |v| self.last_request[v as usize]);
            if oldest.is_none_or(|least| (age, on) < least) {
                oldest = Some((age, on));
            }
        }
        let Some((_, on)) = oldest.filter(|&(age, _)| age < self.last_request[target as usize]) else {
            return;
        };
        let mut displaced = std::mem::take(&mut self.displaced);
        if caches[usize::from(on)].insert(u64::from(target), size_bytes, &mut displaced) {
            self.copies[target as usize].push(MemoryCopy { on, forwarded: true });
        }
        for gone in displaced.drain(..) {
            self.copies[gone as usize].retain(|c| c.on != on);
        }
        self.displaced = displaced;
    }

    /// `b` failed: everything in its memory is gone.
    pub(super) fn failed(&mut self, cache: &mut dyn Cache, b: u16) {
        self.down.push(b);
        while let Some(victim) = cache.victim() {
            cache.remove(victim);
            self.copies[victim as usize].retain(|c| c.on != b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_policy::TargetId;

    fn world() -> (GlobalMemory, Vec<Box<dyn Cache>>, Targets) {
        let targets = Targets::new((0..4).map(TargetId).collect(), vec![60; 4], &[]);
        let caches = (0..2).map(|_| plimsoll_cache::build("lru", 100, None).unwrap()).collect();
        (GlobalMemory::new(4), caches, targets)
    }

    fn load(
        global: &mut GlobalMemory,
        caches: &mut [Box<dyn Cache>],
        targets: &Targets,
        b: u16,
        target: u32,
    ) {
        let mut gone = Vec::new();
        global.touch(target, None);
        caches[usize::from(b)].insert(u64::from(target), 60, &mut gone);
        global.stored(b, target);
        global.evicted(caches, b, &gone, targets);
    }

    #[test]
    fn the_last_copy_is_forwarded_to_room_and_moves_back_on_demand() {
        let (mut global, mut caches, targets) = world();
        load(&mut global, &mut caches, &targets, 0, 0);
        load(&mut global, &mut caches, &targets, 0, 1); // evicts 0, which goes to back-end 1
        assert!(caches[1].contains(0));
        assert!(global.fetch(&mut caches, 0, 0));
        assert!(!caches[1].contains(0), "a copy held for the cluster moves");
    }

    #[test]
    fn a_copy_in_use_is_duplicated() {
        let (mut global, mut caches, targets) = world();
        load(&mut global, &mut caches, &targets, 1, 0);
        assert!(global.fetch(&mut caches, 0, 0));
        assert!(caches[1].contains(0));
        load(&mut global, &mut caches, &targets, 0, 0);
        load(&mut global, &mut caches, &targets, 0, 2); // evicts 0 here, but back-end 1 has it
        assert!(caches[1].contains(0) && !caches[1].contains(2));
    }

    #[test]
    fn an_older_file_does_not_displace_a_younger_one() {
        let (mut global, mut caches, targets) = world();
        load(&mut global, &mut caches, &targets, 0, 0);
        load(&mut global, &mut caches, &targets, 1, 1);
        load(&mut global, &mut caches, &targets, 0, 2); // 0 is older than 1: dropped
        assert!(!caches[1].contains(0) && caches[1].contains(1));
        assert!(!global.fetch(&mut caches, 1, 0));
    }
}
