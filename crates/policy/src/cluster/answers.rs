//! Answers of back-ends that need not be asked.

use super::ClusterView;
use crate::decision::{Candidates, PollAnswer};

impl ClusterView {
    /// What these would answer as far as is known here: their loads as this view has them. One of which the view has never heard is
    /// left out.
    pub fn answers(&self, backends: Candidates) -> impl Iterator<Item = PollAnswer> + '_ {
        let ids = (0..backends.as_slice().len()).map(move |k| backends.as_slice()[k]);
        ids.filter(|b| b.index() < self.len()).map(|b| PollAnswer::of(b, self.load(b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BackendId, Cluster};

    #[test]
    fn loads_with_what_was_told_and_nobody_beyond_the_last() {
        let mut cluster = Cluster::new(3);
        cluster.report(BackendId(2), 7);
        cluster.assign(BackendId(2));
        let answers: Vec<PollAnswer> = cluster.answers(Candidates::new([2, 3, 0].map(BackendId))).collect();
        assert_eq!(answers, [PollAnswer::of(BackendId(2), 8), PollAnswer::of(BackendId(0), 0)]);
    }
}
