use std::time::Duration;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn config() -> EjectionConfig {
    EjectionConfig {
        failures: 5,
        share_permille: 300,
        window: 10 * SECOND,
        time: SECOND,
        trials: 3,
        most_permille: 500,
        slow_ratio: 0,
        slow_difference: Duration::from_millis(100),
        slow_requests: 100,
        slow_quantile_permille: 500,
    }
}

/// One that was ejected at this time, for a second.
fn ejected(at: Instant) -> Ejection {
    let mut e = Ejection::default();
    e.eject(at, &config());
    e
}

#[test]
fn failures_in_a_row() {
    let (mut e, now, config) = (Ejection::default(), Instant::now(), config());
    let told: Vec<bool> =
        [7, 7, 7, 7, 7].iter().map(|&answers| e.failed(now, answers, now, &config)).collect();
    assert_eq!(told, [false, false, false, false, true]);
    // An answer in between begins a new row.
    let mut e = Ejection::default();
    assert!([1, 1, 1, 1, 2, 2, 2].iter().all(|&answers| !e.failed(now, answers, now, &config)));
    let never = EjectionConfig { failures: 0, ..config };
    let mut e = Ejection::default();
    assert!((0..100).all(|_| !e.failed(now, 0, now, &never)));
}

#[test]
fn a_share_of_the_window() {
    let (now, config) = (Instant::now(), config());
    // Every other request fails: at the tenth failure there were nineteen requests, at the eleventh there are 21.
    let mut e = Ejection::default();
    let first = (1..).find(|&n| e.failed(now, n - 1, now, &config));
    assert_eq!(first, Some(11));
    // One of ten fails: never.
    let mut e = Ejection::default();
    assert!((0..1000).all(|n| !e.failed(now, 9 * n, now, &config)));
    // Every other one, but slowly: the window is over before there are twenty.
    let mut e = Ejection::default();
    assert!((0..100).all(|n| {
        let at = now + n * 2 * SECOND;
        !e.failed(at, u64::from(n), at, &config)
    }));
}

#[test]
fn trials_bring_it_back_and_failed_ones_double_the_time() {
    let (start, config) = (Instant::now(), config());
    let mut e = ejected(start);
    assert!(e.is_ejected() && !e.is_trial_due(start + SECOND / 2));
    assert_eq!(e.begin_trial(start + SECOND / 2), None);
    let at = start + SECOND;
    let trial = |e: &mut Ejection, end, at| {
        let number = e.begin_trial(at).unwrap();
        assert_eq!(e.begin_trial(at), None, "one at a time");
        e.end_trial(number, end, at, &config)
    };
    assert_eq!(trial(&mut e, TrialEnd::Answered, at), None);
    assert_eq!(trial(&mut e, TrialEnd::Unknown, at), None);
    assert_eq!(trial(&mut e, TrialEnd::Failed, at), Some(EjectionChange::Ejected));
    let at = at + 2 * SECOND;
    assert!(!e.is_trial_due(at - SECOND));
    let ends = [(); 3].map(|()| trial(&mut e, TrialEnd::Answered, at));
    assert_eq!((ends, e.is_ejected()), ([None, None, Some(EjectionChange::Readmitted)], false));
    // Soon again: longer still; after a long while: as at first.
    e.eject(at + SECOND, &config);
    assert_eq!(e.length, 4);
    e.readmit(at + SECOND);
    e.eject(at + 60 * SECOND, &config);
    assert_eq!(e.length, 1);
    (0..10).for_each(|_| e.eject(at + 60 * SECOND, &config));
    assert_eq!(e.length, LONGEST);
}

#[test]
fn without_a_trial_it_is_back_after_as_long_again() {
    let start = Instant::now();
    let mut e = ejected(start);
    assert!(!e.is_over(start + 2 * SECOND - Duration::from_millis(1)));
    assert!(e.is_over(start + 2 * SECOND));
    // However short or long its time is.
    for (time, over) in [(1, 1_001), (600_000, 630_000)] {
        let config = EjectionConfig { time: Duration::from_millis(time), ..config() };
        e.clear();
        e.eject(start, &config);
        assert!(!e.is_over(start + Duration::from_millis(over - 1)), "{time}");
        assert!(e.is_over(start + Duration::from_millis(over)), "{time}");
    }
}

#[test]
fn without_a_failed_trial_it_is_back_after_a_bound() {
    let (start, config) = (Instant::now(), EjectionConfig { trials: 1000, ..config() });
    for end in [TrialEnd::Answered, TrialEnd::TimedOut, TrialEnd::ClientGone, TrialEnd::Unknown] {
        let mut e = ejected(start);
        let mut at = start + SECOND;
        while !e.is_over(at) && at < start + 10 * LATEST {
            if let Some(number) = e.begin_trial(at) {
                at += SECOND / 2;
                e.end_trial(number, end, at, &config);
            }
            at += SECOND / 2;
        }
        assert_eq!(at, start + SECOND + LATEST, "{end:?}");
    }
    // Each failed one begins another ejection.
    let mut e = ejected(start);
    let number = e.begin_trial(start + SECOND).unwrap();
    e.end_trial(number, TrialEnd::Failed, start + 2 * SECOND, &config);
    assert!(!e.is_over(start + 5 * SECOND) && e.is_over(start + 6 * SECOND));
}

#[test]
fn a_trial_that_does_not_end_is_forgotten() {
    let (start, config) = (Instant::now(), EjectionConfig { trials: 1, ..config() });
    let mut e = ejected(start);
    let begun = start + SECOND;
    let lost = e.begin_trial(begun).unwrap();
    assert!(!e.is_trial_due(begun + LONGEST_TRIAL - SECOND) && !e.is_over(begun + LONGEST_TRIAL));
    let next = e.begin_trial(begun + LONGEST_TRIAL).unwrap();
    for end in [TrialEnd::Failed, TrialEnd::Answered] {
        assert_eq!(e.end_trial(lost, end, begun + LONGEST_TRIAL, &config), None, "it has no say any more");
    }
    let back = e.end_trial(next, TrialEnd::Answered, begun + LONGEST_TRIAL, &config);
    assert_eq!(back, Some(EjectionChange::Readmitted));
    // Nor has one of an ejection that is over.
    e.eject(start, &config);
    let before = e.begin_trial(begun + SECOND).unwrap();
    e.clear();
    e.eject(begun, &config);
    let number = e.begin_trial(begun + SECOND).unwrap();
    assert_eq!(e.end_trial(before, TrialEnd::Failed, begun + SECOND, &config), None);
    assert!(e.end_trial(number, TrialEnd::Answered, begun + SECOND, &config).is_some());
}

#[test]
fn after_a_slow_trial_the_next_one_waits() {
    let (start, config) = (Instant::now(), config());
    let next_after = |end, took| {
        let mut e = ejected(start);
        let number = e.begin_trial(start + SECOND).unwrap();
        let ended = start + SECOND + took;
        assert_eq!(e.end_trial(number, end, ended, &config), None);
        assert_eq!(e.length, 1, "its time is not doubled");
        e.trials_from().unwrap() - ended
    };
    let zero = Duration::ZERO;
    assert_eq!(next_after(TrialEnd::TimedOut, 2 * SECOND), SECOND);
    assert_eq!(next_after(TrialEnd::ClientGone, SECOND), SECOND);
    assert_eq!(next_after(TrialEnd::ClientGone, SECOND / 2), zero);
    assert_eq!(next_after(TrialEnd::Unknown, 2 * SECOND), zero);
}

#[test]
fn a_slow_trial_begins_a_new_row() {
    let (start, config) = (Instant::now(), config());
    let mut e = ejected(start);
    let mut at = start + SECOND;
    let mut trial = |end| {
        at = at.max(e.trials_from().unwrap());
        let number = e.begin_trial(at).unwrap();
        e.end_trial(number, end, at, &config)
    };
    use TrialEnd::{Answered, TimedOut, Unknown};
    let ends = [Answered, Answered, TimedOut, Answered, Answered, Unknown].map(&mut trial);
    assert_eq!(ends, [None; 6]);
    assert_eq!(trial(Answered), Some(EjectionChange::Readmitted));
}

#[test]
fn old_failures_do_not_count() {
    let (start, config) = (Instant::now(), config());
    let mut e = Ejection::default();
    (0..4).for_each(|_| assert!(!e.failed(start, 0, start, &config)));
    e.eject(start, &config);
    // While it is ejected, and what was sent before it was back.
    assert!((0..100).all(|_| !e.failed(start, 0, start, &config)));
    let back = start + 2 * SECOND;
    e.readmit(back);
    assert!((0..100).all(|_| !e.failed(start, 0, back + SECOND, &config)));
    // Only what has been sent since, five in a row as at first.
    let told: Vec<bool> = (0..5).map(|_| e.failed(back, 0, back + SECOND, &config)).collect();
    assert_eq!(told, [false, false, false, false, true]);
}
