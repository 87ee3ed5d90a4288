//! The requests in progress, by number.

use plimsoll_policy::{Assigned, BackendId, Nanos, Time};

use crate::model::JobId;

/// A request in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) assigned: Assigned,
    /// The front-end that assigned it.
    pub(crate) front_end: u16,
    /// Requests of its back-end when it began, itself included.
    pub(crate) load: u32,
    pub(crate) arrived: Time,
    /// Time it would take alone with the document cached.
    pub(crate) alone: Nanos,
    pub(crate) size_bytes: u64,
}

/// A slab: numbers are reused, lowest recently freed first.
#[derive(Default)]
pub(crate) struct Jobs {
    slots: Vec<Option<Job>>,
    free: Vec<JobId>,
}

impl Jobs {
    #[inline]
    pub(crate) fn insert(&mut self, job: Job) -> JobId {
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = Some(job);
            return id;
        }
        self.slots.push(Some(job));
        (self.slots.len() - 1) as JobId
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: JobId) -> &mut Job {
        self.slots[id as usize].as_mut().expect("the request is in progress")
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: JobId) -> Job {
        self.free.push(id);
        self.slots[id as usize].take().expect("a request ends once")
    }

    /// Removes all requests of `b`, in order of their numbers.
    pub(crate) fn take_of(&mut self, b: BackendId) -> Vec<Job> {
        let ids: Vec<JobId> = (0..self.slots.len() as JobId)
            .filter(|&id| self.slots[id as usize].is_some_and(|job| job.assigned.backend == b))
            .collect();
        ids.into_iter().map(|id| self.remove(id)).collect()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }
}
