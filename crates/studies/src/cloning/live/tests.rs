//! The rules of live claims on made-up measurements.

use plimsoll_report::Verdict;

use super::super::micro::MicroMechanism as M;
use super::super::plan::NodeStrategy as S;
use super::super::rule;
use super::results::{by_seed, micro};
use super::scaled::SimulatedRun;
use super::{LiveCloning, LiveRound, LiveRun, LiveSetting, LiveStartup, claims};

const SIZES_BYTES: [u64; 6] = [64, 1024, 4096, 16_384, 65_536, 1 << 20];

fn run(strategy: S, nodes: usize, seed: u64, throughput_rps: f64) -> LiveRun {
    LiveRun {
        setting: LiveSetting::new(strategy, nodes),
        seed,
        throughput_rps,
        answers: 1000,
        failed: 0,
        read_share: 0.2,
        fetched_share: 0.1,
        cloned_share: 0.5,
        file_server_busy: 0.9,
        sending: 0.5,
        throttled: 0.0,
        machine_busy: None,
    }
}

/// Efficiencies and throughputs over round robin, as the paper tells them or not.
fn made_up(efficiency: impl Fn(M, u64) -> f64, over: impl Fn(S) -> f64, median_us: f64) -> LiveCloning {
    let mut live = LiveCloning {
        startup: Some(LiveStartup { clones: 100, median_us, p99_us: 2.0 * median_us }),
        ..LiveCloning::default()
    };
    for size_bytes in SIZES_BYTES {
        for mechanism in M::FIGURE {
            // The middle one of the rounds counts.
            for (round, factor) in [(1, 0.5), (2, 1.0), (3, 2.0)] {
                let with_rps = 1000.0 * factor * efficiency(mechanism, size_bytes);
                live.micro.push(LiveRound { mechanism, size_bytes, round, with_rps, alone_rps: 1000.0 });
            }
        }
    }
    for seed in [1, 2] {
        for strategy in [S::RoundRobin, S::CfLfu] {
            live.nodes.push(run(strategy, 1, seed, 100.0 * over(strategy)));
        }
        for nodes in [2, 4, 8] {
            let at = |s| run(s, nodes, seed, 100.0 * nodes as f64 * over(s));
            live.nodes.extend(S::FIGURE.map(at));
        }
    }
    live
}

fn verdicts(live: &LiveCloning, simulated_over: f64) -> Vec<(String, Verdict)> {
    let of = |run: &LiveRun| SimulatedRun {
        as_read_rps: run.throughput_rps * simulated_over,
        reads_beside_rps: run.throughput_rps * simulated_over,
    };
    let seeds = by_seed(live, &live.nodes.iter().map(of).collect::<Vec<_>>());
    let mut found = rule::evaluate(claims::MICRO, micro(live).as_slice());
    found.extend(rule::evaluate(claims::NODES, &seeds));
    found.extend(rule::evaluate(claims::CONTROLS, &seeds));
    found.into_iter().map(|claim| (claim.id.to_owned(), claim.verdict)).collect()
}

#[test]
fn the_papers_own_figures_meet_live_claims() {
    let efficiency = |mechanism: M, size: u64| {
        let doublings = (size as f64).log2();
        match mechanism {
            M::Cloning => (0.8 + (doublings - 6.0) * 0.025).min(0.99),
            M::Forwarding if size <= 1024 => 0.75,
            M::Forwarding => (0.75 - (doublings - 10.0) * 0.05).max(0.5),
            _ => (0.4 + (doublings - 6.0) * 0.05).min(0.78),
        }
    };
    let over = |strategy: S| match strategy {
        S::RoundRobin => 1.0,
        S::CfLru => 0.93,
        S::CfLfu => 0.98,
        S::ScLfu => 2.0,
        _ => 1.86,
    };
    let found = verdicts(&made_up(efficiency, over, 46.0), 1.1);
    assert_eq!(found.len(), 8 + 5 + 3, "{found:?}");
    for (id, verdict) in found {
        // The crossover is at 7 KB with these straight lines.
        assert!(verdict == Verdict::Holds || id == "l6", "{id}: {verdict:?}");
    }
}

#[test]
fn live_claims_fail_where_measurements_say_otherwise() {
    let efficiency = |mechanism: M, size: u64| match mechanism {
        M::Cloning => 0.3,
        M::Forwarding => 0.5 + (size as f64).log2() / 50.0,
        _ => 0.95,
    };
    let over = |strategy: S| match strategy {
        S::RoundRobin => 1.0,
        S::CfLru => 1.2,
        S::CfLfu => 1.1,
        S::ScLfu => 0.8,
        _ => 0.9,
    };
    let found = verdicts(&made_up(efficiency, over, 90.0), 2.0);
    let holds: Vec<&str> =
        found.iter().filter(|(_, verdict)| *verdict == Verdict::Holds).map(|(id, _)| id.as_str()).collect();
    // Of CF nothing is too small below 1 KB, and round robin grows.
    assert_eq!(holds, ["l4", "n5"], "{found:?}");
}

#[test]
fn with_one_node_strategies_with_the_same_memory_are_one() {
    let live = made_up(|_, _| 0.5, |_| 1.0, 50.0);
    let simulated = vec![SimulatedRun { as_read_rps: 1.0, reads_beside_rps: 1.0 }; live.nodes.len()];
    let seeds = by_seed(&live, &simulated);
    assert_eq!(seeds.len(), 2);
    assert_eq!(seeds[0].nodes(), [1, 2, 4, 8]);
    for strategy in S::FIGURE {
        assert!(seeds[0].of(strategy, 1).is_some(), "{strategy:?}");
    }
    assert!(seeds[0].of(S::Sc, 3).is_none());
}
