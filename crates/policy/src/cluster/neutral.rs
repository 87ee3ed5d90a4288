//! The load of a back-end that tells none.

use super::{BackendId, ClusterView};

impl ClusterView {
    /// What a back-end counts for of which nothing is known: the mean load of the others that take requests, so that it neither
    /// attracts requests nor is left without; never below this front-end's own count. `None` where there are no others, or `b`
    /// has left.
    #[must_use]
    pub fn neutral_load(&self, b: BackendId) -> Option<u32> {
        if b.index() >= self.len() || self.has_left(b) {
            return None;
        }
        let others = self.eligible_ids().filter(|&other| other != b);
        let (sum, count) = others
            .fold((0, 0), |(sum, count): (u64, u64), other| (sum + u64::from(self.load(other)), count + 1));
        let mean = (sum + count / 2).checked_div(count)?;
        // No load is more than a `u32`, so neither is their mean.
        Some(u32::try_from(mean).unwrap_or(u32::MAX).max(self.own_load(b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Health};

    #[test]
    fn the_mean_of_the_others_that_take_requests_and_never_below_the_own_count() {
        let [a, b, c, d] = [0, 1, 2, 3].map(BackendId);
        let mut cluster = Cluster::new(4);
        for (backend, load) in [(a, 90), (b, 4), (c, 7), (d, 1000)] {
            cluster.report(backend, load);
        }
        cluster.set_health(d, Health::Down);
        assert_eq!(cluster.neutral_load(a), Some(6), "of 4 and 7, rounded up");
        (0..9).for_each(|_| cluster.assign(a));
        assert_eq!(cluster.neutral_load(a), Some(9));
        assert_eq!(cluster.neutral_load(BackendId(4)), None);
        assert_eq!(Cluster::new(1).neutral_load(a), None);
    }
}
