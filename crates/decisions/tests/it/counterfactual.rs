//! What other policies would have done.

use std::sync::{Arc, Mutex};

use plimsoll_decisions::{CompareOptions, Comparison, Counterfactual, LogReader, Shadow, compare};
use plimsoll_policy::{
    BackendId, Candidates, Capabilities, Cluster, ClusterView, Completion, Decision, Health, LoadUse, Nanos,
    OfferOptions, Outcome, Phase, Policy, Polls, REGISTRY, Request, TargetId, Time, Weight,
};

use crate::live::{Live, header, write};

fn options(policies: &[&str]) -> CompareOptions {
    CompareOptions {
        policies: policies.iter().map(|name| ((*name).to_owned(), Vec::new())).collect(),
        cache: None,
        cache_bytes: None,
    }
}

fn compared(path: &std::path::Path, policies: &[&str]) -> Vec<Comparison> {
    compare(&mut LogReader::open(path).unwrap(), &options(policies), &mut |_, _| {}).unwrap()
}

#[test]
fn the_same_policy_would_have_done_the_same() {
    // Live, some answers to a poll are late; a counterfactual answers with all loads, at once.
    for spec in REGISTRY.iter().filter(|spec| spec.load_use != LoadUse::Polls) {
        let directory = tempfile::tempdir().unwrap();
        let mut live = Live::new(header(spec.name), 21);
        live.steps(5000);
        write(directory.path(), [live.take()]);
        let comparisons = compared(directory.path(), &[spec.name, "round_robin"]);
        assert_eq!(comparisons.len(), 1);
        let Comparison { live, others, .. } = &comparisons[0];
        assert_eq!((others[0].moved, others[0].refused), (0, 0), "{}", spec.name);
        assert_eq!(&others[0].score, live, "{}", spec.name);
        assert!(live.requests > 2000 && live.misses > 0 && live.hits > 0 && live.joined > 0);
        assert_eq!(live.per_backend.iter().sum::<u64>(), live.requests);
        assert!(live.hits + live.misses + live.joined < live.requests, "dynamic requests count as cached");
    }
}

#[test]
fn a_policy_for_locality_misses_less_than_round_robin() {
    let directory = tempfile::tempdir().unwrap();
    let mut live = Live::new(header("round_robin"), 22);
    live.steps(20_000);
    write(directory.path(), [live.take()]);
    let comparison = compared(directory.path(), &["uri_hash"]).remove(0);
    let other = &comparison.others[0];
    assert!(other.score.miss_ratio.unwrap() < comparison.live.miss_ratio.unwrap());
    let share = other.moved as f64 / comparison.live.requests as f64;
    assert!((0.5..1.0).contains(&share), "{share}");
}

#[test]
fn a_shadow_scores_what_the_comparison_of_its_log_tells() {
    let directory = tempfile::tempdir().unwrap();
    let header = header("least_connections");
    let mut live = Live::new(header.clone(), 23);
    let built = plimsoll_policy::build("lard", &header.context().unwrap(), &[]).unwrap();
    let spec = &plimsoll_cache::caches::lru::SPEC;
    live.core.witness_mut().shadow = Some(Shadow::new("lard", built, header.cluster(), spec, 10_000));
    live.steps(5000);
    write(directory.path(), [live.take()]);
    let comparison = compared(directory.path(), &["lard"]).remove(0);
    let shadow = live.core.witness().shadow.as_ref().unwrap().score();
    assert_eq!((shadow.policy, &shadow.live), ("lard", &comparison.live));
    assert_eq!(comparison.others[0].score, shadow.shadow);
    assert!(comparison.others[0].moved > 0);
}

#[test]
fn each_run_is_compared_on_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let mut live = Live::new(header("lard"), 24);
    live.steps(1000);
    live.reload("random");
    live.steps(1000);
    write(directory.path(), [live.take()]);
    let comparisons = compared(directory.path(), &["random", "lard"]);
    assert_eq!(comparisons.len(), 2);
    assert_eq!((comparisons[0].others[1].moved, comparisons[1].others[0].moved), (0, 0));
    assert!(comparisons[0].others[0].moved > 0 && comparisons[1].others[1].moved > 0);
}

#[test]
fn unknown_policies_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut live = Live::new(header("lard"), 24);
    live.steps(10);
    write(directory.path(), [live.take()]);
    let mut reader = LogReader::open(directory.path()).unwrap();
    let error = compare(&mut reader, &options(&["lrad"]), &mut |_, _| {}).err().unwrap().to_string();
    assert!(error.contains("did you mean `lard`"), "{error}");
}

/// Asks back-ends 1 and 2.
struct Asks;

static CAPABILITIES: Capabilities = Capabilities::NONE.polls::<Asks>();

impl Policy for Asks {
    fn choose(&mut self, _: &Request, _: &ClusterView, _: Time) -> Decision {
        Decision::Poll(Candidates::new([BackendId(1), BackendId(2)]))
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl Polls for Asks {}

/// Sends all to back-end 1, and keeps what is told of its cache.
#[derive(Default)]
struct Listens(Arc<Mutex<Vec<Option<bool>>>>);

impl Policy for Listens {
    fn choose(&mut self, request: &Request, _: &ClusterView, _: Time) -> Decision {
        Decision::Assign(BackendId(request.number as u16))
    }

    fn on_complete(&mut self, completion: &Completion, _: &ClusterView, _: Time) {
        self.0.lock().unwrap().push(completion.hit);
    }
}

#[test]
fn only_the_same_back_end_tells_of_its_cache() {
    let listens = Listens::default();
    let heard = Arc::clone(&listens.0);
    let spec = &plimsoll_cache::caches::lru::SPEC;
    let mut shadow = Counterfactual::new(Box::new(listens), Cluster::new(3), spec, 100);
    let live = Completion { hit: Some(true), ..LIVE };
    for number in [0, 1] {
        assert_eq!(offer(&mut shadow, number), Some(BackendId(number as u16)));
        shadow.completed(number, &live, Phase::Active, Time::ZERO);
    }
    assert_eq!(*heard.lock().unwrap(), [Some(true), None]);
}

fn asks() -> Counterfactual {
    Counterfactual::new(Box::new(Asks), Cluster::new(3), &plimsoll_cache::caches::lru::SPEC, 100)
}

fn offer(shadow: &mut Counterfactual, number: u64) -> Option<BackendId> {
    shadow.assigned(&Request::of(number, TargetId(1)), &OfferOptions::PLAIN, Time::ZERO)
}

/// The live system had it at back-end 0.
const LIVE: Completion = Completion {
    size_bytes: Some(10),
    ..Completion::of(TargetId(1), BackendId(0), Outcome::Completed, Nanos::ZERO)
};

#[test]
fn polls_are_answered_from_its_own_loads() {
    let mut shadow = asks();
    assert_eq!(offer(&mut shadow, 0), Some(BackendId(1)));
    assert_eq!(offer(&mut shadow, 1), Some(BackendId(2)));
    // Here it ends at 2, which then has less than 1.
    shadow.completed(1, &LIVE, Phase::Active, Time::ZERO);
    assert_eq!(offer(&mut shadow, 2), Some(BackendId(2)));
    for b in 0..3 {
        shadow.health(BackendId(b), Health::Down, Time::ZERO);
    }
    assert_eq!(offer(&mut shadow, 3), None);
    shadow.completed(3, &LIVE, Phase::Active, Time::ZERO);
    assert_eq!(shadow.score().per_backend, [0, 1, 2]);
    // It has as many under way as the live one: none leaks.
    for number in [0, 2] {
        shadow.completed(number, &LIVE, Phase::Active, Time::ZERO);
    }
    assert_eq!(shadow.view().total_load(), 0);
}

#[test]
fn what_it_had_at_a_back_end_that_leaves_is_lost() {
    let mut shadow = asks();
    assert_eq!((offer(&mut shadow, 0), offer(&mut shadow, 1)), (Some(BackendId(1)), Some(BackendId(2))));
    shadow.stayed(BackendId(1), Time::ZERO);
    shadow.left(BackendId(1), Time::ZERO);
    assert_eq!((shadow.view().load(BackendId(1)), shadow.view().has_left(BackendId(1))), (0, true));
    shadow.joined(Weight::ONE, 9, Time::ZERO);
    assert_eq!(offer(&mut shadow, 2), Some(BackendId(1)), "the newcomer is idle");
    shadow.completed(0, &LIVE, Phase::Active, Time::ZERO);
    assert_eq!(shadow.view().load(BackendId(1)), 1);
}
