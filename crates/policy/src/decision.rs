//! The inputs and decisions of policies.

use crate::cluster::BackendId;
use crate::request::{Outcome, TargetId};
use crate::time::Nanos;

/// At most `MOST` back-ends, in a list that needs no heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackendList<const MOST: usize> {
    ids: [BackendId; MOST],
    len: u8,
}

/// The back-ends that a policy wants to ask for their load.
pub type Candidates = BackendList<8>;

impl<const MOST: usize> BackendList<MOST> {
    /// How many it can hold.
    pub const MOST: usize = MOST;
    /// Nobody.
    pub const NONE: Self = Self { ids: [BackendId(0); MOST], len: 0 };

    /// Takes the first [`BackendList::MOST`] of `ids`.
    #[inline]
    pub fn new(ids: impl IntoIterator<Item = BackendId>) -> Self {
        let mut out = Self::NONE;
        for (slot, id) in out.ids.iter_mut().zip(ids) {
            *slot = id;
            out.len += 1;
        }
        out
    }

    /// Adds `id`, unless it is there already or there are [`BackendList::MOST`].
    #[inline]
    pub fn push(&mut self, id: BackendId) {
        let len = usize::from(self.len);
        if len < MOST && !self.as_slice().contains(&id) {
            self.ids[len] = id;
            self.len += 1;
        }
    }

    /// Adds `id` before that at `at`, or last, unless there are [`BackendList::MOST`].
    #[inline]
    pub(crate) fn insert(&mut self, at: usize, id: BackendId) {
        let len = usize::from(self.len);
        debug_assert!(at <= len);
        if len < MOST && at <= len {
            self.ids.copy_within(at..len, at + 1);
            self.ids[at] = id;
            self.len += 1;
        }
    }

    /// Those that are not in `others`.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self::new(self.as_slice().iter().copied().filter(|id| !others.as_slice().contains(id)))
    }

    /// Its back-ends.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[BackendId] {
        &self.ids[..usize::from(self.len)]
    }
}

/// What a policy decides for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// This back-end answers.
    Assign(BackendId),
    /// Ask these back-ends for their load and come back through [`Polls::on_poll`](crate::Polls::on_poll).
    Poll(Candidates),
    /// The request waits, and is offered again, before later ones, once there is room.
    Wait,
    /// No back-end can take the request.
    Reject,
}

/// A back-end's answer to a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollAnswer {
    /// Who answered.
    pub backend: BackendId,
    /// Its queue length, the request in service included.
    pub load: u32,
    /// Its response times lately of requests that began as one of about `load + 1`, as one does that is sent now; where it tells them.
    pub latency: Option<Nanos>,
}

impl PollAnswer {
    /// The answer of a back-end that tells its load alone.
    #[must_use]
    pub const fn of(backend: BackendId, load: u32) -> Self {
        Self { backend, load, latency: None }
    }
}

/// A request that ended, with what the front-end knows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// What was asked for.
    pub target: TargetId,
    /// The back-end that had it.
    pub backend: BackendId,
    /// How it ended.
    pub outcome: Outcome,
    /// Bytes of the response body, where known.
    pub size_bytes: Option<u64>,
    /// Whether the back-end had the content in its cache, where it told so.
    pub hit: Option<bool>,
    /// Time since the assignment.
    pub response_time: Nanos,
    /// Class of content; 0 for none, and where a decision log tells of it.
    pub class: u16,
}

impl Completion {
    /// The end of a request of which no more is known.
    #[must_use]
    pub const fn of(target: TargetId, backend: BackendId, outcome: Outcome, response_time: Nanos) -> Self {
        Self { target, backend, outcome, size_bytes: None, hit: None, response_time, class: 0 }
    }
}

/// Part of a policy's inner state, for display.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyTable {
    /// Stable name.
    pub name: &'static str,
    /// Names of the columns, with units.
    pub columns: &'static [&'static str],
    /// Rows of as many numbers.
    pub rows: Vec<Vec<f64>>,
}

/// Load information that no request waits for: broadcast, told in a response, or the answer to a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadReport {
    /// Who reports.
    pub backend: BackendId,
    /// Its queue length at the time of sending.
    pub load: u32,
    /// Its response times lately of requests that began as one of about `load + 1`, as one does that is sent now; where it tells them.
    pub latency: Option<Nanos>,
}

impl LoadReport {
    /// The report of a back-end that tells its load alone.
    #[must_use]
    pub const fn of(backend: BackendId, load: u32) -> Self {
        Self { backend, load, latency: None }
    }
}

/// `Assign` for `Some`, `Reject` for `None`.
#[must_use]
#[inline]
pub fn assign_or_reject(backend: Option<BackendId>) -> Decision {
    backend.map_or(Decision::Reject, Decision::Assign)
}
