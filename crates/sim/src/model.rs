//! The interface between engine and back-end models.

use plimsoll_policy::{BackendId, Nanos, Time};

use crate::event_queue::EventQueue;
use crate::workload::SimRequest;

/// Number of a request in progress; reused after it ends.
pub type JobId = u32;

/// Something that a model scheduled for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelEvent {
    /// The back-end.
    pub backend: u16,
    /// The model's own code for the event.
    pub kind: u8,
    /// Which unit of the back-end, e.g. a disk.
    pub unit: u8,
    /// Number of failures of the back-end when this was scheduled. Events from before a failure are void.
    pub epoch: u32,
}

/// Busy time of a unit (a CPU, a disk). Work is booked when it begins; queries count only what is done by the
/// given time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Busy {
    booked: Nanos,
    ends: Time,
}

impl Busy {
    /// Work begins at `now` and takes `span`.
    #[inline]
    pub(crate) fn begin(&mut self, now: Time, span: Nanos) {
        self.booked += span;
        self.ends = now + span;
    }

    /// When the work under way, or the last one, ends.
    #[inline]
    pub(crate) fn ends(&self) -> Time {
        self.ends
    }

    /// Time busy up to `now`.
    pub(crate) fn until(&self, now: Time) -> Nanos {
        self.booked - self.ends.since(now)
    }

    /// Aborts the work under way at `now`.
    pub(crate) fn stop(&mut self, now: Time) {
        *self = Self { booked: self.until(now), ends: now };
    }

    /// Restarts the count at `now`; work under way continues.
    pub(crate) fn restart(&mut self, now: Time) {
        self.booked = self.ends.since(now);
    }
}

/// What a model may read and change when it is called.
pub struct ModelContext<'a> {
    /// The simulated time.
    pub now: Time,
    /// Future events.
    pub queue: &'a mut EventQueue<ModelEvent>,
    /// Requests that have been answered, to be filled by the model.
    pub done: &'a mut Vec<JobId>,
}

/// What a back-end has used since the start of the measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Disk reads begun.
    pub reads: u64,
    /// Requests that joined a read under way.
    pub joined: u64,
    /// CPU time.
    pub cpu: Nanos,
    /// Disk time, summed over the disks.
    pub disk: Nanos,
}

/// How back-ends serve requests. One object models all of them.
pub trait Model {
    /// `job` was assigned to `backend`. Returns the time that the request would take alone on an idle back-end with
    /// the document cached.
    fn start(
        &mut self,
        backend: BackendId,
        job: JobId,
        request: &SimRequest,
        context: &mut ModelContext<'_>,
    ) -> Nanos;

    /// Requests that `backend` has at `now`, those in service included: what it says when it is asked. `None` where the front-ends' counts
    /// of what they have sent say the same.
    fn queue_length(&self, backend: BackendId, now: Time) -> Option<u32> {
        let _ = (backend, now);
        None
    }

    /// `backend` is to spend `cpu` on an inquiry or announcement at `now`. Returns what it spends: nothing in a model without such a cost.
    fn inquired(&mut self, backend: BackendId, cpu: Nanos, now: Time) -> Nanos {
        let _ = (backend, cpu, now);
        Nanos::ZERO
    }

    /// From now on `backend` works at `speed` times its speed. Returns whether the model has speeds.
    fn set_speed(&mut self, backend: BackendId, speed: f64) -> bool {
        let _ = (backend, speed);
        false
    }

    /// From now on `backend` has a memory cache of so many bytes, which is empty at first. Returns whether the model has memories.
    fn set_memory(&mut self, backend: BackendId, bytes: u64) -> bool {
        let _ = (backend, bytes);
        false
    }

    /// Whether the request that is answered now was found in the cache, where back-ends tell so, as by `X-Cache`.
    fn told_hit(&self, job: JobId) -> Option<bool> {
        let _ = job;
        None
    }

    /// A scheduled event is due.
    fn handle(&mut self, event: ModelEvent, context: &mut ModelContext<'_>);

    /// `backend` failed at `now`: its requests are lost and its memory is empty.
    fn fail(&mut self, backend: BackendId, now: Time);

    /// The use of `backend` up to `now`, including the finished part of work under way.
    fn usage(&self, backend: BackendId, now: Time) -> Usage;

    /// Disks per back-end; 0 where the model has no disks and no cache.
    fn disks(&self) -> u32;

    /// Starts the count of [`Model::usage`] again at `now`.
    fn restart_usage(&mut self, now: Time);
}
