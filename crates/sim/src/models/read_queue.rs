//! The queue of documents to be read from one disk, first come first served. Requests for the same document
//! share one read.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::model::JobId;

/// A document to be read.
#[derive(Debug, Default)]
pub(super) struct QueuedRead {
    /// The document.
    pub(super) target: u32,
    /// Its size in bytes.
    pub(super) size_bytes: u64,
    /// Requests that wait for it, each with the bytes to send.
    pub(super) waiters: Vec<(JobId, u64)>,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct ReadQueue {
    reads: Vec<QueuedRead>,
    free: Vec<u32>,
    /// The first is being read.
    order: VecDeque<u32>,
    /// Looked up only, never iterated.
    by_target: HashMap<u32, u32, FixedState>,
}

impl ReadQueue {
    /// The document that is being read.
    pub(super) fn current(&self) -> Option<&QueuedRead> {
        self.order.front().map(|&slot| &self.reads[slot as usize])
    }

    /// Adds `job` to the read of `target`, if one is under way or queued. Returns whether it did.
    pub(super) fn join(&mut self, target: u32, job: JobId, bytes: u64) -> bool {
        let Some(&slot) = self.by_target.get(&target) else { return false };
        self.reads[slot as usize].waiters.push((job, bytes));
        true
    }

    /// Queues a read of `target`, for which `job` waits.
    pub(super) fn push(&mut self, target: u32, size_bytes: u64, job: JobId, bytes: u64) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.reads.push(QueuedRead::default());
            (self.reads.len() - 1) as u32
        });
        let read = &mut self.reads[slot as usize];
        (read.target, read.size_bytes) = (target, size_bytes);
        read.waiters.push((job, bytes));
        self.by_target.insert(target, slot);
        self.order.push_back(slot);
    }

    /// Removes the current read, which is complete; the next one becomes current. Return its slot with
    /// [`ReadQueue::give_back`].
    pub(super) fn finish(&mut self) -> Option<(u32, QueuedRead)> {
        let slot = self.order.pop_front()?;
        let read = std::mem::take(&mut self.reads[slot as usize]);
        self.by_target.remove(&read.target);
        Some((slot, read))
    }

    /// Recycles the memory of a finished read.
    pub(super) fn give_back(&mut self, slot: u32, mut read: QueuedRead) {
        read.waiters.clear();
        self.reads[slot as usize] = read;
        self.free.push(slot);
    }
}
