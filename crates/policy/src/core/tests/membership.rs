//! Back-ends that leave, and others that get their indices.

use super::*;

#[test]
fn an_index_is_given_to_another_back_end_once_it_is_free() {
    let mut core = core(3, fixed(9, 9));
    let first = assigned(core.offer(&request(0), at(1)));
    assert!(!core.leave(B0, at(2)), "it has a request");
    let mut reading = first;
    core.stalled(&mut reading, at(3));
    assert!(core.leave(B0, at(4)) && core.leave(B2, at(4)) && !core.leave(B0, at(4)));
    assert_eq!(
        (core.view().eligible(), core.view().has_left(B0), core.view().health(B0)),
        (1, true, Health::Down)
    );
    core.set_health(B0, Health::Up, at(5));
    assert_eq!(core.view().eligible(), 1, "nobody is there to come up");
    let weight = Weight::new(2.0).unwrap();
    assert_eq!(core.join("fourth", 44, weight, at(6)), Ok(B0));
    assert_eq!(
        (core.view().key(B0), core.view().weight(B0), core.view().backend_generation(B0)),
        (44, weight, 1)
    );
    // The client of the first one ends now; the newcomer and the policy are not concerned.
    core.complete(&reading, ANSWERED, at(7));
    assert_eq!((core.view().load(B0), stat(&core, "outstanding")), (0, 1.0));
    assert_eq!(core.join("fifth", 55, Weight::ONE, at(8)), Ok(B2));
    assert_eq!(core.join("sixth", 66, Weight::ONE, at(9)), Ok(BackendId(3)));
}

#[test]
fn joins_without_end_need_no_more_indices_than_there_are_back_ends() {
    let mut core = Core::new(Box::<Everything>::default(), Cluster::new(2), AdmissionControl::UNLIMITED);
    for n in 0..200_000u64 {
        let b = core.join("x", n, Weight::ONE, at(n)).unwrap();
        assert!(b.index() < 3 && core.leave(b, at(n)));
    }
    assert_eq!(core.view().len(), 3);
}

#[test]
fn a_full_cluster_takes_no_further_back_end() {
    let mut core =
        Core::new(Box::<RoundRobin>::default(), Cluster::new(Cluster::MOST), AdmissionControl::UNLIMITED);
    assert_eq!(core.join("more", 1, Weight::ONE, at(1)), Err(ClusterFull));
    assert!(core.leave(BackendId(7), at(2)));
    assert_eq!(core.join("more", 1, Weight::ONE, at(3)), Ok(BackendId(7)));
}
