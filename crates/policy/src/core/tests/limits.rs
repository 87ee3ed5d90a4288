//! Back-ends that may have no more requests.

use super::*;

#[test]
fn while_all_are_full_requests_wait_for_the_next_end() {
    let mut core = core(2, fixed(9, 1));
    core.set_most_requests(B0, Some(1), at(0));
    core.set_most_requests(B1, Some(1), at(0));
    let first = assigned(core.offer(&request(0), at(1)));
    let second = assigned(core.offer(&request(1), at(2)));
    assert_ne!(first.backend, second.backend);
    assert!(!core.has_room());
    assert_eq!(core.offer(&request(2), at(3)), Offered::Waits);
    assert_eq!(core.offer(&request(3), at(4)), Offered::Rejected(Rejection::QueueFull));
    assert_eq!(core.start_next(at(5)), None);
    core.complete(&second, ANSWERED, at(6));
    let started = core.start_next(at(6)).unwrap();
    assert_eq!((started.number, started.offered.backend()), (2, Some(second.backend)));
    // Without limits there is room again.
    core.set_most_requests(B0, None, at(7));
    assert!(core.has_room());
}

#[test]
fn one_whose_client_alone_is_waited_for_does_not_count() {
    let mut core = core(1, fixed(9, 9));
    core.set_most_requests(B0, Some(1), at(0));
    let mut slow = assigned(core.offer(&request(0), at(1)));
    core.stalled(&mut slow, at(2));
    assert!(core.has_room());
    let second = assigned(core.offer(&request(1), at(3)));
    core.resumed(&mut slow, at(4));
    core.complete(&second, ANSWERED, at(5));
    assert!(!core.has_room(), "the one that was slow is under way");
    core.complete(&slow, ANSWERED, at(6));
    assert!(core.has_room());
}
