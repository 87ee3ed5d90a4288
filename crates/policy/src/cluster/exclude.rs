//! Back-ends that one choice leaves out.

use super::{BackendId, Cluster};
use crate::weight::RelativeLoad;

impl Cluster {
    /// Makes `ids` ineligible until [`Cluster::readmit`], unless no other back-end is eligible. Returns
    /// whether it did. The membership stays as it is, and with it all that policies derive from it: tables,
    /// number and weight of the back-ends that take requests, [`ClusterView::generation`].
    pub(crate) fn exclude(&mut self, ids: &[BackendId]) -> bool {
        let mut excluded = 0;
        for &b in ids {
            if self.view.is_eligible(b) {
                self.view.relative.set(b.index(), RelativeLoad::INELIGIBLE);
                excluded += 1;
            }
        }
        if excluded == self.view.eligible - self.view.full {
            self.readmit(ids);
            return false;
        }
        excluded > 0
    }

    /// Ends [`Cluster::exclude`] of these.
    pub(crate) fn readmit(&mut self, ids: &[BackendId]) {
        let len = self.view.len();
        for &b in ids.iter().filter(|b| b.index() < len) {
            if self.view.takes_requests(b) {
                self.view.relative.set(b.index(), self.view.relative_now(b));
            }
        }
    }
}
