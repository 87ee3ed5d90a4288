//! Loads that the core asks for.

use super::*;
use crate::rng::Rng;

#[test]
fn a_policy_that_does_not_poll_chooses_from_loads_that_the_core_asked_for() {
    let choice = Box::new(crate::policies::least_connections::LeastConnections);
    let mut core = Core::new(choice, Cluster::new(5), fixed(9, 9));
    core.set_inquiries(Some(Inquiries { size: 2, seed: 3 }));
    for b in 0..5 {
        core.report(&LoadReport::of(BackendId(b), 9), at(1));
    }
    let Offered::Poll(asked) = core.offer(&request(0), at(1)) else { panic!("nobody is asked") };
    let &[first, second] = asked.as_slice() else { panic!("{asked:?}") };
    assert_ne!(first, second);
    let answers = [PollAnswer::of(first, 4), PollAnswer::of(second, 2)];
    assert_eq!(core.answer(0, &answers, at(2)).unwrap().backend(), Some(second));
    assert_eq!((core.view().load(first), core.view().load(second)), (4, 3));
    // Without answers it chooses from what it knew.
    core.offer(&request(1), at(3));
    assert_eq!(core.answer(1, &[], at(3)).unwrap().backend(), Some(second));
    // A load below the own count is raised to it.
    core.offer(&request(2), at(4));
    let assigned = assigned(core.answer(2, &[PollAnswer::of(second, 0)], at(4)).unwrap());
    assert_eq!((assigned.backend, core.view().load(second)), (second, 3));
}

#[test]
fn each_set_of_candidates_is_as_likely_as_the_others() {
    let mut cluster = Cluster::new(6);
    cluster.set_health(BackendId(1), Health::Down);
    let mut rng = Rng::new(1, 2);
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..10_000 {
        let mut drawn = random_candidates(&cluster, 3, &mut rng).as_slice().to_vec();
        drawn.sort_unstable();
        *seen.entry(drawn).or_insert(0u32) += 1;
    }
    // 10 sets of 3 out of 5; five standard errors.
    assert_eq!(seen.len(), 10);
    assert!(seen.values().all(|n| n.abs_diff(1_000) < 150), "{seen:?}");
    assert_eq!(random_candidates(&cluster, 8, &mut rng).as_slice().len(), 5);
}

/// Or the same one would always be asked last, and be the freshest that is known.
#[test]
fn each_order_of_candidates_is_as_likely_as_the_others() {
    let mut rng = Rng::new(1, 2);
    for (size, orders) in [(2, 2), (3, 6)] {
        let cluster = Cluster::new(size);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            let drawn = random_candidates(&cluster, size, &mut rng);
            *seen.entry(drawn.as_slice().to_vec()).or_insert(0u32) += 1;
        }
        // Five standard errors of 3,000 of 6,000 are 194, of 1,000 less.
        assert_eq!(seen.len(), orders, "{seen:?}");
        assert!(seen.values().all(|n| n.abs_diff(6_000 / orders as u32) < 200), "{seen:?}");
    }
}
