//! The `AdaptLoad` back-end by hand: every figure here is worked out from section 5 of the paper.

use std::collections::VecDeque;

use plimsoll_policy::{BackendId, Health, Kind, Nanos, REGISTRY, Time};
use plimsoll_sim::models::adaptload::AdaptLoadModelParams;
use plimsoll_sim::{Arrivals, Fault, FaultAction, RunError, RunOutcome, SimRequest};
use proptest::prelude::*;

use crate::common::{Setup, request, targets};

const US: u64 = 1_000;
const KB: u64 = 1024;

/// 28 ms, 14 ms for every further 44 KB or part of them, and 410 µs per 4 KB.
fn read(bytes: u64, further: u64) -> u64 {
    28_000 * US + further * 14_000 * US + bytes * 410 * US / (4 * KB)
}

/// 40 µs per 512 bytes.
fn send(bytes: u64) -> u64 {
    bytes * 40 * US / 512
}

/// Runs requests (target, bytes, ms) on one back-end; returns the sum of response times in ns too.
fn total_ns(sizes: &[u64], requests: &[(u32, u64, u64)], params: &AdaptLoadModelParams) -> (f64, RunOutcome) {
    let requests: Vec<_> = requests.iter().map(|&(t, bytes, ms)| request(t, bytes, ms)).collect();
    let (outcome, _) = Setup::default().adaptload(params, &targets(sizes), &requests);
    assert_eq!(outcome.completed, requests.len() as u64);
    (outcome.response_ns.mean().unwrap() * requests.len() as f64, outcome)
}

#[test]
fn a_document_is_read_then_sent_and_from_then_on_sent_from_memory() {
    let params = AdaptLoadModelParams::default();
    let (total, outcome) = total_ns(&[8 * KB], &[(0, 8 * KB, 0), (0, 8 * KB, 1000)], &params);
    assert_eq!(total, (read(8 * KB, 0) + 2 * send(8 * KB)) as f64);
    assert_eq!(outcome.response_ns.max(), Some(28_820 * US + 640 * US));
    assert_eq!((outcome.miss_ratio(), outcome.joined_ratio()), (Some(0.5), Some(0.0)));
    assert_eq!(outcome.backends[0].usage.cpu, Nanos::new(2 * send(8 * KB)));
    assert_eq!(outcome.backends[0].usage.disk, Nanos::new(read(8 * KB, 0)));
    // Alone it takes 640 µs, with the document cached.
    assert_eq!(outcome.slowdown_permille.quantile(0.5), Some(1_000));
}

#[test]
fn every_further_block_or_part_of_one_costs_a_seek() {
    let params = AdaptLoadModelParams::default();
    for (bytes, further) in [(44 * KB, 0), (44 * KB + 1, 1), (88 * KB, 1), (100 * KB, 2)] {
        let (total, outcome) = total_ns(&[bytes], &[(0, bytes, 0)], &params);
        assert_eq!(total, (read(bytes, further) + send(bytes)) as f64);
        assert_eq!(outcome.backends[0].usage.reads, 1);
    }
}

#[test]
fn responses_are_sent_packet_by_packet_in_turn() {
    // Both documents are in memory by 200 ms. Then 3 packets of 120 µs come, and 50 µs later one of 1 KB, 80 µs.
    let (long, short) = (3 * 1536, KB);
    let warm = [(0, long, 0), (1, short, 0)];
    let setup = Setup { warmup: 2, ..Setup::default() };
    let at =
        |us: u64, t: u32, bytes: u64| SimRequest { time: Time::from_nanos(us * US), ..request(t, bytes, 0) };
    let mut requests: Vec<_> = warm.iter().map(|&(t, bytes, ms)| request(t, bytes, ms)).collect();
    requests.extend([at(200_000, 0, long), at(200_050, 1, short)]);
    let (outcome, _) = setup.adaptload(&AdaptLoadModelParams::default(), &targets(&[long, short]), &requests);
    // The short one is sent from 120 to 200 µs, the long one ends at 440 µs.
    assert_eq!(outcome.response_ns.mean(), Some((440 + 150) as f64 * 1e3 / 2.0));
    assert_eq!(outcome.backends[0].usage.cpu, Nanos::from_micros(440));
}

#[test]
fn a_request_that_comes_when_another_ends_does_not_delay_it() {
    // From memory, 120 µs each, the second exactly when the first ends.
    let at = |us: u64| SimRequest { time: Time::from_nanos(us * US), ..request(0, 1536, 0) };
    let setup = Setup { warmup: 1, ..Setup::default() };
    let requests = [at(0), at(100_000), at(100_120), at(100_240)];
    let (outcome, _) = setup.adaptload(&AdaptLoadModelParams::default(), &targets(&[1536]), &requests);
    assert_eq!((outcome.response_ns.mean(), outcome.response_ns.max()), (Some(120_000.0), Some(120_000)));
}

/// Response times of transmissions (arrival in ns, bytes), packet by packet, summed.
fn packet_by_packet_ns(jobs: &[(u64, u64)]) -> u64 {
    let (mut total, mut queue) = (0, VecDeque::new());
    let mut arrivals = jobs.iter().peekable();
    let mut now = 0;
    loop {
        let Some((came, left)) = queue.pop_front() else {
            let Some(&(came, bytes)) = arrivals.next() else { return total };
            now = came;
            queue.push_back((came, send(bytes)));
            continue;
        };
        let span = send(1536).min(left);
        now += span;
        // Who comes at the very end of a packet stands behind its response.
        while let Some(&(came, bytes)) = arrivals.next_if(|(came, _)| *came < now) {
            queue.push_back((came, send(bytes)));
        }
        if left == span {
            total += now - came;
        } else {
            queue.push_back((came, left - span));
        }
    }
}

#[test]
fn one_read_serves_all_that_wait_whether_it_has_begun_or_not() {
    let size = 512;
    let requests = [(0, size, 0), (1, size, 1), (0, size, 2), (1, size, 3), (1, size, 4)];
    let (total, outcome) = total_ns(&[size, size], &requests, &AdaptLoadModelParams::default());
    assert_eq!((outcome.backends[0].usage.reads, outcome.backends[0].usage.joined), (2, 3));
    // 0 and 2 are sent after the first read, one after the other, the others after the second.
    let (read, send) = (read(size, 0), send(size));
    let ends = [read + send, read + 2 * send, 2 * read + send, 2 * read + 2 * send, 2 * read + 3 * send];
    assert_eq!(total, (ends.iter().sum::<u64>() - (1 + 2 + 3 + 4) * 1_000 * US) as f64);
}

#[test]
fn speed_divides_the_times_of_network_and_disk() {
    let params = AdaptLoadModelParams { speed: 4.0, ..AdaptLoadModelParams::default() };
    let (total, _) = total_ns(&[100 * KB], &[(0, 100 * KB, 0)], &params);
    assert_eq!(total, ((read(100 * KB, 2) + send(100 * KB)) / 4) as f64);
}

#[test]
fn a_connection_costs_network_time_with_every_response() {
    let params = AdaptLoadModelParams { connection_us: 290.0, speed: 2.0, ..AdaptLoadModelParams::default() };
    let (total, outcome) = total_ns(&[8 * KB], &[(0, 8 * KB, 0), (0, 8 * KB, 1000)], &params);
    let sent = 290 * US + send(8 * KB);
    assert_eq!(total, ((read(8 * KB, 0) + 2 * sent) / 2) as f64);
    assert_eq!(outcome.backends[0].usage.cpu, Nanos::new(sent));
    // What a request takes alone has it too.
    assert_eq!(outcome.slowdown_permille.quantile(0.5), Some(1_000));
}

#[test]
fn some_back_ends_can_be_faster() {
    let params =
        AdaptLoadModelParams { fast_backends: 1, fast_speed: 2.0, ..AdaptLoadModelParams::default() };
    let setup = Setup { policy: "round_robin", backends: 3, ..Setup::default() };
    let requests = [0, 1000, 2000].map(|ms| request(0, 8 * KB, ms));
    let (outcome, _) = setup.adaptload(&params, &targets(&[8 * KB]), &requests);
    let usage =
        |b: usize| (outcome.backends[b].usage.cpu.as_nanos(), outcome.backends[b].usage.disk.as_nanos());
    let slow = (send(8 * KB), read(8 * KB, 0));
    assert_eq!([usage(0), usage(1), usage(2)], [(slow.0 / 2, slow.1 / 2), slow, slow]);
    // Slowdowns compare with the fast one, wherever a request was: at most a tick of the histogram apart.
    let slowest = (slow.0 + slow.1) as f64 / (slow.0 / 2) as f64;
    assert!((outcome.slowdown_permille.max().unwrap() as f64 / 1e3 / slowest - 1.0).abs() < 1e-3);
}

#[test]
fn documents_larger_than_the_cache_are_read_every_time() {
    let size = 2048 * KB;
    let (_, outcome) =
        total_ns(&[size], &[(0, size, 0), (0, size, 100_000)], &AdaptLoadModelParams::default());
    assert_eq!(outcome.backends[0].usage.reads, 2);
}

#[test]
fn a_response_without_body_needs_neither_disk_nor_cache() {
    let (total, outcome) = total_ns(&[KB], &[(0, 0, 0), (0, 0, 1)], &AdaptLoadModelParams::default());
    assert_eq!((total, outcome.miss_ratio()), (2.0, Some(0.0)));
    assert_eq!(outcome.slowdown_permille.mean(), Some(1_000.0));
}

#[test]
fn dynamic_requests_share_a_processor_and_are_sent_then() {
    // 4 ms alone for 2 ms, then both at half speed: the second ends after 2 ms more, the first at 5 ms.
    let dynamic = |ms, service| SimRequest {
        service: Nanos::from_millis(service),
        kind: Kind::Dynamic,
        ..request(0, KB, ms)
    };
    let requests = [dynamic(0, 4), dynamic(2, 1)];
    let (outcome, _) =
        Setup::default().adaptload(&AdaptLoadModelParams::default(), &targets(&[KB]), &requests);
    assert_eq!(outcome.response_ns.mean(), Some(((5_000 + 2_000) * US + 2 * send(KB)) as f64 / 2.0));
    assert_eq!(outcome.slowdown_permille.max(), Some((2_080 * 1_000) / 1_080));
    assert_eq!((outcome.miss_ratio(), outcome.backends[0].usage.cpu), (Some(0.0), Nanos::new(2 * send(KB))));
}

#[test]
fn work_cut_off_by_a_failure_counts_as_far_as_it_was_done() {
    let fault = |ms, health| Fault {
        at: Time::ZERO + Nanos::from_millis(ms),
        backend: BackendId(0),
        action: FaultAction::Health(health),
    };
    let size = 1_024_000; // 80 ms on the network
    let faults = vec![fault(1_010, Health::Down), fault(1_020, Health::Up)];
    let setup = Setup { faults, ..Setup::default() };
    // In memory at 1,000 ms and being sent when the back-end fails; then its memory is empty.
    let requests = [request(0, size, 0), request(0, size, 1_000), request(0, size, 1_030)];
    let (outcome, _) = setup.adaptload(&AdaptLoadModelParams::default(), &targets(&[size]), &requests);
    assert_eq!((outcome.completed, outcome.lost, outcome.backends[0].usage.reads), (2, 1, 2));
    assert_eq!(outcome.backends[0].usage.cpu, Nanos::from_millis(80 + 10 + 80));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The whole back-end, with its events, answers as if every packet were simulated. Times and sizes are coarse, so that
    /// arrivals, packets and responses often end together.
    #[test]
    fn the_model_is_exact(jobs in prop::collection::vec((0u64..12, 1u64..12), 1..200), spread in 1u64..4) {
        let sizes: Vec<u64> = (0..12).map(|t| t * 512).collect();
        let mut requests: Vec<_> = (1..12).map(|t| request(t as u32, sizes[t], 0)).collect();
        let start = 10_000_000 * US;
        let mut came = start;
        let jobs: Vec<(u64, u64)> = jobs
            .iter()
            .map(|(gap, size)| {
                came += gap * spread * 20 * US;
                let time = Time::from_nanos(came);
                requests.push(SimRequest { time, ..request(*size as u32, size * 512, 0) });
                (came, size * 512)
            })
            .collect();
        let setup = Setup { warmup: 11, ..Setup::default() };
        let (outcome, _) = setup.adaptload(&AdaptLoadModelParams::default(), &targets(&sizes), &requests);
        prop_assert_eq!((outcome.completed, outcome.miss_ratio()), (jobs.len() as u64, Some(0.0)));
        let total = outcome.response_ns.mean().unwrap() * jobs.len() as f64;
        prop_assert_eq!(total.round(), packet_by_packet_ns(&jobs) as f64);
    }

    /// Whatever the faults, sizes and kinds: every request is answered, lost or rejected exactly once, no unit is busy for
    /// more than the time there is, and equal runs are equal.
    #[test]
    fn every_request_ends_exactly_once(
        seed in any::<u64>(),
        backends in 1usize..5,
        sizes in prop::collection::vec(1u64..300_000, 50),
        faults in prop::collection::vec((0u64..3_000, 0u16..5, 0u8..3), 0..8),
        dynamic in 1u64..10,
        warmup in 0u64..100,
    ) {
        let mut faults: Vec<Fault> = faults
            .into_iter()
            .map(|(ms, b, health)| Fault {
                at: Time::ZERO + Nanos::from_millis(ms),
                backend: BackendId(b % backends as u16),
                action: FaultAction::Health([Health::Up, Health::Down, Health::Draining][usize::from(health)]),
            })
            .collect();
        faults.sort_by_key(|f| f.at);
        let requests: Vec<_> = (0..600u64)
            .map(|n| SimRequest {
                kind: if n % dynamic == 1 { Kind::Dynamic } else { Kind::Static },
                ..request((n * n % 50) as u32, sizes[(n * n % 50) as usize] * (n % 4) / 2, n * 5)
            })
            .collect();
        let params = AdaptLoadModelParams { speed: 3.0, ..AdaptLoadModelParams::default() };
        for spec in REGISTRY {
            let setup = Setup {
                policy: spec.name, backends, seed, faults: faults.clone(), cache_bytes: 500_000, warmup,
                arrivals: Arrivals::Trace { speed: 1.0 }, ..Setup::default()
            };
            let (outcome, decisions) = match setup.try_adaptload(&params, &targets(&sizes), &requests) {
                Ok(run) => run,
                // So many were lost or rejected that the measurement never began.
                Err(error) => {
                    prop_assert!(warmup > 0 && !setup.faults.is_empty(), "{}: {error:?}", spec.name);
                    prop_assert_eq!(error, RunError::OnlyWarmUp { warmup });
                    continue;
                }
            };
            prop_assert_eq!(outcome.completed + outcome.lost + outcome.rejected, outcome.requests, "{}", spec.name);
            for b in &outcome.backends {
                let (cpu, disk) = (outcome.busy(b.usage.cpu, 1), outcome.busy(b.usage.disk, 1));
                for share in [b.idle_ratio, cpu, disk] {
                    prop_assert!((0.0..=1.0 + 1e-9).contains(&share), "{} share {share}", spec.name);
                }
            }
            let (again, same) = setup.adaptload(&params, &targets(&sizes), &requests);
            prop_assert_eq!(decisions, same);
            prop_assert_eq!(outcome.simulated, again.simulated);
        }
    }
}
