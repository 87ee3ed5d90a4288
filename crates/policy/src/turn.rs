//! The least loaded back-end, ties in turn.
//!
//! In a mostly idle cluster most choices are ties; giving them all to one back-end would fill only that one's
//! cache.

use crate::cluster::{BackendId, ClusterView};

/// The back-end whose turn is next.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    next: usize,
}

impl Turn {
    /// The state to save.
    pub(crate) fn word(&self) -> u64 {
        self.next as u64
    }

    /// Restores what [`Turn::word`] returned.
    pub(crate) fn of_word(word: u64) -> Self {
        Self { next: usize::try_from(word).unwrap_or(0) }
    }

    /// Of the back-ends with the least load per weight, the first one after the last one returned; `None`
    /// when none takes new requests.
    #[inline]
    pub(crate) fn next(&mut self, view: &ClusterView) -> Option<BackendId> {
        let chosen = view.least_loaded_from(if self.next < view.len() { self.next } else { 0 })?;
        self.next = chosen.index() + 1;
        Some(chosen)
    }

    /// Like [`Turn::next`], but returns `n`, without advancing the turn, if `n` is itself among the least
    /// loaded: moving would gain nothing.
    pub(crate) fn next_unless(&mut self, n: BackendId, view: &ClusterView) -> Option<BackendId> {
        let least = view.least_loaded()?;
        if view.relative_load(n) == view.relative_load(least) { Some(n) } else { self.next(view) }
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
        let mut next = |cluster: &Cluster| turn.next(cluster).unwrap().index();
        assert_eq!([next(&cluster), next(&cluster), next(&cluster), next(&cluster)], [0, 1, 2, 0]);
        cluster.assign(BackendId(1));
        assert_eq!([next(&cluster), next(&cluster)], [2, 0]);
        cluster.set_health(BackendId(2), Health::Down);
        assert_eq!([next(&cluster), next(&cluster)], [0, 0]);
        assert_eq!(Turn::default().next(&Cluster::new(0)), None);
    }

    #[test]
    fn one_that_is_least_loaded_itself_is_left_alone() {
        let mut cluster = Cluster::new(3);
        let mut turn = Turn::default();
        let mut instead_of = |n, cluster: &Cluster| turn.next_unless(BackendId(n), cluster).unwrap().index();
        assert_eq!([instead_of(2, &cluster), instead_of(1, &cluster)], [2, 1]);
        cluster.assign(BackendId(0));
        assert_eq!([instead_of(0, &cluster), instead_of(0, &cluster), instead_of(1, &cluster)], [1, 2, 1]);
    }
}
