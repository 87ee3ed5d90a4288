//! Weighted round robin of the Linux Virtual Server: by integer weights, those with most first.
//!
//! Source: W. Zhang, "Linux virtual servers for scalable network services", Ottawa Linux Symposium 2000; Hyun et al., section 3.1.
//!
//! ```text
//! loop
//!     i <- the next back-end in turn
//!     if the turn is over:  current <- current - 1;  if current = 0:  current <- the highest weight
//!     if weight[i] >= current:  choose i
//! ```
//!
//! These weights say what a back-end can take *now*. Where back-ends differ in what they can take at all, one that has half of the
//! highest such capacity (its weight in the cluster) is left out of every other turn.
//!
//! A back-end whose weight is highest by n gets n connections before the second one gets any. So with weights far above the number
//! of connections of a period, and a new turn in each period, only the differences of weights matter.

use crate::cluster::{BackendId, ClusterView};
use crate::decision::PolicyTable;

/// See the module's documentation.
#[derive(Debug, Clone, Default)]
pub struct WeightedTurn {
    weights: Vec<u32>,
    /// The back-end chosen last.
    at: Option<usize>,
    current: u32,
    /// Part of a turn that each back-end has not had yet, where capacities differ.
    credit: Vec<f64>,
}

/// Turns without anybody chosen, after which there is nobody to choose: enough for a capacity of one 256th.
const MOST_TURNS: u32 = 300;

fn highest_capacity(view: &ClusterView) -> f64 {
    view.eligible_ids().map(|b| view.weight(b).as_f64()).fold(0.0, f64::max)
}

impl WeightedTurn {
    /// Sets the weights, by back-end. `restart` begins a new turn with the highest weight; without it the turn goes on.
    pub fn set(&mut self, weights: Vec<u32>, restart: bool) {
        self.weights = weights;
        if restart {
            (self.at, self.current) = (None, 0);
        }
    }

    /// The weights, for display.
    #[must_use]
    pub fn table(&self) -> PolicyTable {
        let row = |(index, &weight): (usize, &u32)| vec![index as f64, f64::from(weight)];
        let rows = self.weights.iter().enumerate().map(row).collect();
        PolicyTable { name: "weights", columns: &["backend", "weight"], rows }
    }

    /// A back-end that has no weight yet has the highest one, and 1 where no back-end has any.
    fn weight(&self, index: usize) -> u32 {
        self.weights.get(index).copied().unwrap_or_else(|| self.weights.iter().copied().max().unwrap_or(1))
    }

    /// The next back-end among those that take new requests; `None` when there are none, or all have weight 0.
    pub fn next(&mut self, view: &ClusterView) -> Option<BackendId> {
        // The rest of this turn, and whole ones until somebody has both weight and credit.
        let highest = if view.is_uniform() { 0.0 } else { highest_capacity(view) };
        for _ in 0..MOST_TURNS {
            let from = self.at.map_or(0, |at| at + 1);
            for index in from..view.len() {
                let fits = self.current > 0 && self.weight(index) >= self.current;
                if fits && view.is_eligible(BackendId::new(index)) && self.has_credit(index, highest, view) {
                    self.at = Some(index);
                    return Some(BackendId::new(index));
                }
            }
            self.at = None;
            self.current = self.next_weight(view);
            if self.current == 0 {
                return None;
            }
        }
        None
    }

    /// Whether it is a back-end's turn as often as its part of the `highest` capacity says; 0 where all are the same.
    fn has_credit(&mut self, index: usize, highest: f64, view: &ClusterView) -> bool {
        if highest == 0.0 {
            return true;
        }
        self.credit.resize(view.len(), 0.0);
        let credit = &mut self.credit[index];
        *credit += view.weight(BackendId::new(index)).as_f64() / highest;
        let has = *credit >= 1.0;
        *credit -= f64::from(u8::from(has));
        has
    }

    /// The weight that the next turn asks for: turns in which nobody would be chosen are left out.
    fn next_weight(&self, view: &ClusterView) -> u32 {
        let weights = || view.eligible_ids().map(|b| self.weight(b.index()));
        let below = self.current.saturating_sub(1);
        weights()
            .map(|weight| weight.min(below))
            .max()
            .filter(|&next| next > 0)
            .unwrap_or_else(|| weights().max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Health};

    fn turns(turn: &mut WeightedTurn, view: &ClusterView, count: usize) -> Vec<u16> {
        (0..count).filter_map(|_| turn.next(view)).map(|b| b.0).collect()
    }

    #[test]
    fn the_highest_weight_first() {
        let cluster = Cluster::new(3);
        let mut turn = WeightedTurn::default();
        turn.set(vec![4, 3, 2], true);
        // LVS's own example: AABABCABC.
        assert_eq!(turns(&mut turn, &cluster, 9), [0, 0, 1, 0, 1, 2, 0, 1, 2]);
        assert_eq!(turns(&mut turn, &cluster, 3), [0, 0, 1]);
    }

    #[test]
    fn a_restart_begins_with_the_highest() {
        let cluster = Cluster::new(2);
        let mut turn = WeightedTurn::default();
        for restart in [true, false] {
            turn.set(vec![10, 8], true);
            assert_eq!(turns(&mut turn, &cluster, 3), [0, 0, 0]);
            turn.set(vec![8, 10], restart);
            let next = if restart { [1, 1, 0] } else { [1, 0, 1] };
            assert_eq!(turns(&mut turn, &cluster, 3), next);
        }
    }

    #[test]
    fn half_of_the_capacity_is_every_other_turn() {
        let mut cluster = Cluster::new(2);
        cluster.set_weight(BackendId(0), crate::weight::Weight::new(2.0).unwrap());
        let mut turn = WeightedTurn::default();
        assert_eq!(turns(&mut turn, &cluster, 6), [0, 0, 1, 0, 0, 1]);
        // Only one of little capacity is left.
        cluster.set_health(BackendId(0), Health::Down);
        cluster.set_weight(BackendId(1), crate::weight::Weight::new(0.004).unwrap());
        assert_eq!(turns(&mut turn, &cluster, 2), [1, 1]);
    }

    #[test]
    fn without_weights_in_turn_and_never_who_takes_none() {
        let mut cluster = Cluster::new(3);
        let mut turn = WeightedTurn::default();
        assert_eq!(turns(&mut turn, &cluster, 4), [0, 1, 2, 0]);
        turn.set(vec![100_000, 3, 3], true);
        cluster.set_health(BackendId(0), Health::Down);
        assert_eq!(turns(&mut turn, &cluster, 4), [1, 2, 1, 2]);
        // One that joins has the highest weight, and so its turn in each round.
        cluster.join(crate::weight::Weight::ONE, 9);
        assert_eq!(turns(&mut turn, &cluster, 3), [3, 1, 2]);
        turn.set(vec![1, 3, 3], true);
        assert_eq!(turns(&mut turn, &cluster, 3), [1, 2, 3]);
        turn.set(vec![0; 4], true);
        assert_eq!(turn.next(&cluster), None);
        (0..4).for_each(|b| cluster.set_health(BackendId(b), Health::Down));
        turn.set(vec![1; 4], true);
        assert_eq!(turn.next(&cluster), None);
    }
}
