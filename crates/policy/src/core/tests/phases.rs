//! Load that begins or ends at another moment than the request, and choices made ahead.

use super::*;

#[test]
fn load_may_begin_when_the_connection_is_established() {
    let mut core = core(2, fixed(2, 9));
    let connecting = OfferOptions { begins: Phase::Connecting, ..OfferOptions::PLAIN };
    let mut first = assigned(core.offer_with(&request(0), &connecting, at(1)));
    assert_eq!((core.view().total_load(), core.reserved()), (0, 1));
    let second = assigned(core.offer_with(&request(1), &connecting, at(2)));
    assert_eq!(second.backend, B0, "the first is no load yet");
    assert_eq!(core.offer(&request(2), at(3)), Offered::Waits);
    core.established(&mut first, at(4));
    core.established(&mut first, at(4));
    assert_eq!((core.view().load(B0), core.reserved(), first.phase()), (1, 1, Phase::Active));
    // The other client never came.
    core.complete(&second, Ending::FAILED, at(5));
    core.complete(&first, ANSWERED, at(6));
    assert_eq!((core.view().total_load(), core.reserved(), stat(&core, "outstanding")), (0, 0, 0.0));
}

#[test]
fn who_only_reads_is_no_load() {
    let mut core = core(1, fixed(1, 9));
    let mut first = assigned(core.offer(&request(0), at(1)));
    assert_eq!(core.offer(&request(1), at(1)), Offered::Waits);
    core.stalled(&mut first, at(2));
    core.stalled(&mut first, at(2));
    assert_eq!(core.start_next(at(2)).unwrap().offered.backend(), Some(B0));
    assert_eq!(stat(&core, "outstanding"), 2.0, "the policy hears of the end when it comes");
    core.complete(&first, ANSWERED, at(9));
    assert_eq!((core.view().load(B0), stat(&core, "outstanding")), (1, 1.0));
}

#[test]
fn what_goes_on_is_load_again_whatever_the_limit() {
    let mut core = core(1, fixed(1, 9));
    let mut first = assigned(core.offer(&request(0), at(1)));
    core.resumed(&mut first, at(1));
    core.stalled(&mut first, at(2));
    let second = assigned(core.offer(&request(1), at(3)));
    core.resumed(&mut first, at(4));
    core.resumed(&mut first, at(4));
    assert_eq!((core.view().load(B0), first.phase(), core.has_room()), (2, Phase::Active, false));
    core.complete(&second, ANSWERED, at(5));
    core.stalled(&mut first, at(6));
    // Its back-end leaves meanwhile, and another one gets its index.
    core.set_health(B0, Health::Draining, at(7));
    assert!(core.leave(B0, at(7)));
    core.resumed(&mut first, at(8));
    assert_eq!(core.join("next", 5, Weight::ONE, at(9)).unwrap(), B0);
    core.resumed(&mut first, at(10));
    assert_eq!((core.view().load(B0), first.phase()), (0, Phase::Stalled));
    core.complete(&first, ANSWERED, at(11));
    assert_eq!(core.view().load(B0), 0);
}

#[test]
fn a_choice_made_ahead_is_load_until_it_is_taken_or_withdrawn() {
    let mut core = core(2, fixed(3, 9));
    let mut first = core.prepare(0, at(1)).unwrap();
    let second = core.prepare(1, at(1)).unwrap();
    assert_eq!((first.backend, second.backend, core.view().total_load()), (B0, B1, 2));
    assert_eq!(stat(&core, "outstanding"), 0.0, "the policy has been told of no request");
    core.take(&mut first, &Request::of(0, TargetId(77)), at(5));
    assert_eq!((first.target, first.at, stat(&core, "outstanding")), (TargetId(77), at(5), 1.0));
    core.withdraw(second, at(6));
    assert_eq!(core.view().total_load(), 1);
    core.complete(&first, ANSWERED, at(7));
    assert_eq!((core.view().total_load(), stat(&core, "outstanding")), (0, 0.0));
    let full: Vec<Assigned> = (10..13).map_while(|n| core.prepare(n, at(8))).collect();
    assert_eq!((full.len(), core.prepare(13, at(8)), core.waiting()), (3, None, 0));
}

#[test]
fn where_the_policy_asks_back_ends_known_loads_answer_for_a_choice_made_ahead() {
    let spec = crate::find("random_polling").unwrap();
    let params = spec.read(&[("size".to_owned(), "2".to_owned())]).unwrap();
    let policy = spec.build(&crate::BuildContext::default(), &params).unwrap();
    let mut core = Core::new(policy, Cluster::new(2), fixed(9, 0));
    let chosen: Vec<BackendId> = (0..6).map(|n| core.prepare(n, at(1)).unwrap().backend).collect();
    let of_first = chosen.iter().filter(|&&b| b == B0).count();
    assert_eq!((of_first, core.reserved(), core.view().total_load()), (3, 0, 6));
}

#[test]
fn a_choice_of_an_earlier_policy_is_taken_silently() {
    let mut core = core(2, fixed(3, 9));
    let mut early = core.prepare(0, at(1)).unwrap();
    core.replace_policy(Box::<Everything>::default(), fixed(3, 9));
    core.take(&mut early, &Request::of(0, TargetId(77)), at(2));
    assert_eq!((stat(&core, "outstanding"), core.view().total_load()), (0.0, 1));
    core.complete(&early, ANSWERED, at(3));
    assert_eq!((stat(&core, "outstanding"), core.view().total_load()), (0.0, 0));
}
