//! Load information: what is told of back-ends.

use std::sync::Arc;

use plimsoll_policy::{BackendId, LoadReport};

use super::Dispatch;

impl Dispatch {
    /// A back-end has told its load.
    pub(crate) fn report(self: &Arc<Self>, report: &LoadReport) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        state.told(report, now);
        self.serve_waiting(state, now);
    }

    /// These have so many requests of other partitions, besides those of this one.
    pub(super) fn others_have(self: &Arc<Self>, elsewhere: &[(BackendId, u32)]) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        for &(backend, others) in elsewhere {
            let view = state.core.view();
            let load = view.own_load(backend).saturating_add(others);
            if view.load(backend) != load && !view.has_left(backend) {
                state.core.report(&LoadReport::of(backend, load), now);
            }
        }
    }

    /// A back-end is silent, or not to be believed: from now on its load is the mean of the others', so that it neither attracts
    /// requests nor is left without. Returns whether that was a change.
    pub(crate) fn report_mean(self: &Arc<Self>, backend: BackendId) -> bool {
        let mut state = self.lock();
        let Some(load) = state.core.view().neutral_load(backend) else { return false };
        let is_change = state.silent.insert(backend) || state.core.view().load(backend) != load;
        let now = self.now(&mut state);
        state.core.report(&LoadReport::of(backend, load), now);
        self.serve_waiting(state, now);
        is_change
    }
}
