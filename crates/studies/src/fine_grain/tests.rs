//! The rules of the claims on made-up results, and small runs of the figures.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_report::{Claim, Run, Verdict};

use super::plan::{CLIENTS, Choice, DISCARD_MS, FineGrainRun, Grain, LoadsFrom, SERVERS, cells};
use super::results::{AGE_LOADS, AGES, FineGrainResults};
use super::*;

/// What a run has shown.
#[derive(Debug, Clone, Copy)]
struct Shown {
    response_s: f64,
    poll_time_s: f64,
    messages_rps: f64,
    cpu: f64,
    polls_cut_short: f64,
}

/// Results in which every run of the plan has shown this, and the load index is so inaccurate at a load and an age.
fn results(shown: impl Fn(&FineGrainRun) -> Shown, inaccuracy: impl Fn(u32, f64) -> f64) -> FineGrainResults {
    let workload = Workload::synthesize_first("poisson_exp", &[("requests", "1000")], 1, Some(50)).unwrap();
    let some = FineGrainRun::polled(Grain::PoissonExp, 50, 2).scenario(50, 1).unwrap();
    let template = execute(&some, &workload, &mut ()).unwrap();
    let of = |run: FineGrainRun| {
        let (mut done, shown) = (template.clone(), shown(&run));
        done.response_time_s.as_mut().unwrap().mean = shown.response_s;
        let traffic = done.load_traffic.as_mut().unwrap();
        (traffic.messages_rps, traffic.cpu, traffic.polls) = (shown.messages_rps, shown.cpu, 10_000);
        traffic.polls_cut_short = (10_000.0 * shown.polls_cut_short) as u64;
        traffic.poll_time_s.as_mut().unwrap().mean = shown.poll_time_s;
        (run, done)
    };
    let runs: BTreeMap<FineGrainRun, Run> = cells(None).into_iter().map(of).collect();
    let mut ages = BTreeMap::new();
    for grain in Grain::PAPER {
        for load in AGE_LOADS {
            ages.extend((0..AGES.len()).map(|place| ((grain, load, place), inaccuracy(load, AGES[place]))));
        }
    }
    FineGrainResults { seed: 1, runs, inaccuracy: ages }
}

/// Ideal in mean service times.
fn ideal(load_percent: u32) -> f64 {
    match load_percent {
        0..=50 => 1.0,
        51..=70 => 1.1,
        71..=80 => 1.25,
        _ => 1.6,
    }
}

/// Broadcast over ideal: at 90 % near to it every 31.25 ms, and an order of magnitude slower every second for what is fine.
fn broadcast(run: &FineGrainRun, interval_us: u32, counts_own: bool) -> f64 {
    let (near, slow) = match (run.load_percent, run.grain) {
        (90, Grain::Medium) => (1.08, 5.0),
        (90, Grain::PoissonExp) => (1.08, 10.0),
        (90, _) => (1.08, 15.0),
        (_, Grain::Medium) => (1.02, 1.5),
        _ => (1.02, 2.0),
    };
    let slow: f64 = if counts_own { slow } else { 1.5 * slow };
    let place = (f64::from(interval_us) / 31_250.0).log2() / 5.0;
    near * (slow / near).powf(place.max(-0.01))
}

/// Response and polling time in seconds with slow answers, as in table 2.
fn slow_answers(grain: Grain, size: u32, discard_ms: u32) -> (f64, f64) {
    let (all_s, kept_s) = match grain {
        Grain::Medium => (0.2821, 0.2831),
        Grain::PoissonExp => (0.0818, 0.0792),
        _ => (0.0516, 0.0473),
    };
    let by_size = match (size, grain) {
        (2, _) => 1.02,
        (3, _) => 1.0,
        (_, Grain::Fine) => 2.1,
        _ => 0.9,
    };
    let (response_s, poll_time_s) = if discard_ms == 0 { (all_s, 0.0027) } else { (kept_s, 0.0011) };
    (by_size * response_s, poll_time_s)
}

/// What the paper says, and for its words what they say at least.
fn as_published(run: &FineGrainRun) -> Shown {
    let ideal_s = run.service_s() * ideal(run.load_percent);
    let busy = f64::from(run.load_percent) / 100.0;
    let rate_rps = busy * run.servers as f64 / run.service_s();
    let per_s = |us: u32| 1e6 / f64::from(us);
    let nothing =
        Shown { response_s: ideal_s, poll_time_s: 0.001, messages_rps: 0.0, cpu: 0.0, polls_cut_short: 0.0 };
    match (run.choice, run.source) {
        (Choice::Random, _) => Shown { response_s: run.service_s() / (1.0 - busy), ..nothing },
        (Choice::Polled(size), LoadsFrom::Poll { late: true, discard_ms, .. }) => {
            let (response_s, poll_time_s) = slow_answers(run.grain, size, discard_ms);
            let polls_cut_short = if discard_ms > DISCARD_MS { 0.056 } else { 0.081 };
            Shown { response_s, poll_time_s, polls_cut_short, ..nothing }
        }
        (Choice::Polled(size), LoadsFrom::Poll { cpu_us, .. }) => {
            let over_ideal = [1.3, 1.3, 1.3, 1.2, 1.15, 1.1, 1.1, 1.1, 1.1][size as usize];
            let dear = if cpu_us >= 100 && size == 8 { 1.5 } else { 1.0 };
            let weibull = if run.grain == Grain::FineWeibull { 1.1 } else { 1.0 };
            let inquiries_rps = f64::from(size) * rate_rps;
            Shown {
                response_s: over_ideal * dear * weibull * ideal_s,
                messages_rps: 2.0 * inquiries_rps,
                cpu: inquiries_rps / run.servers as f64 * f64::from(cpu_us) / 1e6,
                ..nothing
            }
        }
        (_, LoadsFrom::Broadcast { interval_us, counts_own, jittered, cpu_us, .. }) => {
            let dear = if cpu_us == 500 { 1.3 } else { 1.0 };
            let at_once = if jittered { 1.0 } else { 2.0 };
            Shown {
                response_s: broadcast(run, interval_us, counts_own) * dear * at_once * ideal_s,
                messages_rps: f64::from(run.clients) * run.servers as f64 * per_s(interval_us),
                cpu: per_s(interval_us) * f64::from(cpu_us) / 1e6,
                ..nothing
            }
        }
        (_, LoadsFrom::Central) => Shown { response_s: 1.02 * ideal_s, ..nothing },
        _ => nothing,
    }
}

/// Figure 2 as the paper describes it.
fn published_inaccuracy(load: u32, age: f64) -> f64 {
    let (early, bound) = if load == 50 { (1.3, 4.0 / 3.0) } else { (3.0, 9.0) };
    match age {
        age if age < 10.0 => early * (age / 10.0).sqrt(),
        age if age < 20.0 => early,
        age if age < 100.0 => {
            if load == 50 {
                bound
            } else {
                5.0
            }
        }
        _ => bound,
    }
}

fn judged(results: &[FineGrainResults]) -> Vec<Claim> {
    let claims = SPECS.iter().flat_map(|specs| rule::evaluate(specs, None, results));
    claims.chain(claims::calibration(results)).collect()
}

#[test]
fn what_the_paper_says_holds() {
    let claims = judged(&[results(as_published, published_inaccuracy)]);
    assert_eq!(claims.len(), SPECS.iter().map(|specs| specs.len()).sum::<usize>() + 2);
    for claim in &claims {
        assert_eq!(claim.verdict, Verdict::Holds, "{} {:?}", claim.id, claim.measured);
    }
    let value = |id: &str| claims.iter().find(|claim| claim.id == id).unwrap().measured[0].value;
    // Table 2: (51.6 − 47.3) / 51.6, and without the polling time (48.9 − 46.2) / 51.6.
    assert!((value("f28") - 8.3).abs() < 0.05 && (value("f31") - 5.2).abs() < 0.05);
    assert!((value("f14") - 1.953).abs() < 1e-3);
}

/// Each claim fails on one of these results at least.
#[test]
fn what_it_does_not_say_fails() {
    // All ways of choosing are alike.
    let flat = |_: &FineGrainRun| Shown {
        response_s: 0.1,
        poll_time_s: 0.02,
        messages_rps: 100.0,
        cpu: 0.01,
        polls_cut_short: 0.5,
    };
    // What is better is worse, and everything scales with everything.
    let reversed = |run: &FineGrainRun| {
        let shown = as_published(run);
        let scale = f64::from(run.clients) * run.servers as f64 * f64::from(run.load_percent);
        Shown {
            response_s: 0.01 / shown.response_s,
            messages_rps: shown.messages_rps * scale,
            cpu: shown.cpu * scale,
            ..shown
        }
    };
    // What is slower is much slower.
    let exaggerated = |run: &FineGrainRun| {
        let shown = as_published(run);
        Shown { response_s: shown.response_s.powi(3), ..shown }
    };
    // Each further server that is asked gains as much.
    let larger_polls = |run: &FineGrainRun| {
        let response_s = match run.choice {
            Choice::Random => 0.6,
            Choice::Polled(size) => 1.0 / f64::from(size),
            Choice::Least => 0.1,
        };
        Shown { response_s, ..as_published(run) }
    };
    let all = [
        results(flat, |_, _| 10.0),
        results(reversed, |load, age| 1.0 / published_inaccuracy(load, age.max(0.1))),
        results(exaggerated, published_inaccuracy),
        results(larger_polls, published_inaccuracy),
    ];
    let mut failing = BTreeSet::new();
    for wrong in all {
        let claims = judged(&[wrong]);
        let failed = claims.into_iter().filter(|claim| claim.verdict == Verdict::Fails);
        failing.extend(failed.map(|claim| claim.id));
    }
    let ids = SPECS.into_iter().flatten().map(|spec| spec.id).chain(["c1", "c2"]);
    let never: Vec<&str> = ids.filter(|id| !failing.contains(*id)).collect();
    assert!(never.is_empty(), "never fails: {never:?}");
}

const SMALL: Extent =
    Extent { requests: 6_000, seeds: &[1, 2], exact: exact::ExactExtent { runs: 2, requests: 6_000 } };

fn small(figure: Option<u32>) -> FineGrainStudy {
    reproduce_some(&SMALL, (Effort::Quick, figure), None, &ServicePrototype::default(), &()).unwrap()
}

fn claim<'a>(study: &'a FineGrainStudy, id: &str) -> &'a Claim {
    study.claims.iter().find(|claim| claim.id == id).unwrap()
}

#[test]
fn a_small_figure_3() {
    let study = small(Some(3));
    assert!(study.report.to_html().contains("Figure 3") && study.exact.is_empty());
    let ids: Vec<&str> = study.claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(ids, ["f7", "f8", "f9", "f10", "f11", "f12", "f13", "f14"]);
    // Six clients, as many again for each of four readings and two seeds.
    assert_eq!(claim(&study, "f7").measured.len(), 4 * 2);
    assert_eq!(study.runs.len(), 2 * 3 * 2 * (1 + 4 * 6));
    assert!(
        study
            .runs
            .iter()
            .filter(|run| run.load_information == "broadcast")
            .all(|run| run.backends == SERVERS)
    );
    // Flocking is there whatever the length of a run.
    assert_eq!(claim(&study, "f13").verdict, Verdict::Holds);
    assert!(study.runs.iter().any(|run| run.front_ends == usize::from(CLIENTS)));
}

#[test]
fn a_small_figure_4() {
    let study = small(Some(4));
    assert!(study.report.to_html().contains("supermarket model"));
    assert_eq!(study.runs.len(), 2 * 3 * 5 * 6);
    for id in ["f20", "f21"] {
        assert_eq!(claim(&study, id).verdict, Verdict::Holds, "{id} {:?}", claim(&study, id).measured);
    }
}

#[test]
fn a_small_study_measures_every_claim_and_shows_what_lies_beyond() {
    let study = small(None);
    assert_eq!(study.claims.len(), SPECS.iter().map(|specs| specs.len()).sum::<usize>());
    assert_eq!((study.exact.len(), study.calibration.len()), (6, 2));
    let html = study.report.to_html();
    for part in
        ["Exact checks", "Calibration", "How messages and their cost scale", "Faster networks", "overloaded"]
    {
        assert!(html.contains(part), "{part}");
    }
    assert_eq!(study.runs.len(), SMALL.seeds.len() * cells(None).len() + 2 * 6);
    // Counts need no long run.
    for id in ["f14", "f15", "f16", "f17", "f62", "f64"] {
        assert_eq!(claim(&study, id).verdict, Verdict::Holds, "{id} {:?}", claim(&study, id).measured);
    }
}

#[test]
fn ids_are_unique_and_every_figure_has_claims() {
    let all: Vec<_> = SPECS.into_iter().flatten().collect();
    let ids: Vec<_> = all.iter().map(|spec| spec.id).chain(claims_prototype::ids()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    for figure in FIGURES {
        assert!(all.iter().any(|spec| spec.place.figure() == Some(figure)), "figure {figure}");
    }
}

#[test]
fn a_figure_is_reproduced_and_its_claims_are_judged() {
    let study = reproduce(Effort::Quick, Some(2), Some(4), &ServicePrototype::default(), &()).unwrap();
    assert!(study.runs.is_empty() && study.claims.len() > 3);
    assert!(study.report.to_html().contains("Figure 2"));
    let again = reproduce(Effort::Quick, Some(2), Some(4), &ServicePrototype::default(), &()).unwrap();
    assert_eq!(study.report.to_html(), again.report.to_html());
}
