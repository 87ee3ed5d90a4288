//! The simulator against queueing theory. Tolerances are confidence intervals from independent replications, not chosen
//! numbers.

use plimsoll_sim::Arrivals;

use crate::common::Setup;

/// Mean and half-width of the 99.9 % confidence interval of the mean, from `values`.
pub(crate) fn interval(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    // Student's t for 15 degrees of freedom, two-sided 99.9 %.
    (mean, 4.073 * (variance / n).sqrt())
}

/// Mean response times in units of the mean service time, from 16 independent runs with a warm-up.
pub(crate) fn response_times(policy: &str, backends: usize, load: f64, requests: usize) -> Vec<f64> {
    (0..16)
        .map(|seed| {
            let arrivals = Arrivals::Poisson { rate_rps: load * backends as f64 };
            let setup =
                Setup { policy, backends, seed, arrivals, warmup: requests as u64 / 5, ..Setup::default() };
            setup.fifo(requests).response_ns.mean().unwrap() / 1e9
        })
        .collect()
}

/// Theory lies within the interval, and that is narrow.
pub(crate) fn check(name: &str, values: &[f64], theory: f64) {
    let (mean, half) = interval(values);
    assert!((mean - theory).abs() < half, "{name}: {mean} ± {half}, theory {theory}");
    assert!(half < 0.05 * theory, "{name}: interval ± {half} too wide to show anything");
}

/// M/M/1: T = 1 / (1 − ρ).
#[test]
fn one_fifo_backend_is_m_m_1() {
    for (load, requests) in [(0.3, 100_000), (0.7, 200_000), (0.9, 800_000)] {
        check("M/M/1", &response_times("round_robin", 1, load, requests), 1.0 / (1.0 - load));
    }
}

/// Random splitting of a Poisson stream gives independent M/M/1 queues.
#[test]
fn random_splitting_is_many_m_m_1() {
    check("random", &response_times("random", 8, 0.8, 200_000), 1.0 / (1.0 - 0.8));
}

/// Mean response time of join-shortest-queue on two servers: stationary distribution of the chain of both queue
/// lengths, truncated where its probability is negligible, by iteration.
fn jsq_of_two(load: f64) -> f64 {
    const MOST: usize = 80;
    let at = |i: usize, j: usize| i * MOST + j;
    let (lambda, rate) = (2.0 * load, 2.0 * load + 2.0);
    let mut p = vec![0.0; MOST * MOST];
    p[0] = 1.0;
    loop {
        let mut q = vec![0.0; MOST * MOST];
        for i in 0..MOST {
            for j in 0..MOST {
                let mass = p[at(i, j)];
                // Uniformised at the largest total rate; an arrival beyond the truncation is dropped.
                let (to_i, to_j) = (i <= j, i > j);
                let next = if to_i { at((i + 1).min(MOST - 1), j) } else { at(i, (j + 1).min(MOST - 1)) };
                debug_assert!(to_i != to_j);
                q[next] += mass * lambda / rate;
                q[at(i.saturating_sub(1), j)] += mass / rate;
                q[at(i, j.saturating_sub(1))] += mass / rate;
            }
        }
        let change: f64 = p.iter().zip(&q).map(|(a, b)| (a - b).abs()).sum();
        p = q;
        if change < 1e-9 {
            break;
        }
    }
    let mean_load: f64 = (0..MOST * MOST).map(|s| p[s] * (s / MOST + s % MOST) as f64).sum();
    mean_load / lambda
}

#[test]
fn least_connections_on_two_is_join_shortest_queue() {
    for load in [0.5, 0.8] {
        check("JSQ(2)", &response_times("least_connections", 2, load, 200_000), jsq_of_two(load));
    }
}

/// The supermarket model (Mitzenmacher 2001): with d = 2 the share of queues of length at least i tends to
/// ρ^(2^i − 1), so T = Σ ρ^(2^i − 2) over i from 1.
fn supermarket(load: f64) -> f64 {
    (1..12).map(|i| load.powf(f64::from((1u32 << i) - 2))).sum()
}

/// The limit is for many back-ends; with 1,000 the simulation lies within one per cent of it.
#[test]
fn power_of_two_meets_the_supermarket_model() {
    let values = response_times("power_of_two", 1000, 0.9, 300_000);
    let (mean, half) = interval(&values);
    let theory = supermarket(0.9);
    assert!((mean - theory).abs() < half + 0.01 * theory, "{mean} ± {half}, theory {theory}");
}

/// Little's law in the saturated cluster: throughput × mean time = S.
#[test]
fn littles_law_holds_when_saturated() {
    use crate::common::{request, targets};
    use plimsoll_policy::AdmissionLimit;
    let sizes: Vec<u64> = (0..200).map(|t| 1000 + t * 700).collect();
    let requests: Vec<_> = (0..40_000u32)
        .map(|n| {
            let target = (n.wrapping_mul(2_654_435_761) >> 8) % 200;
            request(target, sizes[target as usize], 0)
        })
        .collect();
    let limit = AdmissionLimit::Fixed(100);
    let setup = Setup { policy: "lard", backends: 4, arrivals: Arrivals::Closed, limit, ..Setup::default() };
    let (outcome, _) = setup.lard(&targets(&sizes), &requests);
    let product = outcome.throughput_rps() * outcome.response_ns.mean().unwrap() / 1e9;
    // Only the drain at the end is short of S.
    assert!((product / 100.0 - 1.0).abs() < 0.01, "{product}");
    let mean_load: f64 = outcome.backends.iter().map(|b| b.mean_load).sum();
    assert!((mean_load / product - 1.0).abs() < 1e-6, "{mean_load} against {product}");
}
