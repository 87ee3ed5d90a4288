//! Properties that every policy in the registry has.

use plimsoll_policy::{
    AdmissionLimit, BackendId, BuildContext, Cluster, Completion, Decision, FrontEnd, Health, Kind, Nanos,
    Outcome, REGISTRY, Request, TargetId, Thresholds, Time, Weight, build,
};
use proptest::prelude::*;

/// One thing that happens to a front-end.
#[derive(Debug, Clone)]
enum Step {
    Request { target: u64, size_bytes: Option<u64>, dynamic: bool },
    CompleteOldest,
    Health(u16, u8),
    Weight(u16, u8),
    Advance(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u64..40, prop::option::of(0u64..60_000_000), any::<bool>())
            .prop_map(|(target, size_bytes, dynamic)| Step::Request { target, size_bytes, dynamic }),
        5 => Just(Step::CompleteOldest),
        1 => (0u16..6, 0u8..3).prop_map(|(b, h)| Step::Health(b, h)),
        1 => (0u16..6, 0u8..4).prop_map(|(b, w)| Step::Weight(b, w)),
        2 => (0u32..30_000).prop_map(Step::Advance),
    ]
}

fn completion(target: TargetId, backend: BackendId) -> Completion {
    let response_time = Nanos::from_millis(1);
    Completion { target, backend, outcome: Outcome::Completed, size_bytes: None, response_time }
}

/// The loads add up to what is in progress, and every counter is a number.
fn check_books(name: &str, fe: &FrontEnd, in_progress: u64) {
    let counted: u64 = fe.view().ids().map(|b| u64::from(fe.view().load(b))).sum();
    assert_eq!(counted, in_progress, "{name} loses count");
    for (counter, value) in fe.policy().stats() {
        assert!(value.is_finite() && value >= 0.0, "{name}: {counter} = {value}");
    }
}

/// Plays the steps and checks the contract as it goes; returns every decision.
fn play(name: &str, seed: u64, backends: usize, steps: &[Step]) -> Vec<Decision> {
    let context = BuildContext { seed, cache_bytes: 1 << 20, ..BuildContext::default() };
    let policy = build(name, &context, &[]).unwrap();
    let mut fe = FrontEnd::new(
        policy,
        Cluster::new(backends),
        AdmissionLimit::Lard(Thresholds { t_low: 3, t_high: 5 }),
    );
    let mut in_progress = std::collections::VecDeque::new();
    let mut now = Time::ZERO;
    let mut decisions = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let known = |b: u16| BackendId(b % backends as u16);
        match *step {
            Step::Request { target, size_bytes, dynamic } => {
                let kind = if dynamic { Kind::Dynamic } else { Kind::Static };
                let id = TargetId::from_key(&target.to_le_bytes());
                let request = Request { size_bytes, kind, ..Request::of(number as u64, id) };
                let had_room = fe.has_room();
                let decision = fe.offer(&request, now);
                match decision {
                    Decision::Assign(b) => {
                        assert!(fe.view().is_eligible(b), "{name} chose {b:?}, which takes no requests");
                        in_progress.push_back((id, b));
                    }
                    Decision::Wait => assert!(!had_room, "{name} waits below the admission limit"),
                    Decision::Reject => {
                        assert_eq!(fe.view().eligible(), 0, "{name} rejects although a back-end is up");
                    }
                    Decision::Poll(_) => panic!("no policy here polls"),
                }
                decisions.push(decision);
            }
            Step::CompleteOldest => {
                if let Some((target, b)) = in_progress.pop_front() {
                    fe.complete(&completion(target, b), now);
                }
            }
            Step::Health(b, h) => {
                fe.set_health(known(b), [Health::Up, Health::Draining, Health::Down][usize::from(h)], now);
            }
            Step::Weight(b, w) => fe.set_weight(known(b), Weight::new(f64::from(w) / 2.0).unwrap(), now),
            Step::Advance(ms) => now += Nanos::from_millis(ms.into()),
        }
        check_books(name, &fe, in_progress.len() as u64);
    }
    decisions
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Never a back-end that takes no requests, no rejection while one is up, loads conserved; and the same again
    /// with the same seed.
    #[test]
    fn every_policy_keeps_the_contract(
        seed in any::<u64>(),
        backends in 1usize..6,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        for spec in REGISTRY {
            let first = play(spec.name, seed, backends, &steps);
            prop_assert_eq!(first, play(spec.name, seed, backends, &steps), "{} is not deterministic", spec.name);
        }
    }
}

/// A stream of requests over many targets, completed after a while; returns how many each back-end got.
fn spread(name: &str, cluster: Cluster, requests: u64) -> Vec<u64> {
    let policy = build(name, &BuildContext::default(), &[]).unwrap();
    let mut fe = FrontEnd::new(policy, cluster, AdmissionLimit::Unlimited);
    let mut got = vec![0; fe.view().len()];
    let mut in_progress = std::collections::VecDeque::new();
    for number in 0..requests {
        let target = TargetId::from_key(&(number % 5000).to_le_bytes());
        let request = Request { size_bytes: Some(100_000), ..Request::of(number, target) };
        if let Decision::Assign(b) = fe.offer(&request, Time::from_nanos(number * 1000)) {
            got[b.index()] += 1;
            in_progress.push_back((target, b));
        }
        if in_progress.len() > 40 {
            let (target, b) = in_progress.pop_front().unwrap();
            fe.complete(&completion(target, b), Time::from_nanos(number * 1000));
        }
    }
    got
}

#[test]
fn a_weight_of_three_draws_more_than_a_weight_of_one() {
    for spec in REGISTRY.iter().filter(|s| s.weighted) {
        let mut cluster = Cluster::new(2);
        cluster.set_weight(BackendId(1), Weight::new(3.0).unwrap());
        let got = spread(spec.name, cluster, 20_000);
        // Proportional for all but power of two, which with two back-ends only levels the relative loads.
        let share = got[1] as f64 / (got[0] + got[1]) as f64;
        assert!((0.65..0.85).contains(&share), "{}: {got:?}", spec.name);
    }
}

#[test]
fn no_policy_starves_a_backend() {
    for spec in REGISTRY {
        let got = spread(spec.name, Cluster::new(4), 20_000);
        assert!(got.iter().all(|&n| n > 500), "{}: {got:?}", spec.name);
    }
}

#[test]
fn state_stays_within_its_capacity() {
    for spec in REGISTRY.iter().filter(|s| s.params.iter().any(|p| p.name == "max_targets")) {
        let settings = [("max_targets".to_owned(), "100".to_owned())];
        let mut policy = build(spec.name, &BuildContext::default(), &settings).unwrap();
        let cluster = Cluster::new(3);
        for number in 0..10_000 {
            let target = TargetId::from_key(&number.to_string().into_bytes());
            policy.choose(
                &Request { size_bytes: Some(10), ..Request::of(number, target) },
                &cluster,
                Time::ZERO,
            );
            // LB/GC holds as many per modelled cache.
            assert!(policy.tracked_targets() <= 300, "{}", spec.name);
        }
        assert!(policy.tracked_targets() >= 100, "{}", spec.name);
    }
}
