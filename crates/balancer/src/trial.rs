//! A request that is sent on trial to a back-end that was ejected.

use std::sync::Arc;

use crate::backend::Backend;
use crate::ejection::TrialEnd;
use crate::shared::FrontEndShared;

/// A trial under way. Dropped without an end, it has told nothing about the back-end.
pub(crate) struct BackendTrial {
    shared: Arc<FrontEndShared>,
    pub(crate) backend: Arc<Backend>,
    end: TrialEnd,
}

impl BackendTrial {
    /// Begins one, where a back-end is due for it.
    pub(crate) fn begin(shared: &Arc<FrontEndShared>) -> Option<Self> {
        let backend = shared.begin_trial()?;
        Some(Self { shared: Arc::clone(shared), backend, end: TrialEnd::Unknown })
    }

    /// Ends it.
    pub(crate) fn end(mut self, end: TrialEnd) {
        self.end = end;
    }
}

impl Drop for BackendTrial {
    fn drop(&mut self) {
        self.shared.end_trial(&self.backend, self.end);
    }
}
