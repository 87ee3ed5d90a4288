//! Join-shortest-queue with ties broken at random: the fallback of several policies.

use crate::cluster::{BackendId, ClusterView};
use crate::rng::Rng;

/// The back-end with the least load per weight; among several, each with the same probability. `None` when none takes new
/// requests.
pub(crate) fn shortest_queue(view: &ClusterView, rng: &mut Rng) -> Option<BackendId> {
    let first = view.least_loaded()?;
    let least = view.relative_load(first);
    let ties = view.ids().skip(first.index() + 1).filter(|&b| view.relative_load(b) == least);
    let (mut chosen, mut seen) = (first, 1);
    for tied in ties {
        seen += 1;
        if rng.below(seen) == 0 {
            chosen = tied;
        }
    }
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Health};

    #[test]
    fn ties_are_drawn_evenly() {
        let mut cluster = Cluster::new(6);
        cluster.assign(BackendId(1));
        cluster.set_health(BackendId(4), Health::Down);
        let mut rng = Rng::new(9, 0);
        let mut got = [0u32; 6];
        (0..40_000).for_each(|_| got[shortest_queue(&cluster, &mut rng).unwrap().index()] += 1);
        assert_eq!((got[1], got[4]), (0, 0));
        // Five standard errors are 433.
        assert!([0, 2, 3, 5].iter().all(|&b: &usize| got[b].abs_diff(10_000) < 433), "{got:?}");
        assert_eq!(shortest_queue(&Cluster::new(0), &mut rng), None);
    }
}
