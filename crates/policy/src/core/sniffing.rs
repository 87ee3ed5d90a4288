//! What a layer-4 front-end sees pass, and what is measured at back-ends.

use super::{Core, Witness};
use crate::sniffed::{HostMetrics, SniffedRequest};
use crate::time::{Nanos, Time};

impl<W: Witness> Core<W> {
    /// A request passed on a connection whose back-end was chosen before. A policy that does not sniff does not hear of it.
    #[inline]
    pub fn sniffed(&mut self, sniffed: &SniffedRequest, now: Time) {
        if let Some(sniffs) = self.policy.as_sniffs() {
            sniffs.on_sniffed(sniffed, &self.cluster, now);
        }
        self.witness.sniffed(sniffed, now);
    }

    /// How often the policy wants the back-ends to be measured; `None` for never.
    #[must_use]
    pub fn metrics_interval(&self) -> Option<Nanos> {
        self.policy.metrics_interval()
    }

    /// A back-end was measured. A policy that takes no metrics does not hear of it.
    pub fn host_metrics(&mut self, metrics: &HostMetrics, now: Time) {
        if let Some(takes) = self.policy.as_takes_metrics() {
            takes.on_metrics(metrics, &self.cluster, now);
        }
        self.witness.host_metrics(metrics, now);
    }
}
