//! Documents to be read from one disk, first come first served, each once for all that wait for it.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::model::JobId;

/// A document that is to be read.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// The document.
    pub(super) target: u32,
    /// Its size in bytes.
    pub(super) size_bytes: u64,
    /// Who waits for it, with the bytes that are to be sent.
    pub(super) waiters: Vec<(JobId, u64)>,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct ReadQueue {
    reads: Vec<Read>,
    free: Vec<u32>,
    /// The first is being read.
    order: VecDeque<u32>,
    /// Looked up only, never iterated.
    by_target: HashMap<u32, u32, FixedState>,
}

impl ReadQueue {
    /// The document that is being read.
    pub(super) fn current(&self) -> Option<&Read> {
        self.order.front().map(|&slot| &self.reads[slot as usize])
    }

    /// `job` waits for `target` too, if that is being read or about to be.
    pub(super) fn join(&mut self, target: u32, job: JobId, bytes: u64) -> bool {
        let Some(&slot) = self.by_target.get(&target) else { return false };
        self.reads[slot as usize].waiters.push((job, bytes));
        true
    }

    /// `target` is to be read, and `job` waits for it.
    pub(super) fn push(&mut self, target: u32, size_bytes: u64, job: JobId, bytes: u64) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.reads.push(Read::default());
            (self.reads.len() - 1) as u32
        });
        let read = &mut self.reads[slot as usize];
        (read.target, read.size_bytes) = (target, size_bytes);
        read.waiters.push((job, bytes));
        self.by_target.insert(target, slot);
        self.order.push_back(slot);
    }

    /// The current document has been read; the next one is current. To be given back with [`ReadQueue::give_back`].
    pub(super) fn finish(&mut self) -> Option<(u32, Read)> {
        let slot = self.order.pop_front()?;
        let read = std::mem::take(&mut self.reads[slot as usize]);
        self.by_target.remove(&read.target);
        Some((slot, read))
    }

    /// The memory of a finished read serves another.
    pub(super) fn give_back(&mut self, slot: u32, mut read: Read) {
        read.waiters.clear();
        self.reads[slot as usize] = read;
        self.free.push(slot);
    }
}
