//! Tests of Prequal.

mod lies;

use super::*;
use crate::cluster::Cluster;
use crate::request::TargetId;

const REQUEST: Request = Request::of(0, TargetId(0));

/// Removes nothing, so that a pool is what the test makes it.
const STILL: PrequalParams = PrequalParams {
    pool: 16,
    pool_share: 1.0,
    probe_rate: 3.0,
    remove_rate: 0.0,
    age_s: Nanos::from_secs(1),
    delta: 1.0,
    rif_quantile: 0.84,
};

fn ms(ms: u64) -> Time {
    Time::ZERO + Nanos::from_millis(ms)
}

fn report(p: &mut Prequal, view: &ClusterView, at_ms: u64, (b, load, latency_ms): (u16, u32, u64)) {
    let latency = Some(Nanos::from_millis(latency_ms));
    p.on_report(&LoadReport { latency, ..LoadReport::of(BackendId(b), load) }, view, ms(at_ms));
}

fn choose(p: &mut Prequal, view: &ClusterView, at_ms: u64) -> u16 {
    let chosen = match p.choose(&REQUEST, view, ms(at_ms)) {
        Decision::Assign(b) => b,
        other => panic!("{other:?}"),
    };
    p.on_assign(&REQUEST, chosen, view, ms(at_ms));
    chosen.0
}

fn counts(p: &Prequal) -> [u64; 3] {
    [p.counts.cold, p.counts.hot, p.counts.random]
}

#[test]
fn the_fastest_of_the_cold_ones_then_the_least_loaded_of_the_hot_ones() {
    let (mut p, view) = (Prequal::new(&STILL, 1), Cluster::new(6));
    // In order of load: 1, 2, 3, 4, 9. Rank 5 of 5 is the 0.84 quantile, so nobody is hot.
    let loads = [(0, 1, 40), (1, 2, 30), (2, 3, 50), (3, 4, 20), (4, 9, 10)];
    loads.iter().for_each(|&probe| report(&mut p, &view, 0, probe));
    assert_eq!(choose(&mut p, &view, 0), 4);
    // It has 10 now and is hot; 20 ms is the least of the others until its load, 4, is above 9.
    let next: Vec<u16> = (0..6).map(|_| choose(&mut p, &view, 0)).collect();
    assert_eq!(next, [3; 6]);
    assert_eq!(choose(&mut p, &view, 0), 1, "30 ms, load 2 and then 3");
    for _ in 0..50 {
        choose(&mut p, &view, 0);
    }
    // All above 9: from then on the least loaded.
    let [cold, hot, random] = counts(&p);
    let loads: Vec<u32> = p.pool.probes().iter().map(|p| p.load).collect();
    assert!(hot > 10 && cold > 25 && random == 0 && cold + hot == 58, "{:?}", counts(&p));
    assert!(loads.iter().max().unwrap() - loads.iter().min().unwrap() <= 1, "{loads:?}");
}

#[test]
fn fewer_than_two_probes_leave_it_to_chance() {
    let (mut p, view) = (Prequal::new(&STILL, 1), Cluster::new(4));
    report(&mut p, &view, 0, (2, 0, 1));
    let mut got = [0u32; 4];
    (0..4_000).for_each(|_| got[usize::from(choose(&mut p, &view, 500))] += 1);
    assert!(got.iter().all(|n| n.abs_diff(1_000) < 137), "five standard errors: {got:?}");
    report(&mut p, &view, 800, (1, 9, 1));
    report(&mut p, &view, 800, (2, 0, 5));
    assert!([1, 2].contains(&choose(&mut p, &view, 1_800)));
    // Older than 1 s.
    let random = p.counts.random;
    choose(&mut p, &view, 1_801);
    assert_eq!((p.counts.random, p.pool.probes().len()), (random + 1, 0));
}

#[test]
fn a_probe_may_be_used_as_often_as_the_papers_formula_says() {
    let params = PrequalParams { remove_rate: 1.0, pool_share: 1.0, ..PrequalParams::default() };
    let mut p = Prequal::new(&params, 1);
    let mean = |p: &mut Prequal, backends| {
        let view = Cluster::new(backends);
        (0..20_000).map(|_| f64::from(p.uses(&view))).sum::<f64>() / 20_000.0
    };
    // 2 / (3 (1 - 16 / 64) - 1) = 1.6 and 2 / (3 (1 - 16 / 32) - 1) = 4; at most 0.5 / sqrt(20,000) from rounding, five times.
    assert!((mean(&mut p, 64) - 1.6).abs() < 0.018);
    assert!((mean(&mut p, 32) - 4.0).abs() < 1e-9);
    assert_eq!(p.uses(&Cluster::new(16)), u32::MAX, "everybody is probed again soon");
    p.params.pool_share = 0.25;
    // As with 16 of 64.
    assert!((mean(&mut p, 16) - 1.6).abs() < 0.018);
    p.params.delta = 0.0;
    p.params.probe_rate = 8.0;
    assert_eq!(p.uses(&Cluster::new(10_000)), 1, "at least once");
}

#[test]
fn a_small_cluster_has_a_small_pool() {
    for (backends, pool_share, room) in [
        (2, 0.25, 2),
        (11, 0.25, 2),
        (16, 0.25, 4),
        (64, 0.25, 16),
        (200, 0.25, 16),
        (16, 1.0, 16),
        (16, 0.0, 2),
    ] {
        let (mut p, view) = (Prequal::new(&PrequalParams { pool_share, ..STILL }, 1), Cluster::new(backends));
        (0..backends as u16).for_each(|b| report(&mut p, &view, 0, (b, 0, 1)));
        let held: Vec<u16> = p.pool.probes().iter().map(|probe| probe.backend.0).collect();
        let newest: Vec<u16> = (backends as u16 - room..backends as u16).collect();
        assert_eq!(held, newest, "{backends} back-ends, share {pool_share}");
    }
}

#[test]
fn the_worst_and_the_oldest_go_in_turn_and_two_stay() {
    let params = PrequalParams { remove_rate: 0.5, ..STILL };
    let (mut p, view) = (Prequal::new(&params, 1), Cluster::new(6));
    for b in 0..6 {
        report(&mut p, &view, 0, (b, 1, 10 + u64::from(b)));
    }
    let mut left = Vec::new();
    for _ in 0..12 {
        // To one that is not in the pool any more, or to the fastest: that changes no latency.
        p.on_assign(&REQUEST, BackendId(2), &view, ms(0));
        left.push(p.pool.probes().iter().map(|p| p.backend.0).collect::<Vec<_>>());
    }
    // Every other request removes one. Back-end 2 becomes hot by its requests, and so the worst.
    assert_eq!(left[0].len(), 6);
    assert_eq!(left[1], [0, 1, 3, 4, 5]);
    assert_eq!(left[3], [1, 3, 4, 5], "the oldest");
    assert_eq!(left[5], [1, 3, 4], "the slowest, as nobody is hot");
    assert_eq!((left[7].as_slice(), left[11].as_slice()), (&[3, 4][..], &[3, 4][..]));
}

#[test]
fn rates_need_not_be_whole_and_probes_are_different_back_ends() {
    let view = Cluster::new(5);
    let mut p = Prequal::new(&PrequalParams { probe_rate: 2.25, ..STILL }, 1);
    let asked: Vec<usize> = (0..8).map(|_| p.probe(&view, ms(0)).as_slice().len()).collect();
    assert_eq!(asked, [2, 2, 2, 3, 2, 2, 2, 3]);
}

#[test]
fn without_a_reported_latency_its_own_stands_in() {
    let (mut p, view) = (Prequal::new(&STILL, 1), Cluster::new(2));
    for (b, rtt_ms, outcome) in
        [(0, 50, Outcome::Completed), (1, 9, Outcome::Completed), (0, 1, Outcome::Failed)]
    {
        let (backend, response_time) = (BackendId(b), Nanos::from_millis(rtt_ms));
        let completion = Completion::of(TargetId(0), backend, outcome, response_time);
        p.on_complete(&completion, &view, ms(0));
    }
    // Equal loads of 3, which are not hot.
    (0..2).for_each(|b| p.on_report(&LoadReport::of(BackendId(b), 3), &view, ms(1)));
    assert_eq!(choose(&mut p, &view, 1), 1);
    // The other one tells of 2 ms itself.
    report(&mut p, &view, 2, (0, 3, 2));
    report(&mut p, &view, 2, (1, 3, 9));
    assert_eq!(choose(&mut p, &view, 2), 0);
}

#[test]
fn a_back_end_that_takes_no_requests_leaves_the_pool() {
    let (mut p, mut view) = (Prequal::new(&STILL, 1), Cluster::new(3));
    (0..3).for_each(|b| report(&mut p, &view, 0, (b, 1, 1)));
    view.set_health(BackendId(0), Health::Draining);
    p.on_membership(BackendId(0), Change::Health(Health::Draining), &view, ms(0));
    report(&mut p, &view, 0, (0, 0, 0));
    assert_eq!(p.pool.probes().len(), 2);
    (0..20).for_each(|_| assert_ne!(choose(&mut p, &view, 0), 0));
}
