//! Where front-ends' loads come from: what each kind of load information costs, and what it is worth.

use plimsoll_policy::{AdmissionLimit, Health, Nanos, PolicyChoice, REGISTRY, Thresholds};
use plimsoll_sim::{
    Arrivals, BroadcastParams, CentralParams, FaultAction, LoadInformation, LoadMessages, PartitionPlan,
    PollParams, RunOutcome, TimeDistribution, TimeShape,
};

use crate::common::{request, targets};
use crate::load_information_faults::fault;
use crate::spread::{SERVICE, Spread, poisson};
use crate::theory::{check, interval};

/// Polls of `size` back-ends, at once and for nothing.
fn instant_polls(size: u32) -> PollParams {
    PollParams { size, latency_s: Nanos::ZERO, ..PollParams::default() }
}

fn poll(how: PollParams) -> Option<LoadInformation> {
    Some(LoadInformation::Poll(how))
}

fn broadcast(interval_s: Nanos, counts_own: u32) -> Option<LoadInformation> {
    let how =
        BroadcastParams { interval_s, counts_own, latency_s: Nanos::ZERO, ..BroadcastParams::default() };
    Some(LoadInformation::Broadcast(how))
}

fn central(latency_s: Nanos) -> Option<LoadInformation> {
    Some(LoadInformation::Central(CentralParams { latency_s }))
}

fn probes(policy: &str) -> bool {
    let policy =
        policy.parse::<PolicyChoice>().unwrap().build(&plimsoll_policy::BuildContext::default()).unwrap();
    policy.capabilities().can_probe()
}

/// Theory lies within `tolerance` of the mean, and the confidence interval is no wider.
fn near(name: &str, values: &[f64], theory: f64, tolerance: f64) {
    let (mean, half) = interval(values);
    assert!(half < tolerance, "{name}: {mean} ± {half}, too wide to show anything");
    assert!((mean - theory).abs() < tolerance, "{name}: {mean} ± {half}, theory {theory}");
}

#[test]
fn a_single_front_end_with_own_loads_knows_all() {
    for spec in REGISTRY {
        let own = Spread { policy: spec.name, loads: Some(LoadInformation::Own), ..Spread::default() };
        let exact = Spread { loads: Some(LoadInformation::Exact), ..own.clone() };
        // What probes is told response times, too, where back-ends are asked.
        if !probes(spec.name) {
            let decisions = own.decisions(2_000);
            assert_eq!(decisions, exact.decisions(2_000), "{}", spec.name);
            assert_eq!(decisions, Spread { loads: None, ..own }.decisions(2_000), "{}", spec.name);
        }
    }
}

#[test]
fn a_manager_at_no_distance_is_one_front_end() {
    for spec in REGISTRY {
        let loads = central(Nanos::ZERO);
        let central = Spread { policy: spec.name, loads, front_ends: 4, ..Spread::default() };
        let one = Spread { loads: Some(LoadInformation::Own), front_ends: 1, ..central.clone() };
        assert_eq!(central.decisions(2_000), one.decisions(2_000), "{}", spec.name);
    }
}

#[test]
fn with_exact_loads_several_front_ends_are_as_good_as_one() {
    for (load, requests, theory, tolerance) in [(0.5, 100_000, 1.005, 0.01), (0.9, 400_000, 1.575, 0.04)] {
        let loads = Some(LoadInformation::Exact);
        let several = Spread { loads, front_ends: 16, arrivals: poisson(load, 16), ..Spread::default() };
        near("exact", &several.responses(requests), theory, tolerance);
    }
}

#[test]
fn instant_polls_of_two_are_two_choices() {
    for (load, requests, theory, tolerance) in [(0.5, 120_000, 1.277, 0.01), (0.9, 1_200_000, 2.83, 0.03)] {
        let loads = poll(instant_polls(2));
        let arrivals = poisson(load, 16);
        let polls = Spread { policy: "random_polling", loads, front_ends: 16, arrivals, ..Spread::default() };
        near("poll", &polls.responses(requests), theory, tolerance);
    }
}

#[test]
fn own_counts_of_many_front_ends_mislead() {
    let exact = Spread { loads: Some(LoadInformation::Exact), front_ends: 16, ..Spread::default() };
    let own = Spread { loads: Some(LoadInformation::Own), ..exact.clone() };
    let random = Spread { policy: "random", ..exact.clone() };
    let [exact, own, random] = [exact, own, random].map(|spread| spread.response(40_000));
    assert!(2.0 * exact < own && own < random, "{exact} {own} {random}");
}

#[test]
fn broadcasts_flock_and_approach_exact_loads() {
    let exact = Spread { loads: Some(LoadInformation::Exact), front_ends: 4, ..Spread::default() };
    let by_broadcast = |interval, counts_own| {
        Spread { loads: broadcast(interval, counts_own), ..exact.clone() }.response(20_000)
    };
    let best = exact.response(20_000);
    let flocking = by_broadcast(Nanos::from_secs(1), 0);
    assert!(flocking > 8.0 * best, "{flocking} against {best}");
    // Whoever counts what it sends itself does not send all of it to one back-end.
    let counting = by_broadcast(Nanos::from_secs(1), 1);
    assert!(2.0 * counting < flocking, "{counting} against {flocking}");
    let means = [100, 20, 5, 1].map(|ms| by_broadcast(Nanos::from_millis(ms), 0));
    assert!(means.is_sorted_by(|before, after| before > after), "{means:?}");
    assert!(means[3] < 1.1 * best, "{means:?} against {best}");
}

/// The answers that come too late are those that are read late: `utilization * late_share * e^(-patience / late_mean)`. With these
/// parameters 8.1 % of the inquiries take more than 10 ms and 5.6 % more than 20 ms.
#[test]
fn as_many_answers_are_late_as_asked() {
    for (patience_ms, share) in [(10, 0.081), (20, 0.056)] {
        let discard_after_s = Nanos::from_millis(patience_ms);
        let late_mean_s = Nanos::new(27_100_000);
        let how = PollParams { late_share: 0.13, late_mean_s, discard_after_s, ..instant_polls(3) };
        let polls = Spread { policy: "random_polling:size=3", loads: poll(how), ..Spread::default() };
        let discarded = |outcome: &RunOutcome| {
            let messages = &outcome.load_messages;
            messages.discarded as f64 / messages.inquiries as f64
        };
        let theory = 0.9 * 0.13 * (-(patience_ms as f64) / 27.1).exp();
        assert!((theory - share).abs() < 0.0005, "{theory}");
        check("late answers", &polls.figures(100_000, discarded), theory);
    }
}

#[test]
fn inquiries_cost_cpu() {
    let cpu = Nanos::from_millis(2);
    for latency_s in [Nanos::ZERO, Nanos::from_micros(258)] {
        let free = Spread { loads: poll(instant_polls(2)), backends: 4, ..Spread::default() };
        let mut free = Spread { policy: "random_polling", arrivals: poisson(0.5, 4), ..free };
        free.fifo.latency_s = latency_s;
        let paid = Spread { loads: poll(PollParams { cpu_s: cpu, ..instant_polls(2) }), ..free.clone() };
        let utilization = |spread: &Spread<'_>| spread.figures(100_000, RunOutcome::cpu_utilization);
        check("without", &utilization(&free), 0.5);
        // Each back-end has half of the rate that one could serve, and twice as many inquiries.
        let inquiries_per_s = 2.0 * 0.5 / SERVICE.as_secs_f64();
        check("with", &utilization(&paid), 0.5 + inquiries_per_s * cpu.as_secs_f64());
        assert!(paid.response(20_000) > free.response(20_000));
    }
}

#[test]
fn no_inquiry_makes_a_back_end_busier_than_the_time_there_is() {
    let how =
        PollParams { size: 5, latency_s: Nanos::ZERO, cpu_s: Nanos::from_millis(2), ..PollParams::default() };
    let spread = Spread {
        policy: "weighted_round_robin",
        backends: 5,
        loads: poll(how),
        arrivals: Arrivals::Closed,
        limit: AdmissionLimit::Lard(Thresholds { t_low: 1, t_high: 2 }),
        service: Some(TimeDistribution { mean_ns: 1.2e7, shape: TimeShape::Deterministic }),
        ..Spread::default()
    };
    let outcome = spread.run(400);
    let busy: Vec<f64> = outcome.backends.iter().map(|b| outcome.busy(b.usage.cpu, 1)).collect();
    assert!(busy.iter().all(|busy| (0.9..=1.0).contains(busy)), "{busy:?}");
}

/// A load that was told a moment ago need not be asked for again: small ages cost nothing, large ones save most inquiries.
#[test]
fn loads_that_are_known_are_not_asked_for() {
    let of = |age: Nanos| {
        let how = PollParams { max_age_s: age, ..PollParams::default() };
        let spread =
            Spread { policy: "random_polling", loads: poll(how), front_ends: 4, ..Spread::default() };
        let asked = |outcome: &RunOutcome| outcome.load_messages.inquiries as f64 / outcome.completed as f64;
        (asked(&spread.run(20_000)), spread.response(60_000))
    };
    let (always, best) = of(Nanos::ZERO);
    assert!((always - 2.0).abs() < 1e-9, "two for each request: {always}");
    // A front-end polls a back-end nine times a second: the share of polls that find a load younger than 0.5 ms, and 5 ms.
    for (age, saved) in [(Nanos::from_micros(500), 0.0045), (Nanos::from_millis(5), 0.045)] {
        let (asked, response) = of(age);
        assert!((1.0 - asked / 2.0 - saved).abs() < 0.5 * saved, "{age:?}: {asked}");
        assert!(response < 1.05 * best, "{age:?}: {response} against {best}");
    }
    let (asked, response) = of(Nanos::new(10 * SERVICE.as_nanos()));
    assert!(asked < 0.5, "{asked}");
    assert!(response > 1.05 * best, "old loads mislead: {response} against {best}");
}

#[test]
fn announcements_cost_who_sends_and_who_receives_them() {
    let how = BroadcastParams {
        interval_s: Nanos::from_millis(100),
        jittered: 0,
        cpu_s: Nanos::from_micros(30),
        receive_cpu_s: Nanos::from_micros(10),
        ..BroadcastParams::default()
    };
    let loads = Some(LoadInformation::Broadcast(how));
    let outcome = Spread { loads, front_ends: 4, ..Spread::default() }.run(10_000);
    let LoadMessages { messages, cpu, receive_cpu, .. } = outcome.load_messages;
    // Each message is one announcement at one of four front-ends.
    assert_eq!(cpu.as_nanos(), messages / 4 * 30_000);
    // The last ones may be on their way.
    let received = receive_cpu.as_nanos() / 10_000;
    assert!(received <= messages && received + 4 * 16 >= messages, "{received} of {messages}");
}

#[test]
fn messages_are_counted() {
    let messages = |loads, policy, front_ends| {
        let outcome = Spread { policy, loads, front_ends, ..Spread::default() }.run(10_000);
        assert_eq!(outcome.completed, 10_000);
        (outcome.load_messages.messages, outcome.simulated)
    };
    for (size, policy) in
        [2, 3, 8].into_iter().zip(["random_polling", "random_polling:size=3", "random_polling:size=8"])
    {
        assert_eq!(messages(poll(instant_polls(size)), policy, 4).0, 2 * u64::from(size) * 10_000);
        assert_eq!(
            messages(poll(instant_polls(size)), "least_connections", 4).0,
            2 * u64::from(size) * 10_000
        );
    }
    assert_eq!(messages(central(Nanos::from_micros(170)), "random", 4).0, 3 * 10_000);
    for own in [LoadInformation::Own, LoadInformation::Exact] {
        assert_eq!(messages(Some(own), "random", 4).0, 0);
    }
    let interval_s = Nanos::from_millis(100);
    let how = BroadcastParams { interval_s, jittered: 0, ..BroadcastParams::default() };
    let (sent, simulated) = messages(Some(LoadInformation::Broadcast(how)), "join_shortest_queue", 4);
    assert_eq!(sent, 16 * 4 * (simulated.as_nanos() / interval_s.as_nanos()));
    let (jittered, simulated) = messages(broadcast(interval_s, 1), "join_shortest_queue", 4);
    let expected = 16.0 * 4.0 * simulated.as_secs_f64() / interval_s.as_secs_f64();
    assert!((jittered as f64 / expected - 1.0).abs() < 0.02, "{jittered} of {expected}");
}

/// Latencies add to the response time what they are, where they change no decision.
#[test]
fn latencies_add_up() {
    let latency = Nanos::from_micros(258);
    let near = Spread { policy: "random", front_ends: 4, loads: poll(instant_polls(2)), ..Spread::default() };
    let mut far = near.clone();
    far.fifo.latency_s = latency;
    let polled =
        Spread { loads: poll(PollParams { latency_s: latency, ..instant_polls(2) }), ..near.clone() };
    let managed = Spread { loads: central(latency), ..near.clone() };
    let unmanaged = Spread { loads: central(Nanos::ZERO), ..near.clone() };
    for (without, with) in [(&near, &far), (&near, &polled), (&unmanaged, &managed)] {
        let [without, with] = [without.run(5_000), with.run(5_000)];
        let (before, after) = (without.response_ns, with.response_ns);
        assert_eq!(after.max().unwrap() - before.max().unwrap(), 2 * latency.as_nanos());
        let added = after.mean().unwrap() - before.mean().unwrap();
        assert!((added - 2.0 * latency.as_nanos() as f64).abs() < 1.0, "{added}");
    }
}

#[test]
fn one_partition_is_none() {
    for loads in [LoadInformation::Exact, LoadInformation::Own, poll(instant_polls(2)).unwrap()] {
        let whole = Spread { loads: Some(loads), front_ends: 3, ..Spread::default() };
        let one = Spread { partitions: PartitionPlan::InTurn(1), ..whole.clone() };
        assert_eq!(whole.decisions(2_000), one.decisions(2_000));
    }
}

/// Requests of a partition without a back-end fail in a closed loop, and those of the others go on.
#[test]
fn a_partition_without_a_back_end_fails_alone() {
    let partitions = PartitionPlan::Listed(vec![vec![0], vec![1, 2]]);
    let hosts = partitions.on(3).unwrap();
    let targets = targets(&[1_000; 40]);
    let requests: Vec<_> = (0..2_000).map(|n| request(n % 40, 1_000, u64::from(n))).collect();
    let of_first = (0..2_000).filter(|n| hosts.of_target(targets.id[n % 40]) == 0).count() as u64;
    for loads in [LoadInformation::Exact, LoadInformation::Own, central(Nanos::ZERO).unwrap()] {
        let spread = Spread {
            loads: Some(loads),
            backends: 3,
            partitions: partitions.clone(),
            arrivals: Arrivals::Closed,
            limit: AdmissionLimit::Lard(Thresholds { t_low: 3, t_high: 6 }),
            faults: vec![fault(0, 0, FaultAction::Health(Health::Down))],
            ..Spread::default()
        };
        let (outcome, _) = spread.on_fifo(&targets, &requests);
        assert_eq!((outcome.completed, outcome.rejected), (2_000 - of_first, of_first), "{loads:?}");
    }
}

/// Where a back-end hosts two partitions, what a front-end has assigned for one of them counts for the other.
#[test]
fn shared_back_ends_count_for_all_their_partitions() {
    let partitions = PartitionPlan::Listed(vec![vec![0, 1], vec![0, 2]]);
    let targets = targets(&[1_000; 40]);
    let requests: Vec<_> = (0..4_000).map(|n| request(n % 40, 1_000, u64::from(n))).collect();
    let spread = |loads| Spread {
        loads: Some(loads),
        backends: 3,
        partitions: partitions.clone(),
        arrivals: poisson(0.8, 3),
        ..Spread::default()
    };
    let [exact, own] = [LoadInformation::Exact, LoadInformation::Own]
        .map(|loads| spread(loads).on_fifo(&targets, &requests).1);
    assert_eq!(exact, own, "a single front-end knows all");
}
