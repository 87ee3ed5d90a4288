//! The FIFO model against queueing theory, and its faults.

use plimsoll_policy::{BackendId, Nanos, Time};
use plimsoll_sim::{Arrivals, Fault, FaultAction, HotSpot, TimeDistribution, TimeShape};

use crate::common::{request, targets};
use crate::spread::{SERVICE, Spread, poisson};
use crate::theory::check;

fn service(shape: TimeShape) -> Option<TimeDistribution> {
    Some(TimeDistribution { mean_ns: SERVICE.as_nanos() as f64, shape })
}

/// Mean response time of M/M/c, in service times: Erlang's formula for waiting.
fn erlang(workers: u32, load: f64) -> f64 {
    let offered = load * f64::from(workers);
    // The formula for loss, by recursion.
    let loss = (1..=workers).fold(1.0, |b, n| offered * b / (f64::from(n) + offered * b));
    let waits = loss / (1.0 - load * (1.0 - loss));
    1.0 + waits / (f64::from(workers) * (1.0 - load))
}

#[test]
fn several_workers_are_m_m_c() {
    for (workers, load, requests) in [(2, 0.8, 200_000), (4, 0.9, 600_000), (16, 0.7, 100_000)] {
        for latency_s in [Nanos::ZERO, Nanos::from_micros(258)] {
            let arrivals = poisson(load, workers as usize);
            let mut spread = Spread { policy: "random", backends: 1, arrivals, ..Spread::default() };
            (spread.fifo.workers, spread.fifo.latency_s) = (workers, latency_s);
            let added = 2.0 * latency_s.as_secs_f64() / SERVICE.as_secs_f64();
            check("M/M/c", &spread.responses(requests), erlang(workers, load) + added);
        }
    }
}

/// Pollaczek and Khinchine.
#[test]
fn general_service_is_m_g_1() {
    for (shape, cv) in [
        (TimeShape::Deterministic, 0.0f64),
        (TimeShape::Exponential, 1.0),
        (TimeShape::Gamma { cv: 0.45 }, 0.45),
        (TimeShape::Gamma { cv: 1.5 }, 1.5),
        (TimeShape::Lognormal { cv: 0.45 }, 0.45),
        (TimeShape::Lognormal { cv: 1.0 }, 1.0),
        (TimeShape::Weibull { cv: 0.6 }, 0.6),
        // Its fourth moment is finite, so that the interval can be trusted.
        (TimeShape::Pareto { cv: 0.3 }, 0.3),
    ] {
        let arrivals = poisson(0.8, 1);
        let spread = Spread { policy: "random", backends: 1, arrivals, ..Spread::default() };
        let spread = Spread { service: service(shape), ..spread };
        let theory = 1.0 + 0.8 * (1.0 + cv * cv) / 2.0 / (1.0 - 0.8);
        check(&format!("M/G/1 {shape:?}"), &spread.responses(300_000), theory);
    }
}

/// The mean of `e^(-s X)` for `X` at these quantiles, of mean 1: the Laplace transform, by the midpoint rule.
fn transform(s: f64, quantile: impl Fn(f64) -> f64) -> f64 {
    const STEPS: u32 = 100_000;
    let at = |step: u32| (f64::from(step) + 0.5) / f64::from(STEPS);
    (0..STEPS).map(|step| (-s * quantile(at(step))).exp()).sum::<f64>() / f64::from(STEPS)
}

/// Mean response time of G/M/1 in service times: 1 / (1 - r), where r is the root below 1 of r = A((1 - r) / load), and A is the Laplace
/// transform of the times between arrivals, of mean 1.
fn g_m_1(load: f64, transform: impl Fn(f64) -> f64) -> f64 {
    let root = (0..200).fold(0.0, |root, _| transform((1.0 - root) / load));
    1.0 / (1.0 - root)
}

#[test]
fn general_arrivals_are_g_m_1() {
    let load = 0.8;
    let run = |shape: TimeShape| {
        let arrivals = Arrivals::Renewal { rate_rps: load / SERVICE.as_secs_f64(), shape };
        Spread { policy: "random", backends: 1, arrivals, ..Spread::default() }.responses(300_000)
    };
    // One over the square of the variation is the shape of a gamma distribution: 4 is Erlang's with four phases.
    let gamma = |cv: f64| move |s: f64| (1.0 + s * cv * cv).powf(-1.0 / (cv * cv));
    let even = |s: f64| (-s).exp();
    check("D/M/1", &run(TimeShape::Deterministic), g_m_1(load, even));
    check("E4/M/1", &run(TimeShape::Gamma { cv: 0.5 }), g_m_1(load, gamma(0.5)));
    check("gamma/M/1", &run(TimeShape::Gamma { cv: 1.5 }), g_m_1(load, gamma(1.5)));
    check("M/M/1", &run(TimeShape::Exponential), 1.0 / (1.0 - load));
    // Shape 2: the square root of an exponential time, whose mean is half the square root of pi.
    let (mean, cv) = (std::f64::consts::PI.sqrt() / 2.0, (4.0 / std::f64::consts::PI - 1.0).sqrt());
    let weibull = |s: f64| transform(s, |u| (-(1.0 - u).ln()).sqrt() / mean);
    check("Weibull/M/1", &run(TimeShape::Weibull { cv }), g_m_1(load, weibull));
    let a = 1.0 + 2f64.sqrt();
    let pareto = |s: f64| transform(s, |u| (a - 1.0) / a * (1.0 - u).powf(-1.0 / a));
    check("Pareto/M/1", &run(TimeShape::Pareto { cv: 1.0 }), g_m_1(load, pareto));
    // The logarithm is normal with the variance ln(1 + cv²), here 1; integrated over eight standard deviations either side.
    let variance = 1.0f64;
    let lognormal = |s: f64| {
        let steps = 4_000;
        let density = |z: f64| (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let width = 16.0 / f64::from(steps);
        let at = |step: i32| -8.0 + (f64::from(step) + 0.5) * width;
        (0..steps).map(at).map(|z| width * density(z) * (-s * (z - variance / 2.0).exp()).exp()).sum::<f64>()
    };
    let cv = (variance.exp() - 1.0).sqrt();
    check("lognormal/M/1", &run(TimeShape::Lognormal { cv }), g_m_1(load, lognormal));
}

/// A request every 100 ms, so that nobody waits.
#[test]
fn a_slow_backend_takes_its_time() {
    for latency_s in [Nanos::ZERO, Nanos::from_millis(1)] {
        let at = |s: u64| Time::ZERO + Nanos::from_secs(s);
        let speed = |s, speed| Fault { at: at(s), backend: BackendId(0), action: FaultAction::Speed(speed) };
        let mut spread = Spread {
            policy: "random",
            backends: 1,
            arrivals: Arrivals::Trace { speed: 1.0 },
            faults: vec![speed(2, 1.0 / 3.0), speed(5, 2.0)],
            service: Some(TimeDistribution { mean_ns: 3e7, shape: TimeShape::Deterministic }),
            ..Spread::default()
        };
        spread.fifo.latency_s = latency_s;
        let requests: Vec<_> = (0..100).map(|n| request(0, 0, n * 100 + 1)).collect();
        let (outcome, _) = spread.on_fifo(&targets(&[0]), &requests);
        // 20 requests of 30 ms, 30 of 90 ms, 50 of 15 ms.
        let service_ms = (20.0 * 30.0 + 30.0 * 90.0 + 50.0 * 15.0) / 100.0;
        let mean_ms = outcome.response_ns.mean().unwrap() / 1e6 - 2e3 * latency_s.as_secs_f64();
        assert!((mean_ms - service_ms).abs() < 1e-6, "{mean_ms}");
        let busy_s: f64 = outcome.backends.iter().map(|b| b.usage.cpu.as_secs_f64()).sum();
        assert!((busy_s - service_ms / 10.0).abs() < 1e-9, "{busy_s}");
    }
}

/// Of three back-ends one works at a third of its speed: who counts requests spares it, who draws at random does not.
#[test]
fn loads_tell_of_a_slow_backend() {
    let slow = Fault { at: Time::ZERO, backend: BackendId(0), action: FaultAction::Speed(1.0 / 3.0) };
    let arrivals = poisson(0.3, 3);
    let spread = Spread { backends: 3, arrivals, faults: vec![slow], ..Spread::default() };
    let share = |policy| {
        let outcome = Spread { policy, ..spread.clone() }.run(20_000);
        outcome.backends[0].requests as f64 / outcome.completed as f64
    };
    let (random, counted) = (share("random"), share("join_shortest_queue"));
    assert!((random - 1.0 / 3.0).abs() < 0.02 && counted < 0.25, "{random} {counted}");
}

#[test]
fn a_hot_spot_takes_its_share() {
    let at = |s: u64| Time::ZERO + Nanos::from_secs(s);
    let spot = HotSpot { from: at(10), until: at(30), share: 0.4 };
    let spread =
        Spread { arrivals: Arrivals::Trace { speed: 1.0 }, hot_spots: vec![spot], ..Spread::default() };
    let targets = plimsoll_sim::Targets { rank: vec![1, 0, 2, 3], ..targets(&[100, 200, 300, 400]) };
    let requests: Vec<_> = (0..40_000u64).map(|n| request(n as u32 % 4, 100, n)).collect();
    let (_, decisions) = spread.on_fifo(&targets, &requests);
    let (mut inside, mut hot) = (0, 0);
    for decision in &decisions {
        let own = (decision.request % 4) as u32;
        if (at(10)..at(30)).contains(&decision.time) {
            inside += 1;
            hot += u32::from(decision.target == 1);
            assert!(decision.target == 1 || decision.target == own);
        } else {
            assert_eq!(decision.target, own);
        }
    }
    assert_eq!(inside, 20_000);
    // A quarter asked for it anyhow; five standard errors are 350.
    assert!(hot.abs_diff(20_000 * 4 / 10 + 20_000 * 6 / 10 / 4) < 350, "{hot}");
}
