//! A request that is sent on trial to a back-end that was ejected.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::ejection::TrialEnd;
use crate::shared::FrontEndShared;

/// How long a trial waits for the back-end at most: its client must not pay much for it.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A trial under way. Dropped without an end, it has told nothing about the back-end.
pub(crate) struct BackendTrial {
    shared: Arc<FrontEndShared>,
    pub(crate) backend: Arc<Backend>,
    number: u64,
    end: TrialEnd,
}

impl BackendTrial {
    /// Begins one with a request for this partition, where a back-end that holds it is due for it.
    pub(crate) fn begin(shared: &Arc<FrontEndShared>, partition: u16) -> Option<Self> {
        let (backend, number) = shared.begin_trial(partition, Instant::now())?;
        Some(Self { shared: Arc::clone(shared), backend, number, end: TrialEnd::Unknown })
    }

    /// Ends it.
    pub(crate) fn end(mut self, end: TrialEnd) {
        self.end = end;
    }
}

impl Drop for BackendTrial {
    fn drop(&mut self) {
        self.shared.end_trial(&self.backend, self.number, self.end, Instant::now());
    }
}

/// How long a request waits for a back-end: this long, but not on trial.
pub(crate) fn wait(timeout: Duration, on_trial: bool) -> Duration {
    if on_trial { timeout.min(LONGEST_WAIT) } else { timeout }
}
