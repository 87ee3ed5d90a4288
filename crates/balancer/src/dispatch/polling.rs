//! Load information: what is told of back-ends.

use std::sync::Arc;

use plimsoll_policy::{BackendId, LoadReport};

use super::Dispatch;

impl Dispatch {
    /// A back-end has told its load.
    pub(crate) fn report(self: &Arc<Self>, report: &LoadReport) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        state.core.report(report, now);
        self.serve_waiting(state, now);
    }

    /// A back-end is silent, or not to be believed: from now on its load is the mean of the others', so that it neither attracts
    /// requests nor is left without. Returns whether that was a change.
    pub(crate) fn report_mean(self: &Arc<Self>, backend: BackendId) -> bool {
        let mut state = self.lock();
        let view = state.core.view();
        if backend.index() >= view.len() || view.has_left(backend) {
            return false;
        }
        let (mut sum, mut count) = (0_u64, 0_u64);
        for other in view.eligible_ids().filter(|&other| other != backend) {
            sum += u64::from(view.load(other));
            count += 1;
        }
        let Some(mean) = (sum + count / 2).checked_div(count) else { return false };
        // No more than a `u32` each, so neither is the mean.
        let load = u32::try_from(mean).unwrap_or(u32::MAX).max(view.own_load(backend));
        if view.load(backend) == load {
            return false;
        }
        let now = self.now(&mut state);
        state.core.report(&LoadReport::of(backend, load), now);
        self.serve_waiting(state, now);
        true
    }
}
