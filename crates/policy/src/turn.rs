//! The least loaded back-end, ties in turn.
//!
//! Where much of a cluster is idle most choices are ties, and to give them all to one back-end would fill that one's cache
//! alone.

use crate::cluster::{BackendId, ClusterView};

/// Whose turn it is.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    next: usize,
}

impl Turn {
    /// Among the back-ends with the least load per weight the first one after the last one [taken](Self::take); `None` when
    /// none takes new requests.
    #[inline]
    pub(crate) fn least_loaded(&self, view: &ClusterView) -> Option<BackendId> {
        view.least_loaded_from(if self.next < view.len() { self.next } else { 0 })
    }

    /// This one has had its turn.
    #[inline]
    pub(crate) fn take(&mut self, backend: BackendId) {
        self.next = backend.index() + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Health};

    #[test]
    fn ties_go_round_and_load_decides_before_them() {
        let mut cluster = Cluster::new(3);
        let mut turn = Turn::default();
        let mut choose = |cluster: &Cluster| {
            let chosen = turn.least_loaded(cluster).unwrap();
            turn.take(chosen);
            chosen.index()
        };
        assert_eq!([choose(&cluster), choose(&cluster), choose(&cluster), choose(&cluster)], [0, 1, 2, 0]);
        cluster.assign(BackendId(1));
        assert_eq!([choose(&cluster), choose(&cluster)], [2, 0]);
        cluster.set_health(BackendId(2), Health::Down);
        assert_eq!([choose(&cluster), choose(&cluster)], [0, 0]);
        assert_eq!(Turn::default().least_loaded(&Cluster::new(0)), None);
    }
}
