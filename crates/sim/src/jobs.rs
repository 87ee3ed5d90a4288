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
///
/// A place that is free keeps what it had: as an `Option`, whose parts overlap, a request was slow to write and read.
#[derive(Default)]
pub(crate) struct Jobs {
    places: Vec<(Job, bool)>,
    free: Vec<JobId>,
}

impl Jobs {
    #[inline]
    pub(crate) fn insert(&mut self, job: Job) -> JobId {
        if let Some(id) = self.free.pop() {
            self.places[id as usize] = (job, true);
            return id;
        }
        self.places.push((job, true));
        (self.places.len() - 1) as JobId
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: JobId) -> &mut Job {
        let (job, in_progress) = &mut self.places[id as usize];
        debug_assert!(*in_progress, "the request is in progress");
        job
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: JobId) -> Job {
        self.free.push(id);
        let (job, in_progress) = &mut self.places[id as usize];
        assert!(std::mem::replace(in_progress, false), "a request ends once");
        *job
    }

    /// Removes all requests of `b`, in order of their numbers.
    pub(crate) fn take_of(&mut self, b: BackendId) -> Vec<Job> {
        let is_of =
            |&id: &JobId| matches!(self.places[id as usize], (job, true) if job.assigned.backend == b);
        let ids: Vec<JobId> = (0..self.places.len() as JobId).filter(is_of).collect();
        ids.into_iter().map(|id| self.remove(id)).collect()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }
}
