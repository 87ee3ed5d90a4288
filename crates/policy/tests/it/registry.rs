//! Properties that every policy in the registry has.

use std::collections::VecDeque;

use plimsoll_policy::params::{ParamKind, Settings};
use plimsoll_policy::{
    AdmissionControl, AdmissionLimit, Assigned, BackendId, BuildContext, Cluster, Core, Ending, Health,
    Inquiries, Kind, LoadReport, Nanos, OfferOptions, Offered, Phase, Policy, PolicySpec, PollAnswer,
    REGISTRY, Rejection, Request, TargetId, Thresholds, Time, Tried, Weight, build,
};
use proptest::prelude::*;

use crate::passing::{metrics, sniffed};

/// One thing that happens to a front-end.
#[derive(Debug, Clone)]
enum Step {
    Request {
        target: u64,
        size_bytes: Option<u64>,
        dynamic: bool,
        tried: Option<u16>,
        begins: Phase,
    },
    Prepare {
        target: u64,
        withdrawn: bool,
    },
    CompleteOldest {
        failed: bool,
    },
    /// The newest request is established, stalls, or goes on.
    MoveOn,
    GiveUp,
    Stay(u16),
    Health(u16, u8),
    Weight(u16, u8),
    Most(u16, u8),
    Join,
    Leave(u16),
    Report(u16, u32),
    Share(Vec<(u64, u64)>),
    Connect,
    Sniff(u16, u8, u64),
    Measure(u16, u32),
    Tick,
    Advance(u32),
}

fn phase() -> impl Strategy<Value = Phase> {
    prop_oneof![4 => Just(Phase::Active), 1 => Just(Phase::Connecting)]
}

fn step() -> impl Strategy<Value = Step> {
    let request =
        (0u64..40, prop::option::of(0u64..60_000_000), any::<bool>(), prop::option::of(0u16..6), phase());
    prop_oneof![
        60 => request.prop_map(|(target, size_bytes, dynamic, tried, begins)| {
            Step::Request { target, size_bytes, dynamic, tried, begins }
        }),
        4 => (0u64..40, any::<bool>()).prop_map(|(target, withdrawn)| Step::Prepare { target, withdrawn }),
        50 => any::<bool>().prop_map(|failed| Step::CompleteOldest { failed }),
        5 => Just(Step::MoveOn),
        2 => Just(Step::GiveUp),
        2 => (0u16..6).prop_map(Step::Stay),
        10 => (0u16..6, 0u8..3).prop_map(|(b, h)| Step::Health(b, h)),
        10 => (0u16..6, 0u8..4).prop_map(|(b, w)| Step::Weight(b, w)),
        6 => (0u16..6, 0u8..5).prop_map(|(b, most)| Step::Most(b, most)),
        2 => Just(Step::Join),
        2 => (0u16..6).prop_map(Step::Leave),
        3 => (0u16..6, any::<u32>()).prop_map(|(b, load)| Step::Report(b, load)),
        2 => prop::collection::vec((any::<u64>(), any::<u64>()), 0..20).prop_map(Step::Share),
        20 => Just(Step::Connect),
        20 => (0u16..6, 0u8..5, any::<u64>()).prop_map(|(b, kind, of)| Step::Sniff(b, kind, of)),
        6 => (0u16..6, any::<u32>()).prop_map(|(b, pending)| Step::Measure(b, pending)),
        3 => Just(Step::Tick),
        20 => (0u32..30_000).prop_map(Step::Advance),
    ]
}

/// Values within the ranges of the policy's parameters, from `random`: the least, the most, the default or between.
pub(crate) fn settings(spec: &PolicySpec, random: u64) -> Vec<(String, String)> {
    let mut random = random;
    let mut draw = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    let mut out = Vec::new();
    for param in spec.params {
        // More state than this does not fit into a test.
        let value = match (param.kind, draw(4)) {
            (_, 0) => continue,
            (ParamKind::Integer { min, .. }, 1) => min.to_string(),
            (ParamKind::Integer { min, max }, 2) => max.min(min + 4096).to_string(),
            (ParamKind::Integer { min, max }, _) => (min + draw((max - min).clamp(1, 4096))).to_string(),
            (ParamKind::Number { min, .. } | ParamKind::Seconds { min, .. }, 1) => min.to_string(),
            (ParamKind::Number { max, .. } | ParamKind::Seconds { max, .. }, 2) => max.to_string(),
            (ParamKind::Number { min, max } | ParamKind::Seconds { min, max }, _) => {
                (min + (max - min) * draw(1000) as f64 / 1000.0).min(max).to_string()
            }
        };
        out.push((param.name.to_owned(), value));
    }
    out
}

/// The policy with `settings`, or with its defaults where these do not go together.
pub(crate) fn built(spec: &PolicySpec, seed: u64, settings: &Settings) -> Box<dyn Policy> {
    let context = BuildContext { seed, cache_bytes: 1 << 20, ..BuildContext::default() };
    build(spec.name, &context, settings).or_else(|_| build(spec.name, &context, &[])).unwrap()
}

/// A front-end under random inputs, and what is under way.
struct Play<'a> {
    name: &'a str,
    core: Core,
    under_way: VecDeque<Assigned>,
    now: Time,
    number: u64,
    decisions: Vec<Offered>,
}

impl Play<'_> {
    fn known(&self, b: u16) -> BackendId {
        BackendId(b % self.core.view().len() as u16)
    }

    /// Carries out what was decided, polls included: the answers are the loads of now.
    fn effect(&mut self, number: u64, offered: Offered, tried: Option<BackendId>) {
        self.decisions.push(offered);
        match offered {
            Offered::Assigned(assigned) => {
                let view = self.core.view();
                let name = self.name;
                let most = view.most_requests(assigned.backend);
                let is_last = most.is_some_and(|most| view.own_load(assigned.backend) == most);
                let took = view.is_eligible(assigned.backend) || is_last;
                assert!(took, "{name} chose one that takes no requests");
                let left = view.eligible_ids().any(|b| Some(b) != tried);
                assert!(!left || tried != Some(assigned.backend), "{name} chose one that was tried");
                self.under_way.push_back(assigned);
                for &b in self.core.take_probes().as_slice() {
                    let report =
                        LoadReport { latency: Some(Nanos::new(self.number)), ..LoadReport::of(b, 3) };
                    self.core.report(&report, self.now);
                }
            }
            Offered::Poll(candidates) => {
                let answer = |&b: &BackendId| PollAnswer::of(b, self.core.view().load(b));
                let answers: Vec<PollAnswer> = candidates.as_slice().iter().map(answer).collect();
                let offered = self.core.answer(number, &answers, self.now).unwrap();
                assert!(!matches!(offered, Offered::Poll(_)), "{} polls twice", self.name);
                self.effect(number, offered, tried);
            }
            Offered::Waits => assert!(!self.core.has_room(), "{} waits below the admission limit", self.name),
            Offered::Rejected(Rejection::NoBackend) => {
                assert_eq!(self.core.view().eligible(), 0, "{} rejects although a back-end is up", self.name);
            }
            Offered::Rejected(_) => {}
        }
    }

    fn request(&mut self, target: u64) -> Request {
        self.number += 1;
        Request::of(self.number - 1, TargetId::from_key(&target.to_le_bytes()))
    }

    fn step(&mut self, step: &Step) {
        let now = self.now;
        match *step {
            Step::Request { target, size_bytes, dynamic, tried, begins } => {
                let kind = if dynamic { Kind::Dynamic } else { Kind::Static };
                let request = Request { size_bytes, kind, ..self.request(target) };
                let tried = tried.map(|b| self.known(b));
                let options = OfferOptions { tried: Tried::new(tried), begins, ..OfferOptions::PLAIN };
                let offered = self.core.offer_with(&request, &options, now);
                self.effect(request.number, offered, tried);
            }
            Step::Prepare { target, withdrawn } => {
                let request = self.request(target);
                if let Some(mut prepared) = self.core.prepare(request.number, now) {
                    if withdrawn {
                        self.core.withdraw(prepared, now);
                    } else {
                        self.core.take(&mut prepared, &request, now);
                        self.under_way.push_back(prepared);
                    }
                }
            }
            Step::CompleteOldest { failed } => {
                if let Some(assigned) = self.under_way.pop_front() {
                    let ending = if failed { Ending::FAILED } else { Ending::answered(Some(1000)) };
                    self.core.complete(&assigned, ending, now);
                }
            }
            Step::MoveOn => {
                if let Some(newest) = self.under_way.back_mut() {
                    match newest.phase() {
                        Phase::Connecting => self.core.established(newest, now),
                        Phase::Stalled => self.core.resumed(newest, now),
                        _ => self.core.stalled(newest, now),
                    }
                }
            }
            Step::GiveUp => {
                let number = self.core.waiting_requests().last().map(|w| w.request.number);
                if let Some(number) = number {
                    assert!(self.core.give_up(number, now));
                }
            }
            Step::Stay(b) => {
                let (b, number) = (self.known(b), self.request(0).number);
                if !self.core.view().has_left(b) {
                    self.under_way.push_back(self.core.stay(b, number, TargetId(0), now));
                }
            }
            Step::Health(b, h) => {
                let health = [Health::Up, Health::Draining, Health::Down][usize::from(h)];
                self.core.set_health(self.known(b), health, now);
            }
            Step::Weight(b, w) => {
                self.core.set_weight(self.known(b), Weight::new(f64::from(w) / 2.0).unwrap(), now);
            }
            Step::Join => {
                self.core.join("late", self.number, Weight::ONE, now).unwrap();
            }
            Step::Leave(b) => {
                let b = self.known(b);
                if self.core.view().eligible_ids().any(|other| other != b) {
                    self.core.leave(b, now);
                }
            }
            Step::Advance(ms) => self.now += Nanos::from_millis(ms.into()),
            _ => self.told(step),
        }
        while let Some(started) = self.core.start_next(now) {
            self.effect(started.number, started.offered, None);
        }
    }

    /// What a layer-4 front-end sees, what the policy is told without being asked, and limits.
    fn told(&mut self, step: &Step) {
        let now = self.now;
        match *step {
            Step::Report(b, load) => self.core.report(&LoadReport::of(self.known(b), load), now),
            Step::Share(ref sum) => {
                let mut sum = sum.clone();
                sum.sort_unstable();
                self.core.share(&sum, now);
            }
            Step::Connect => {
                let request = Request { kind: Kind::Connection, ..self.request(0) };
                let offered = self.core.offer(&request, now);
                self.effect(request.number, offered, None);
            }
            Step::Sniff(b, kind, of) => self.core.sniffed(&sniffed(self.known(b), kind, of), now),
            Step::Measure(b, pending) => self.core.host_metrics(&metrics(self.known(b), pending), now),
            Step::Most(b, most) => {
                let most = u32::from(most).checked_sub(1);
                self.core.set_most_requests(self.known(b), most.map(|most| most + 1), now);
            }
            Step::Tick => self.core.tick(now),
            _ => unreachable!("the other steps ask"),
        }
    }

    /// The loads add up to what is under way, and every counter is a number.
    fn check_books(&self) {
        let (core, name) = (&self.core, self.name);
        let view = core.view();
        let counted: u64 = view.ids().map(|b| u64::from(view.own_load(b))).sum();
        assert_eq!(counted, view.total_own_load(), "{name} loses count of the sum");
        assert!(view.ids().all(|b| view.load(b) >= view.own_load(b)), "{name} sees less than its own count");
        assert_eq!(view.ids().map(|b| u64::from(view.load(b))).sum::<u64>(), view.total_load());
        let in_phase = |phase| self.under_way.iter().filter(|a| a.phase() == phase).count() as u64;
        assert_eq!(counted, in_phase(Phase::Active), "{name} loses count");
        assert_eq!(core.reserved(), in_phase(Phase::Connecting), "{name} loses count of what connects");
        for (counter, value) in core.policy().stats() {
            assert!(value.is_finite() && value >= 0.0, "{name}: {counter} = {value}");
        }
    }
}

/// Plays the steps and checks the contract as it goes; returns every decision.
fn play(spec: &PolicySpec, seed: u64, settings: &Settings, backends: usize, steps: &[Step]) -> Vec<Offered> {
    let admission =
        AdmissionControl { limit: AdmissionLimit::Lard(Thresholds { t_low: 3, t_high: 5 }), queue: 3 };
    let mut core = Core::new(built(spec, seed, settings), Cluster::new(backends), admission);
    // For half of the seeds the core polls where the policy does not.
    core.set_inquiries(seed.is_multiple_of(2).then_some(Inquiries { size: 2, seed }));
    let (under_way, decisions) = (VecDeque::new(), Vec::new());
    let mut play = Play { name: spec.name, core, under_way, now: Time::ZERO, number: 0, decisions };
    for step in steps {
        play.step(step);
        play.check_books();
    }
    play.decisions
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Never a back-end that takes no requests or was tried, no rejection while one is up, loads conserved, whatever the
    /// inputs and the parameters; and the same again with the same seed.
    #[test]
    fn every_policy_keeps_the_contract(
        seed in any::<u64>(),
        parameters in any::<u64>(),
        backends in 1usize..6,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        for spec in REGISTRY {
            let settings = settings(spec, parameters);
            let first = play(spec, seed, &settings, backends, &steps);
            let again = play(spec, seed, &settings, backends, &steps);
            prop_assert_eq!(first, again, "{} is not deterministic with {:?}", spec.name, settings);
        }
    }
}

/// A stream of requests over many targets, completed after a while; returns how many each back-end got.
fn spread(name: &str, cluster: Cluster, requests: u64) -> Vec<u64> {
    let policy = build(name, &BuildContext::default(), &[]).unwrap();
    let mut core = Core::new(policy, cluster, AdmissionControl::UNLIMITED);
    let mut got = vec![0; core.view().len()];
    let mut in_progress = VecDeque::new();
    for number in 0..requests {
        let target = TargetId::from_key(&(number % 5000).to_le_bytes());
        let request = Request { size_bytes: Some(100_000), ..Request::of(number, target) };
        let now = Time::from_nanos(number * 1000);
        let mut offered = core.offer(&request, now);
        if let Offered::Poll(candidates) = offered {
            let view = core.view();
            let answers: Vec<PollAnswer> =
                candidates.as_slice().iter().map(|&b| PollAnswer::of(b, view.load(b))).collect();
            offered = core.answer(number, &answers, now).unwrap();
        }
        if let Offered::Assigned(assigned) = offered {
            for &b in core.take_probes().as_slice() {
                core.report(&LoadReport::of(b, core.view().load(b)), now);
            }
            got[assigned.backend.index()] += 1;
            in_progress.push_back(assigned);
        }
        if in_progress.len() > 40 {
            core.complete(&in_progress.pop_front().unwrap(), Ending::answered(None), now);
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
