//! What a back-end gains by telling something else than what is.

use super::*;

#[test]
fn who_tells_of_shorter_times_than_it_takes_gains_nothing() {
    let (mut p, view) = (Prequal::new(&STILL, 1), Cluster::new(4));
    let mut got = [0_u32; 4];
    for number in 0..1_000 {
        // The first one tells 0 ms; all take 10 ms, and tell a load of 0.
        (0..4).for_each(|b| report(&mut p, &view, number, (b, 0, if b == 0 { 0 } else { 10 })));
        let chosen = choose(&mut p, &view, number);
        got[usize::from(chosen)] += 1;
        let (backend, outcome) = (BackendId(chosen), Outcome::Completed);
        let response_time = Nanos::from_millis(10);
        let completion = Completion::of(TargetId(0), backend, outcome, response_time);
        p.on_complete(&completion, &view, ms(number));
    }
    assert!(got.iter().all(|n| n.abs_diff(250) < 69), "five standard errors: {got:?}");
}
