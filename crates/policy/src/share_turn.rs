//! Turns in proportion to weights, among the back-ends that have not their share of the load yet.
//!
//! ```text
//! full       <- the least of (load + 1) / weight: what the next request makes of a back-end at least
//! candidates <- those with load / weight < full
//! credit     <- credit + weight, for each candidate
//! n          <- the candidate with the most credit
//! credit[n]  <- credit[n] - the weights of all candidates
//! ```
//!
//! With equal weights the candidates are those with the least load. With others, the least load per unit of weight alone would
//! give half of the requests that come one by one to a back-end of a tenth of the weight: it is idle, too.
//!
//! Citation: the credits are those of nginx's smooth weighted round robin.

use crate::cluster::{BackendId, ClusterView};

/// What the back-ends are owed, in steps of weight.
#[derive(Debug, Default)]
pub(crate) struct ShareTurn {
    credits: Vec<i64>,
}

impl ShareTurn {
    /// The back-end whose turn it is; `None` when none takes new requests.
    pub(crate) fn next(&mut self, view: &ClusterView) -> Option<BackendId> {
        self.credits.resize(view.len(), 0);
        let at = |b: BackendId| (u64::from(view.load(b)), u64::from(view.weight(b).steps()));
        // Fractions are compared by products.
        let (full, of) = view
            .eligible_ids()
            .map(at)
            .map(|(load, weight)| (load + 1, weight))
            .reduce(|least, other| if other.0 * least.1 < least.0 * other.1 { other } else { least })?;
        let all = i64::try_from(view.eligible_weight_steps()).unwrap_or(i64::MAX / 4);
        let (mut chosen, mut sum): (Option<BackendId>, i64) = (None, 0);
        for b in view.eligible_ids() {
            let (load, weight) = at(b);
            if load * of >= full * weight {
                continue;
            }
            let credit = &mut self.credits[b.index()];
            // What is left of other weights, or of another back-end at this index, does not count for longer than a round.
            *credit = (*credit).clamp(-all, all) + weight as i64;
            sum += weight as i64;
            let credit = *credit;
            if chosen.is_none_or(|n| self.credits[n.index()] < credit) {
                chosen = Some(b);
            }
        }
        let chosen = chosen?;
        self.credits[chosen.index()] -= sum;
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Health};
    use crate::weight::Weight;

    fn cluster(weights: &[f64]) -> Cluster {
        let mut cluster = Cluster::new(weights.len());
        for (index, weight) in weights.iter().enumerate() {
            cluster.set_weight(BackendId::new(index), Weight::new(*weight).unwrap());
        }
        cluster
    }

    /// How many requests each gets of 1,000 of which so many are under way.
    fn shares(weights: &[f64], under_way: usize) -> Vec<usize> {
        let (mut cluster, mut turn) = (cluster(weights), ShareTurn::default());
        let (mut counts, mut queue) = (vec![0; weights.len()], std::collections::VecDeque::new());
        for _ in 0..1000 {
            if queue.len() == under_way {
                cluster.complete(queue.pop_front().unwrap());
            }
            let chosen = turn.next(&cluster).unwrap();
            cluster.assign(chosen);
            queue.push_back(chosen);
            counts[chosen.index()] += 1;
        }
        counts
    }

    #[test]
    fn shares_are_those_of_the_weights_however_much_is_under_way() {
        for under_way in [1, 2, 3, 5, 10, 40, 200] {
            let counts = shares(&[9.0, 1.0], under_way);
            assert!((870..=930).contains(&counts[0]), "{under_way}: {counts:?}");
            let counts = shares(&[1.0, 2.0, 5.0], under_way);
            // A few at once cannot be divided as weights are, and load decides before credit.
            let expected = [125, 250, 625];
            let is_near = counts.iter().zip(expected).all(|(n, e)| (e..=3 * e).contains(&(2 * n)));
            assert!(is_near && (under_way > 1 || counts == expected), "{under_way}: {counts:?}");
        }
        // A target of weight 0 beside others, as SRV records have it.
        assert!(shares(&[1.0, 1.0 / 256.0], 1)[1] <= 4);
    }

    #[test]
    fn credit_of_other_weights_is_soon_gone() {
        let mut cluster = cluster(&[1000.0, 1.0]);
        let mut turn = ShareTurn::default();
        for _ in 0..501 {
            turn.next(&cluster).unwrap();
        }
        for (index, weight) in [1.0, 2.0].into_iter().enumerate() {
            cluster.set_weight(BackendId::new(index), Weight::new(weight).unwrap());
        }
        let counts = (0..30).filter(|_| turn.next(&cluster) == Some(BackendId(1))).count();
        assert!((17..=23).contains(&counts), "{counts}");
    }

    #[test]
    fn load_decides_before_credit() {
        let mut cluster = cluster(&[2.0, 1.0]);
        let mut turn = ShareTurn::default();
        for _ in 0..4 {
            cluster.assign(BackendId(0));
        }
        assert_eq!(turn.next(&cluster), Some(BackendId(1)));
        cluster.set_health(BackendId(1), Health::Down);
        assert_eq!(turn.next(&cluster), Some(BackendId(0)));
        cluster.set_health(BackendId(0), Health::Down);
        assert_eq!(turn.next(&cluster), None);
    }

    #[test]
    fn equal_weights_take_turns_among_the_least_loaded() {
        let mut cluster = cluster(&[3.0, 3.0, 3.0]);
        let mut turn = ShareTurn::default();
        let mut next = |cluster: &Cluster| turn.next(cluster).unwrap().index();
        assert_eq!([next(&cluster), next(&cluster), next(&cluster), next(&cluster)], [0, 1, 2, 0]);
        cluster.assign(BackendId(1));
        assert!((0..9).all(|_| next(&cluster) != 1));
    }
}
