//! The parts of the `AdaptLoad` back-end against queueing theory, each in 16 independent runs; see [`crate::theory`].

use plimsoll_policy::{Kind, Nanos, Rng};
use plimsoll_sim::models::adaptload::AdaptLoadModelParams;
use plimsoll_sim::{Arrivals, RunOutcome, SimRequest};

use crate::common::{Setup, request, targets};
use crate::theory::check;

/// 16 runs of these requests at `rate_rps` on one back-end with a cache of `cache_bytes`; a fifth is not measured.
fn runs(
    params: &AdaptLoadModelParams,
    sizes: &[u64],
    requests: &[SimRequest],
    rate_rps: f64,
    cache_bytes: u64,
) -> Vec<RunOutcome> {
    let run = |seed| {
        let arrivals = Arrivals::Poisson { rate_rps };
        let setup =
            Setup { seed, arrivals, cache_bytes, warmup: requests.len() as u64 / 5, ..Setup::default() };
        setup.adaptload(params, &targets(sizes), requests).0
    };
    (0..16).map(run).collect()
}

fn means_s(outcomes: &[RunOutcome]) -> Vec<f64> {
    outcomes.iter().map(|o| o.response_ns.mean().unwrap() / 1e9).collect()
}

/// Round robin with a small quantum is M/G/1 processor sharing: T = E[S]/(1 - ρ), and the mean slowdown of every size is
/// 1/(1 - ρ), whatever the distribution of sizes.
#[test]
fn the_network_with_tiny_packets_is_m_g_1_processor_sharing() {
    // C.V. about 2; a packet is 16 bytes.
    let sizes = [2_000, 5_000, 40_000];
    let mut rng = Rng::new(1, 1);
    let mut draw = || {
        let target = [0, 0, 0, 0, 0, 0, 1, 1, 1, 2][rng.below(10) as usize];
        request(target, sizes[target as usize], 0)
    };
    let requests: Vec<_> = (0..150_000).map(|_| draw()).collect();
    let mean_bytes = requests.iter().map(|r| r.size_bytes as f64).sum::<f64>() / requests.len() as f64;
    let service_s = mean_bytes * 40e-6 / 512.0;
    let params = AdaptLoadModelParams { quantum_bytes: 16, ..AdaptLoadModelParams::default() };
    for load in [0.5, 0.8] {
        let outcomes = runs(&params, &sizes, &requests, load / service_s, 1 << 20);
        check("M/G/1-PS", &means_s(&outcomes), service_s / (1.0 - load));
        let slowdowns: Vec<f64> =
            outcomes.iter().map(|o| o.slowdown_permille.mean().unwrap() / 1e3).collect();
        check("slowdown", &slowdowns, 1.0 / (1.0 - load));
    }
}

/// Documents of one size that nobody asks for twice: the disk is M/D/1, T = D + ρD/(2(1 - ρ)), and the network never has
/// anybody waiting behind it.
#[test]
fn the_disk_is_m_d_1() {
    let bytes = 40_960;
    let requests: Vec<_> = (0..60_000).map(|n| request(n, bytes, 0)).collect();
    let sizes = vec![bytes; requests.len()];
    let (disk_s, network_s) = (0.028 + 0.0041, 0.0032);
    for load in [0.5, 0.8] {
        let outcomes = runs(&AdaptLoadModelParams::default(), &sizes, &requests, load / disk_s, 0);
        assert!(outcomes.iter().all(|o| o.joined_ratio() == Some(0.0)));
        let theory = disk_s * (1.0 + load / (2.0 * (1.0 - load))) + network_s;
        check("M/D/1", &means_s(&outcomes), theory);
    }
}

/// Dynamic requests are M/G/1 processor sharing too, whatever the coefficient of variation.
#[test]
fn dynamic_requests_are_m_g_1_processor_sharing() {
    let requests =
        vec![SimRequest { kind: Kind::Dynamic, service: Nanos::ZERO, ..request(0, 0, 0) }; 300_000];
    for (cv, load) in [(0.0, 0.7), (1.0, 0.7), (3.4, 0.6)] {
        let params = AdaptLoadModelParams { dynamic_cv: cv, ..AdaptLoadModelParams::default() };
        let outcomes = runs(&params, &[0], &requests, load / 0.00325, 0);
        check("dynamic", &means_s(&outcomes), 0.00325 / (1.0 - load));
    }
}
