//! Read access to dispatch from outside.

use plimsoll_decisions::ShadowScore;
use plimsoll_policy::{ClusterView, LruMap, TargetId};

use super::journal::{Journal, LogState};
use super::member::Member;
use super::state::DispatchCounts;

/// Read access to dispatch under its lock.
pub(crate) struct Inspection<'a> {
    pub(crate) view: &'a ClusterView,
    pub(crate) policy: &'a dyn plimsoll_policy::Policy,
    pub(crate) members: &'a [Member],
    pub(crate) admission_limit: u64,
    pub(crate) waiting: usize,
    pub(crate) counts: DispatchCounts,
    pub(super) sizes: &'a LruMap<u64>,
    pub(super) journal: &'a Journal,
}

impl Inspection<'_> {
    /// Size in bytes of the last response to `target`.
    pub(crate) fn known_size_bytes(&self, target: TargetId) -> Option<u64> {
        self.sizes.peek(target).copied()
    }

    /// Scores of live and shadow policy, if there is one.
    pub(crate) fn shadow(&self) -> Option<ShadowScore> {
        self.journal.shadow_score()
    }

    /// The state of the decision log.
    pub(crate) fn log_state(&self) -> LogState {
        self.journal.log_state()
    }
}
