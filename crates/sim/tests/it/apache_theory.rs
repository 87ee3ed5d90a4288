//! The Apache model against theory, and with random faults, readings and front-ends.

use plimsoll_policy::{BackendId, Health, Nanos, Rng, Time};
use plimsoll_sim::models::apache::ApacheParams;
use plimsoll_sim::{AnswerKind, Fault, FaultAction, SimRequest};
use proptest::prelude::*;

use crate::apache_run::{ApacheRun, MS, not_modified, plain};
use crate::common::request;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the faults, kinds, versions and readings: every request ends exactly once, no unit is busy for more than the time
    /// there is, and equal runs are equal.
    #[test]
    fn every_connection_ends_once(
        seed in any::<u64>(),
        backends in 1usize..4,
        readings in prop::array::uniform6(0u32..2),
        (scheduler, front_end) in (0u32..4, 0u32..4),
        few in 1u32..20,
        faults in prop::collection::vec((0u64..20_000, 0u16..4, 0u8..3), 0..6),
        gap_ms in 1u64..40,
        warmup in 0u64..100,
    ) {
        let mut faults: Vec<Fault> = faults
            .into_iter()
            .map(|(ms, b, health)| Fault {
                at: Time::from_nanos(ms * MS),
                backend: BackendId(b % backends as u16),
                action: FaultAction::Health([Health::Up, Health::Down, Health::Draining][usize::from(health)]),
            })
            .collect();
        faults.sort_by_key(|f| f.at);
        let sizes: Vec<u64> = (0..40u64).map(|n| n * n * n * 4).collect();
        let requests: Vec<SimRequest> = (0..800u64)
            .map(|n| SimRequest {
                client: (n * 7 % 30) as u32,
                http11: n % 3 == 0,
                answer: [AnswerKind::Document, AnswerKind::NotModified, AnswerKind::Document][n as usize % 3],
                ..request((n * n % 40) as u32, sizes[(n * n % 40) as usize], n * gap_ms)
            })
            .collect();
        let params = ApacheParams {
            start_servers: few,
            max_clients: few,
            backlog: few,
            scheduler,
            front_end,
            counted_from_syn: readings[0],
            counted_until_fin: readings[1],
            held_from_syn: readings[2],
            http11_of_input: readings[3],
            context_switch_us: 35.0 * f64::from(readings[4]),
            http11_share: 0.3 * f64::from(readings[5]),
            dynamic_share: 0.1,
            keep_alive_s: Nanos::from_secs(1),
            ..ApacheParams::default()
        };
        for policy in ["round_robin", "least_connections", "random_polling", "lard_r"] {
            let run = ApacheRun {
                params, policy, backends, seed, faults: faults.clone(), sizes: sizes.clone(), cache_bytes: 300_000,
                ..ApacheRun::default()
            };
            let (outcome, decisions) = run.run(&requests);
            prop_assert_eq!(outcome.completed + outcome.lost + outcome.rejected, 800, "{}", policy);
            let of = outcome.connections.as_ref().unwrap();
            prop_assert_eq!(of.user_latency_ns.count(), outcome.completed);
            let last_attempt = if front_end > 0 { 0 } else { 2 };
            prop_assert!(of.given_up <= outcome.rejected && of.given_up == of.refusals[last_attempt]);
            for b in &outcome.backends {
                for share in [b.idle_ratio, outcome.busy(b.usage.cpu, 1), outcome.busy(b.usage.disk, 1)] {
                    prop_assert!((0.0..=1.0 + 1e-9).contains(&share), "{} share {share}", policy);
                }
            }
            let (again, same) = run.run(&requests);
            prop_assert_eq!(&decisions, &same);
            prop_assert_eq!(again.response_ns.mean(), outcome.response_ns.mean());
            if outcome.completed > warmup + 50 {
                let (later, _) = ApacheRun { warmup, ..run }.run(&requests);
                prop_assert_eq!(later.completed + later.lost + later.rejected, later.requests);
            }
        }
    }
}

/// M/M/1 by first come first served and by processor sharing: one back-end, no network, exponential work.
#[test]
fn the_cpu_meets_theory() {
    let mut rng = Rng::new(5, 0);
    let (requests, load) = (400_000u64, 0.7);
    let mut at = 0.0;
    let requests: Vec<SimRequest> = (0..requests)
        .map(|_| {
            at += rng.exponential() * 1e7 / load;
            let service = Nanos::new((rng.exponential() * 1e7) as u64 + 1);
            SimRequest { time: Time::from_nanos(at as u64), service, ..not_modified(0) }
        })
        .collect();
    for scheduler in [2, 3] {
        let params = ApacheParams {
            establish_us: 0.0,
            teardown_us: 0.0,
            basic_us: 0.0,
            no_document_us: 0.0,
            round_trip_s: Nanos::ZERO,
            scheduler,
            ..plain()
        };
        let (outcome, _) = ApacheRun { params, warmup: 10_000, ..ApacheRun::default() }.run(&requests);
        // 10 ms / (1 - 0.7); the standard error of the mean over these requests is below 0.4 ms.
        let mean_ms = outcome.connections.as_ref().unwrap().server_latency_ns.mean().unwrap() / 1e6;
        assert!((mean_ms - 33.33).abs() < 1.6, "{scheduler}: {mean_ms}");
        assert!((outcome.cpu_utilization() - load).abs() < 0.01);
    }
}
