//! Two different back-ends at random, for policies that take the better one.

use crate::cluster::{BackendId, ClusterView};
use crate::rng::Rng;

/// Draws them.
pub(crate) struct TwoChoices {
    rng: Rng,
    /// The back-ends that take requests, for the view of `generation`.
    eligible: Vec<BackendId>,
    generation: Option<u64>,
}

impl TwoChoices {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self { rng: Rng::new(seed, stream), eligible: Vec::new(), generation: None }
    }

    /// Two different back-ends, each pair in each order with the same probability; twice the same where only one takes requests.
    #[inline]
    pub(crate) fn draw(&mut self, view: &ClusterView) -> Option<(BackendId, BackendId)> {
        if self.generation != Some(view.generation()) {
            self.eligible.clear();
            self.eligible.extend(view.ids_for_tables());
            self.generation = Some(view.generation());
        }
        let n = self.eligible.len() as u64;
        match self.eligible[..] {
            [] => None,
            [only] => Some((only, only)),
            _ => {
                let first = self.rng.below(n);
                let other = (first + 1 + self.rng.below(n - 1)) % n;
                Some((self.eligible[first as usize], self.eligible[other as usize]))
            }
        }
    }
}
