//! How many requests a back-end may have at once.

use super::{BackendId, Cluster, ClusterView, Counted};
use crate::weight::RelativeLoad;

impl ClusterView {
    /// The most requests of this front-end that `b` may have at once; `None` where it has no limit.
    #[must_use]
    pub fn most_requests(&self, b: BackendId) -> Option<u32> {
        self.most.get(b.index()).copied().filter(|most| *most < u32::MAX)
    }

    /// Whether `b` has as many requests as it may have.
    #[must_use]
    #[inline]
    pub fn is_full(&self, b: BackendId) -> bool {
        self.most.get(b.index()).is_some_and(|most| self.counted[b.index()].own >= *most)
    }

    /// Whether some back-end that would take requests is full.
    #[inline]
    pub(crate) fn any_full(&self) -> bool {
        self.full > 0
    }

    /// Whether there are back-ends that would take requests, and all of them are full.
    #[must_use]
    #[inline]
    pub fn all_full(&self) -> bool {
        self.full > 0 && self.full == self.eligible
    }

    /// What orders `b`, which takes requests, among the others.
    pub(super) fn relative_now(&self, b: BackendId) -> u32 {
        let Counted { load, weight, .. } = self.counted[b.index()];
        if self.is_full(b) { RelativeLoad::INELIGIBLE } else { RelativeLoad::of(load, weight) }
    }
}

impl Cluster {
    /// Sets how many requests of this front-end `b` may have at once; `None` for as many as come. While it is full, no policy
    /// chooses it; as with those that failed a request, the membership stays as it is.
    pub fn set_most_requests(&mut self, b: BackendId, most: Option<u32>) {
        if self.view.most.is_empty() {
            self.view.most = vec![u32::MAX; self.view.len()];
        }
        self.view.most[b.index()] = most.unwrap_or(u32::MAX);
        if self.view.most.iter().all(|most| *most == u32::MAX) {
            self.view.most = Vec::new();
        }
        self.refresh();
    }

    /// A request was counted at `b`, where back-ends have limits.
    #[inline(never)]
    pub(super) fn perhaps_full(&mut self, b: BackendId) {
        let reached = self.view.counted[b.index()].own == self.view.most[b.index()];
        if reached && self.view.takes_requests(b) {
            self.view.relative.set(b.index(), RelativeLoad::INELIGIBLE);
            self.view.full += 1;
        }
    }

    /// A request of `b` has ended, where back-ends have limits.
    #[inline(never)]
    pub(super) fn perhaps_free(&mut self, b: BackendId) {
        let was_full = self.view.counted[b.index()].own + 1 == self.view.most[b.index()];
        if was_full && self.view.takes_requests(b) {
            self.view.relative.set(b.index(), self.view.relative_now(b));
            self.view.full -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Health;
    use crate::weight::Weight;

    const A: BackendId = BackendId(0);
    const B: BackendId = BackendId(1);

    fn state(cluster: &Cluster) -> (Option<BackendId>, bool, usize) {
        (cluster.least_loaded(), cluster.all_full(), cluster.eligible())
    }

    #[test]
    fn a_full_one_is_left_out_until_a_request_of_it_ends() {
        let mut cluster = Cluster::new(2);
        cluster.set_most_requests(A, Some(1));
        cluster.assign(A);
        assert_eq!(state(&cluster), (Some(B), false, 2));
        assert!(cluster.is_full(A) && !cluster.is_eligible(A) && !cluster.is_full(B));
        cluster.set_most_requests(B, Some(2));
        cluster.assign(B);
        cluster.assign(B);
        assert_eq!(state(&cluster), (None, true, 2));
        // One that stays with its connection comes all the same.
        cluster.assign(A);
        cluster.complete(A);
        assert_eq!(state(&cluster), (None, true, 2));
        cluster.complete(A);
        assert_eq!(state(&cluster), (Some(A), false, 2));
        cluster.set_most_requests(B, None);
        assert_eq!((cluster.most_requests(A), cluster.most_requests(B)), (Some(1), None));
        assert!(cluster.is_eligible(B));
        cluster.set_most_requests(A, None);
        assert!(cluster.most.is_empty());
    }

    #[test]
    fn membership_changes_while_one_is_full() {
        let mut cluster = Cluster::new(2);
        cluster.set_most_requests(A, Some(1));
        cluster.assign(A);
        cluster.set_health(A, Health::Down);
        assert_eq!((cluster.full, cluster.all_full()), (0, false));
        cluster.complete(A);
        assert_eq!(cluster.full, 0);
        cluster.assign(A);
        cluster.set_health(A, Health::Up);
        cluster.set_health(B, Health::Draining);
        assert_eq!(state(&cluster), (None, true, 1));
        // Excluding it changes nothing.
        assert!(!cluster.exclude(&[A]));
        cluster.set_weight(A, Weight::ZERO);
        assert_eq!(state(&cluster), (None, false, 0));
        cluster.complete(A);
        let c = cluster.join(Weight::ONE, 7);
        assert_eq!(cluster.most_requests(c), None);
        // Who gets the index of one that has left has no limit.
        cluster.set_health(A, Health::Down);
        cluster.leave(A);
        assert_eq!((cluster.join(Weight::ONE, 9), cluster.most_requests(A)), (A, None));
    }

    #[test]
    fn of_the_others_one_that_failed_the_request_is_better_than_a_full_one() {
        let mut cluster = Cluster::new(2);
        cluster.set_most_requests(A, Some(1));
        cluster.assign(A);
        assert!(!cluster.exclude(&[B]), "no other one is eligible");
        assert_eq!(cluster.least_loaded(), Some(B));
        cluster.readmit(&[A, B]);
        assert!(!cluster.is_eligible(A));
    }
}
