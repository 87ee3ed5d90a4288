//! What is measured at back-ends' machines, for policies that take it.

use plimsoll_policy::{HostMetrics, Nanos};

use super::Dispatch;
use super::partitioned::PartitionedDispatch;

impl Dispatch {
    /// How often the policy wants the back-ends to be measured; `None` for never.
    pub(crate) fn metrics_interval(&self) -> Option<Nanos> {
        self.lock().core.metrics_interval()
    }

    /// A back-end was measured.
    fn host_metrics(&self, metrics: &HostMetrics) {
        let mut state = self.lock();
        let now = self.now(&mut state);
        if metrics.backend.index() < state.core.view().len() {
            state.core.host_metrics(metrics, now);
        }
    }
}

impl PartitionedDispatch {
    /// A back-end was measured: tells all policies.
    pub(crate) fn host_metrics(&self, metrics: &HostMetrics) {
        self.parts().iter().for_each(|part| part.host_metrics(metrics));
    }
}
