//! The engine: order, admission, faults, determinism.

use plimsoll_policy::{
    AdmissionLimit, BackendId, Candidates, Capabilities, ClusterView, Decision, Health, Nanos, Policy, Polls,
    REGISTRY, Request, Time,
};
use plimsoll_sim::{Arrivals, DecisionMade, Fault, FaultAction, RunError, RunOutcome, SimRequest};
use proptest::prelude::*;

use crate::common::{Setup, request, targets};

fn at_ms(ms: u64) -> Time {
    Time::ZERO + Nanos::from_millis(ms)
}

fn health(ms: u64, backend: u16, health: Health) -> Fault {
    Fault { at: at_ms(ms), backend: BackendId(backend), action: FaultAction::Health(health) }
}

/// `count` requests, one every `every_ms`, over 50 targets of 10 KB.
fn steady(count: u64, every_ms: u64) -> Vec<SimRequest> {
    (0..count).map(|n| request((n * 7 % 50) as u32, 10_240, n * every_ms)).collect()
}

#[test]
fn requests_are_numbered_in_arrival_order_and_each_is_decided_once() {
    let setup = Setup { policy: "lard", backends: 3, ..Setup::default() };
    let (outcome, decisions) = setup.lard(&targets(&[10_240; 50]), &steady(200, 1));
    assert_eq!(outcome.completed, 200);
    let numbers: Vec<u64> = decisions.iter().map(|d| d.request).collect();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    assert!(decisions.windows(2).all(|w| w[0].time <= w[1].time));
    assert_eq!(decisions[5].time, at_ms(5));
}

#[test]
fn the_admission_limit_holds_requests_at_the_front_end() {
    let setup = Setup { limit: AdmissionLimit::Fixed(1), ..Setup::default() };
    let requests = [request(0, 0, 0), request(0, 0, 0), request(0, 0, 0)];
    let (outcome, decisions) = setup.lard(&targets(&[100]), &requests);
    // 290 µs each, one after the other; waiting counts as response time.
    let times: Vec<u64> = decisions.iter().map(|d| d.time.as_nanos() / 1000).collect();
    assert_eq!(times, [0, 290, 580]);
    assert_eq!(outcome.response_ns.max(), Some(870_000));
    assert_eq!(outcome.backends[0].mean_load, 1.0);
}

#[test]
fn a_failed_backend_loses_its_requests_and_gets_no_more() {
    let faults = vec![health(50, 0, Health::Down)];
    let setup = Setup { policy: "round_robin", backends: 2, faults, ..Setup::default() };
    let (outcome, decisions) = setup.lard(&targets(&[10_240; 50]), &steady(400, 1));
    assert!(outcome.lost > 0, "misses were in progress at 50 ms");
    assert_eq!(outcome.completed + outcome.lost, 400);
    assert_eq!(outcome.rejected, 0);
    assert!(decisions.iter().filter(|d| d.time >= at_ms(50)).all(|d| d.backend == BackendId(1)));
}

#[test]
fn a_backend_comes_back_with_an_empty_memory() {
    let faults = vec![health(500, 0, Health::Down), health(600, 0, Health::Up)];
    let setup = Setup { faults, ..Setup::default() };
    let requests = [request(0, 10_240, 0), request(0, 10_240, 400), request(0, 10_240, 700)];
    let (outcome, _) = setup.lard(&targets(&[10_240]), &requests);
    assert_eq!(outcome.backends[0].usage.reads, 2);
    assert_eq!(outcome.completed, 3);
}

#[test]
fn without_any_backend_saturated_arrivals_wait_for_one() {
    let faults = vec![health(0, 0, Health::Down), health(5_000, 0, Health::Up)];
    let limit = AdmissionLimit::Lard(plimsoll_policy::Thresholds::default());
    let setup = Setup { faults, limit, arrivals: Arrivals::Closed, ..Setup::default() };
    let (outcome, decisions) = setup.lard(&targets(&[10_240; 50]), &steady(50, 0));
    assert_eq!((outcome.completed, outcome.lost), (50, 0));
    assert!(decisions.iter().all(|d| d.time >= at_ms(5_000)));
}

#[test]
fn without_any_backend_ever_everything_is_rejected() {
    let faults = vec![health(0, 0, Health::Down)];
    let limit = AdmissionLimit::Lard(plimsoll_policy::Thresholds::default());
    let setup = Setup { faults, limit, ..Setup::default() };
    let (outcome, _) = setup.lard(&targets(&[10_240; 50]), &steady(50, 10));
    assert_eq!((outcome.requests, outcome.rejected), (50, 50));
    assert_eq!(outcome.throughput_rps(), 0.0);
}

#[test]
fn draining_finishes_what_was_begun() {
    let faults = vec![health(5, 0, Health::Draining)];
    let setup = Setup { policy: "round_robin", backends: 2, faults, ..Setup::default() };
    let (outcome, _) = setup.lard(&targets(&[10_240; 50]), &steady(100, 1));
    assert_eq!((outcome.completed, outcome.lost), (100, 0));
}

#[test]
fn the_warm_up_is_not_measured() {
    let setup = Setup { warmup: 50, ..Setup::default() };
    let (outcome, _) = setup.lard(&targets(&[10_240; 50]), &steady(150, 100));
    assert_eq!((outcome.requests, outcome.completed), (100, 100));
    assert_eq!(outcome.miss_ratio(), Some(0.0), "every target was read during the warm-up");
    assert!((outcome.simulated.as_secs_f64() - 10.0).abs() < 0.1);
}

/// Fifty reads of 28 ms and more come in half a second, and then the same fifty, twice.
#[test]
fn what_waits_behind_a_warm_up_counts_unless_the_run_settles() {
    let of = |arrivals, settles, warmup| {
        let setup = Setup { arrivals, warmup, settles, ..Setup::default() };
        let (outcome, decisions) = setup.lard(&targets(&[10_240; 50]), &steady(150, 100));
        assert_eq!((outcome.requests, outcome.completed), (150 - warmup, 150 - warmup));
        assert_eq!(decisions.len(), 150);
        outcome.response_ns.max().unwrap() as f64 / 1e6
    };
    // The same by the input's own times.
    for arrivals in [Arrivals::Poisson { rate_rps: 100.0 }, Arrivals::Trace { speed: 10.0 }] {
        let slowest_ms = |settles, warmup| of(arrivals, settles, warmup);
        assert!(slowest_ms(false, 50) > 500.0, "{}", slowest_ms(false, 50));
        assert!(slowest_ms(true, 50) < 20.0, "{}", slowest_ms(true, 50));
        // Without a warm-up nothing is waited for.
        assert_eq!(slowest_ms(true, 0), slowest_ms(false, 0));
    }
}

#[test]
fn speed_compresses_time() {
    let setup = Setup { arrivals: Arrivals::Trace { speed: 4.0 }, ..Setup::default() };
    let (_, decisions) = setup.lard(&targets(&[10_240; 50]), &steady(10, 100));
    assert_eq!(decisions[9].time, at_ms(225));
}

#[test]
fn a_weight_at_time_zero_counts_from_the_first_request() {
    let action = FaultAction::Weight(plimsoll_policy::Weight::ZERO);
    let faults = vec![Fault { at: Time::ZERO, backend: BackendId(0), action }];
    let setup = Setup { policy: "round_robin", backends: 2, faults, ..Setup::default() };
    let (_, decisions) = setup.lard(&targets(&[10_240; 50]), &steady(20, 0));
    assert!(decisions.iter().all(|d| d.backend == BackendId(1)));
}

#[test]
fn saturated_arrivals_wait_out_a_cluster_without_backends_whatever_the_limit() {
    let faults = vec![health(100, 0, Health::Down), health(1_000, 0, Health::Up)];
    for limit in [AdmissionLimit::Fixed(5), AdmissionLimit::Lard(plimsoll_policy::Thresholds::default())] {
        let setup = Setup { faults: faults.clone(), limit, arrivals: Arrivals::Closed, ..Setup::default() };
        let (outcome, _) = setup.lard(&targets(&[10_240; 50]), &steady(500, 0));
        assert_eq!(outcome.rejected, 0);
        assert!(outcome.lost <= 24 && outcome.completed == 500 - outcome.lost);
    }
}

#[test]
fn work_cut_off_by_a_failure_counts_as_far_as_it_was_done() {
    // One read of 28 ms and more, cut off after 10 ms.
    let setup = Setup { faults: vec![health(10, 0, Health::Down)], ..Setup::default() };
    let (outcome, _) = setup.lard(&targets(&[10_240]), &[request(0, 10_240, 0)]);
    assert_eq!((outcome.completed, outcome.lost), (0, 1));
    assert_eq!(outcome.simulated, Nanos::from_millis(10));
    assert_eq!(outcome.backends[0].usage.disk, Nanos::from_micros(10_000 - 145));
    assert_eq!(outcome.backends[0].mean_load, 1.0);
}

#[test]
fn time_beyond_the_clock_is_an_error() {
    let arrivals = Arrivals::Trace { speed: 1e-12 };
    let setup = Setup { arrivals, ..Setup::default() };
    assert_eq!(setup.try_lard(&targets(&[100; 50]), &steady(100, 1000)).err(), Some(RunError::TimeOverflow));
}

#[test]
fn a_warm_up_that_takes_everything_is_an_error() {
    for warmup in [20, 1000] {
        let setup = Setup { warmup, ..Setup::default() };
        let result = setup.try_lard(&targets(&[10_240; 50]), &steady(20, 10));
        assert_eq!(result.err(), Some(RunError::OnlyWarmUp { warmup }));
    }
}

/// Asks all back-ends, and takes the least loaded one that answers.
struct AsksAll;

static CAPABILITIES: Capabilities = Capabilities::NONE.polls::<AsksAll>();

impl Policy for AsksAll {
    fn choose(&mut self, _: &Request, view: &ClusterView, _: Time) -> Decision {
        Decision::Poll(Candidates::new(view.eligible_ids()))
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl Polls for AsksAll {}

fn asking(poll_time: Nanos, limit: AdmissionLimit, faults: Vec<Fault>) -> (RunOutcome, Vec<DecisionMade>) {
    let setup = Setup { backends: 2, poll_time, limit, faults, ..Setup::default() };
    let requests = [request(0, 0, 0), request(0, 0, 0), request(0, 0, 100)];
    setup.lard_with(Box::new(AsksAll), &targets(&[100]), &requests)
}

#[test]
fn polls_take_their_time_and_their_answers_are_the_loads_at_its_end() {
    let decided = |decisions: Vec<DecisionMade>| -> Vec<(u64, u16)> {
        decisions.iter().map(|d| (d.time.as_nanos() / 1000, d.backend.0)).collect()
    };
    let (at_once, decisions) = asking(Nanos::ZERO, AdmissionLimit::Unlimited, Vec::new());
    assert_eq!(decided(decisions), [(0, 0), (0, 1), (100_000, 0)]);
    // Two polls under way do not know of one another; the first to end is load for the second.
    let (late, decisions) = asking(Nanos::from_millis(2), AdmissionLimit::Unlimited, Vec::new());
    assert_eq!(decided(decisions), [(2_000, 0), (2_000, 1), (102_000, 0)]);
    // A poll is part of the response time.
    let mean_ns = |outcome: &RunOutcome| outcome.response_ns.mean().unwrap();
    assert!((mean_ns(&late) - mean_ns(&at_once) - 2e6).abs() < 1.0);
    // It holds a place under the admission limit: the second request waits for the first one's answer.
    let (_, decisions) = asking(Nanos::from_millis(2), AdmissionLimit::Fixed(1), Vec::new());
    assert_eq!(decided(decisions), [(2_000, 0), (4_290, 0), (102_000, 0)]);
    // A back-end that goes down meanwhile is not taken.
    let (_, decisions) =
        asking(Nanos::from_millis(2), AdmissionLimit::Unlimited, vec![health(1, 0, Health::Down)]);
    assert_eq!(decided(decisions), [(2_000, 1), (2_000, 1), (102_000, 1)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the faults and the sizes, also above that of the document: every request is answered, lost or rejected
    /// exactly once; no unit is busy for more than the time there is; equal runs are equal.
    #[test]
    fn every_request_ends_exactly_once(
        seed in any::<u64>(),
        backends in 1usize..5,
        sizes in prop::collection::vec(1u64..300_000, 50),
        faults in prop::collection::vec((0u64..3_000, 0u16..5, 0u8..3), 0..8),
        closed in any::<bool>(),
        global_memory in any::<bool>(),
    ) {
        let mut faults: Vec<Fault> = faults
            .into_iter()
            .map(|(ms, b, h)| {
                health(ms, b % backends as u16, [Health::Up, Health::Down, Health::Draining][usize::from(h)])
            })
            .collect();
        faults.sort_by_key(|f| f.at);
        let requests: Vec<_> = (0..600u64)
            .map(|n| request((n * n % 50) as u32, sizes[(n * n % 50) as usize] * (n % 4) / 2, n * 5))
            .collect();
        let arrivals = if closed { Arrivals::Closed } else { Arrivals::Trace { speed: 1.0 } };
        let limit = AdmissionLimit::Lard(plimsoll_policy::Thresholds { t_low: 3, t_high: 6 });
        for spec in REGISTRY {
            let setup = Setup {
                policy: spec.name, backends, seed, arrivals, limit, global_memory, faults: faults.clone(),
                cache_bytes: 500_000, ..Setup::default()
            };
            let (outcome, decisions) = setup.lard(&targets(&sizes), &requests);
            prop_assert_eq!(outcome.requests, 600);
            prop_assert_eq!(outcome.completed + outcome.lost + outcome.rejected, 600, "{}", spec.name);
            for b in &outcome.backends {
                let disk = outcome.busy(b.usage.disk, outcome.disks);
                for share in [b.idle_ratio, outcome.busy(b.usage.cpu, 1), disk] {
                    prop_assert!((0.0..=1.0 + 1e-9).contains(&share), "{} share {share}", spec.name);
                }
            }
            let (again, same) = setup.lard(&targets(&sizes), &requests);
            prop_assert_eq!(decisions, same);
            prop_assert_eq!(outcome.simulated, again.simulated);
        }
    }
}
