//! Loads: the front-end's own requests, and what it is told of others.

use super::{BackendId, Cluster, ClusterView};
use crate::weight::RelativeLoad;

impl ClusterView {
    /// A load that every back-end which takes new requests has at least: the least of these loads where all weights are 1, a little less
    /// where they are equal otherwise, else 0.
    #[inline]
    pub(crate) fn least_load(&self) -> u32 {
        let relative = self.relative.least();
        if self.eligible_weight == (self.eligible as u64) << 8 && self.uniform {
            return relative >> 8;
        }
        let weight = if self.uniform { self.eligible_weight / self.eligible.max(1) as u64 } else { 0 };
        ((u64::from(relative) * weight) >> 16).min(u64::from(relative)) as u32
    }
}

impl Cluster {
    /// Counts a request assigned to `b`.
    #[inline]
    pub fn assign(&mut self, b: BackendId) {
        let counted = &mut self.view.counted[b.index()];
        counted.own += 1;
        counted.load += self.step;
        let relative = RelativeLoad::of(counted.load, counted.weight);
        self.view.total_own_load += 1;
        self.view.total_load += u64::from(self.step);
        self.view.relative.set_unless(RelativeLoad::INELIGIBLE, b.index(), relative);
        if !self.view.most.is_empty() {
            self.perhaps_full(b);
        }
    }

    /// Counts a request of `b` as completed.
    ///
    /// # Panics
    /// When `b` has no request: every assignment is completed exactly once.
    #[inline]
    pub fn complete(&mut self, b: BackendId) {
        let counted = &mut self.view.counted[b.index()];
        counted.own = counted.own.checked_sub(1).expect("a request completes exactly once");
        counted.load -= self.step;
        let relative = RelativeLoad::of(counted.load, counted.weight);
        self.view.total_own_load -= 1;
        self.view.total_load -= u64::from(self.step);
        self.view.relative.set_unless(RelativeLoad::INELIGIBLE, b.index(), relative);
        if !self.view.most.is_empty() {
            self.perhaps_free(b);
        }
    }

    /// Load information came: `b` has `load` requests, those of this front-end included. Until the next report the load that policies
    /// see changes with this front-end's own requests. It is never below their number, so that nobody attracts requests by
    /// telling too little, and never above [`Cluster::MOST_LOAD`].
    pub fn report(&mut self, b: BackendId, load: u32) {
        let counted = &mut self.view.counted[b.index()];
        let load = load.min(Self::MOST_LOAD);
        let load = if self.step == 0 { load } else { load.max(counted.own) };
        let before = std::mem::replace(&mut counted.load, load);
        let relative = RelativeLoad::of(load, counted.weight);
        self.view.total_load = self.view.total_load - u64::from(before) + u64::from(load);
        self.view.relative.set_unless(RelativeLoad::INELIGIBLE, b.index(), relative);
    }

    /// From now on only [`Cluster::report`] changes the load that policies see: what a front-end assigns between two reports does
    /// not count. For the simulation of such systems.
    pub fn count_reports_only(&mut self) {
        self.step = 0;
        for b in self.view.ids() {
            self.report(b, 0);
        }
    }
}
