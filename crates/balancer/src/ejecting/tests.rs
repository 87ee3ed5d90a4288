use std::time::Duration;

use plimsoll_config::Config;
use plimsoll_policy::BackendId;

use super::*;
use crate::shared::FrontEndShared;

const SECOND: Duration = Duration::from_secs(1);

/// Before three back-ends, of which so many are ejected: a moment apart, by one failure each.
fn with_ejected(count: usize, tables: &str) -> (Arc<FrontEndShared>, Instant) {
    let shared =
        FrontEndShared::before_three(&format!("[ejection]\nfailures = 1\nmost = 0.7\ntrials = 1\n{tables}"));
    let start = Instant::now();
    for index in 0..count {
        fail(&shared, index, start + index as u32 * SECOND / 10);
    }
    assert_eq!(ejected(&shared), [count > 0, count > 1, false]);
    (shared, start + count as u32 * SECOND / 10)
}

fn fail(shared: &FrontEndShared, index: usize, at: Instant) {
    shared.attempt_failed(&shared.nth(index), at, at);
}

fn ejected(shared: &FrontEndShared) -> [bool; 3] {
    let of_table = [0, 1, 2].map(|index| shared.nth(index).is_ejected());
    // Dispatch knows of the same, where nothing else keeps one from taking requests.
    for index in (0..3).filter(|&index| shared.nth(index).is_able()) {
        let eligible = shared.dispatch.first().inspect(|i| i.view.is_eligible(BackendId::new(index)));
        assert!(!(eligible && of_table[index]), "{index}");
    }
    of_table
}

fn set_config(shared: &FrontEndShared, change: impl FnOnce(&mut Config)) {
    let mut config = Config::clone(&shared.config.load());
    change(&mut config);
    shared.config.store(Arc::new(config));
}

#[test]
fn never_more_than_the_share_and_never_the_last_one() {
    let (shared, now) = with_ejected(2, "");
    fail(&shared, 2, now);
    assert_eq!(ejected(&shared), [true, true, false]);
    // Two of three are more than a half.
    let (shared, now) = with_ejected(1, "");
    set_config(&shared, |config| config.ejection.most_permille = 500);
    fail(&shared, 1, now);
    assert_eq!(ejected(&shared), [true, false, false]);
}

#[test]
fn when_no_other_one_takes_requests_those_that_can_do() {
    type Way = fn(&FrontEndShared, usize);
    let ways: [Way; 3] = [
        |shared, index| (0..2).for_each(|_| shared.bad_sign(&shared.nth(index), &"a test", false)),
        |shared, index| {
            shared.nth(index).set_drained(true);
            shared.tell_health(&shared.nth(index));
        },
        |shared, index| {
            shared.dispatch.set_weight(BackendId::new(index), Weight::ZERO);
            shared.look_after_ejected(Instant::now());
        },
    ];
    for way in ways {
        let (shared, _) = with_ejected(2, "time = \"1h\"\n");
        // One that takes no requests itself is no help.
        way(&shared, 1);
        assert_eq!(ejected(&shared), [true, true, false]);
        way(&shared, 2);
        assert_eq!(ejected(&shared), [false, true, false]);
        assert_eq!(
            shared.dispatch.first().inspect(|i| i.view.eligible_ids().collect::<Vec<_>>()),
            [BackendId(0)]
        );
        // It is the last one now, whatever it fails.
        fail(&shared, 0, Instant::now() + SECOND);
        assert_eq!(ejected(&shared), [false, true, false]);
    }
}

#[test]
fn when_back_ends_leave_the_share_holds_for_those_that_stay() {
    let (shared, now) = with_ejected(2, "");
    shared.look_after_ejected(now);
    assert_eq!(ejected(&shared), [true, true, false]);
    set_config(&shared, |config| config.ejection.most_permille = 400);
    shared.look_after_ejected(now);
    assert_eq!(ejected(&shared), [false, true, false], "the one that was ejected first is back");
    shared.nth(0).retire();
    shared.look_after_ejected(now);
    assert_eq!(ejected(&shared), [false, false, false], "one of two is more than 0.4 of them");
}

#[test]
fn time_alone_brings_them_back() {
    let (shared, now) = with_ejected(2, "");
    shared.look_after_ejected(now + SECOND);
    assert_eq!(ejected(&shared), [true, true, false]);
    // The trial of the first one says nothing, that of the second one is under way: it is waited for.
    assert_eq!(shared.begin_trial(0, now + SECOND).map(|(b, _)| b.id), Some(BackendId(0)));
    assert_eq!(shared.begin_trial(0, now + SECOND).map(|(b, _)| b.id), Some(BackendId(1)));
    shared.end_trial(&shared.nth(0), 1, TrialEnd::Unknown, now + SECOND);
    shared.look_after_ejected(now + 3 * SECOND);
    assert_eq!(ejected(&shared), [false, true, false]);
    shared.look_after_ejected(now + 60 * SECOND);
    assert_eq!(ejected(&shared), [false; 3]);
    assert!(!shared.any_ejected.load(Ordering::Relaxed), "requests look for none");
}

#[test]
fn with_ejection_off_all_are_back() {
    let (shared, now) = with_ejected(2, "");
    set_config(&shared, |config| config.ejection.failures = 0);
    shared.look_after_ejected(now);
    assert_eq!(ejected(&shared), [false; 3]);
}

#[test]
fn only_one_that_may_take_requests_is_tried() {
    let (shared, now) = with_ejected(1, "");
    let due = now + SECOND;
    shared.dispatch.set_weight(BackendId(0), Weight::ZERO);
    assert!(shared.begin_trial(0, due).is_none());
    shared.dispatch.set_weight(BackendId(0), Weight::ONE);
    shared.nth(0).set_drained(true);
    assert!(shared.begin_trial(0, due).is_none());
    let (shared, _) = with_ejected(1, "");
    let (backend, number) = shared.begin_trial(0, due).unwrap();
    shared.end_trial(&backend, number, TrialEnd::Answered, due);
    assert_eq!(ejected(&shared), [false; 3]);
}

#[test]
fn one_that_has_failed_requests_is_better_than_one_that_answers_nothing_in_time() {
    let doubt = |shared: &FrontEndShared, index| {
        (0..2).for_each(|_| shared.bad_sign(&shared.nth(index), &"a test", true));
    };
    let (shared, _) = with_ejected(1, "time = \"1h\"\n");
    doubt(&shared, 1);
    assert_eq!(ejected(&shared), [true, false, false], "the third one takes requests");
    doubt(&shared, 2);
    assert_eq!(ejected(&shared), [false; 3]);
    assert_eq!([1, 2].map(|index| shared.nth(index).stands_in()), [false; 2]);
    // Once that one is in doubt as well, all have to do.
    doubt(&shared, 0);
    assert_eq!([0, 1, 2].map(|index| shared.nth(index).stands_in()), [true; 3]);
    // They are not ejected, whatever they fail.
    fail(&shared, 0, Instant::now());
    assert_eq!(ejected(&shared), [false; 3]);
    // One that has no weight is no help to them, and one that answers is.
    (0..2).for_each(|_| shared.good_sign(&shared.nth(2)));
    assert_eq!([0, 1, 2].map(|index| shared.nth(index).stands_in()), [false; 3]);
    shared.dispatch.set_weight(BackendId::new(2), Weight::ZERO);
    shared.look_after_ejected(Instant::now());
    assert_eq!([0, 1].map(|index| shared.nth(index).stands_in()), [true; 2]);
}
