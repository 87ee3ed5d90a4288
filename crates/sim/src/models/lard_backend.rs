//! What a back-end of the LARD study is doing: its CPU, its disks and the reads under way.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_policy::Nanos;

use crate::model::{Busy, JobId};

/// What the CPU does for a request until it waits or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CpuStep {
    /// Establish the connection and look the file up.
    Connect,
    /// Send `bytes`; tear down if these are the last.
    Send { last: bool },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    pub(super) job: JobId,
    pub(super) target: u32,
    pub(super) step: CpuStep,
    /// Computed on demand, not from the cache.
    pub(super) dynamic: bool,
    /// Its result was computed, and is kept when it is done.
    pub(super) computed: bool,
    pub(super) bytes: u64,
    /// CPU time on top of the next step: a service time of the trace, or a copy from another back-end's memory.
    pub(super) extra: Nanos,
}

#[derive(Debug, Default)]
pub(super) struct FileRead {
    pub(super) target: u32,
    pub(super) size_bytes: u64,
    pub(super) read_bytes: u64,
    /// Bytes of the block under way.
    pub(super) block_bytes: u64,
    /// Waiting requests, each with the bytes it still needs: never more than are still to be read.
    pub(super) waiters: Vec<(JobId, u64)>,
}

#[derive(Debug, Default)]
pub(super) struct Disk {
    pub(super) queue: VecDeque<u32>,
    pub(super) reading: Option<u32>,
    pub(super) busy: Busy,
}

pub(super) struct LardBackend {
    /// What every span of CPU and disks is multiplied by.
    pub(super) slowness: f64,
    pub(super) cpu_queue: VecDeque<Task>,
    pub(super) cpu: Option<Task>,
    pub(super) disks: Vec<Disk>,
    pub(super) reads: Vec<FileRead>,
    pub(super) free_reads: Vec<u32>,
    /// Reads under way by target. Looked up only, never iterated.
    pub(super) reading: HashMap<u32, u32, FixedState>,
    pub(super) epoch: u32,
    pub(super) cpu_busy: Busy,
    pub(super) read_count: u64,
    pub(super) joined_count: u64,
}

impl LardBackend {
    /// Idle, at its own speed, with so many disks.
    pub(super) fn new(disks: u32) -> Self {
        Self {
            slowness: 1.0,
            cpu_queue: VecDeque::new(),
            cpu: None,
            disks: (0..disks).map(|_| Disk::default()).collect(),
            reads: Vec::new(),
            free_reads: Vec::new(),
            reading: HashMap::default(),
            epoch: 0,
            cpu_busy: Busy::default(),
            read_count: 0,
            joined_count: 0,
        }
    }

    /// How long what takes `span` at full speed takes here.
    #[inline]
    pub(super) fn slowed(&self, span: Nanos) -> Nanos {
        if self.slowness == 1.0 { span } else { span.scaled(self.slowness) }
    }
}

/// The disk of the file with this rank: each round of as many files as there are disks gives one to each of them, and begins at a disk
/// that nothing but the round's number decides. If all began at the first, policies that take turns would send all files of a back-end to
/// one of its disks, where there are as many disks as back-ends.
pub(super) fn disk_of(rank: u32, disks: u32) -> u32 {
    let (round, place) = (rank / disks, rank % disks);
    // The finalizer of MurmurHash3.
    let mixed = (round ^ round >> 16).wrapping_mul(0x85eb_ca6b);
    let mixed = (mixed ^ mixed >> 13).wrapping_mul(0xc2b2_ae35);
    ((mixed ^ mixed >> 16) % disks + place) % disks
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rounds_give_a_file_to_each_disk_and_turns_meet_all_disks() {
        for disks in [1, 2, 7, 8, 64] {
            let of = |ranks: &mut dyn Iterator<Item = u32>| {
                ranks.map(|rank| disk_of(rank, disks)).collect::<BTreeSet<u32>>()
            };
            for round in [0, 1, 77, u32::MAX / disks - 1] {
                assert_eq!(of(&mut (round * disks..(round + 1) * disks)).len(), disks as usize);
            }
            // Those of one back-end of as many as there are disks.
            for backend in 0..disks {
                let ranks = &mut (0..20 * disks).map(|turn| turn * disks + backend);
                assert_eq!(of(ranks).len(), disks as usize, "{disks} disks, back-end {backend}");
            }
        }
    }

    #[test]
    fn a_slow_one_takes_longer_and_one_at_full_speed_exactly_as_long() {
        let mut backend = LardBackend::new(1);
        let span = Nanos::new((1 << 53) + 1);
        assert_eq!(backend.slowed(span), span, "not a bit is lost");
        backend.slowness = 2.5;
        assert_eq!(backend.slowed(Nanos::new(1_000)), Nanos::new(2_500));
    }
}
