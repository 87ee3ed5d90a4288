//! The rules of the claims on made-up results, and a small run.

use plimsoll_report::Verdict;

use super::micro::{MicroLoad, MicroMechanism};
use super::plan::{NodeReading, NodeStrategy};
use super::*;
use crate::testing;

fn run(throughput_rps: f64) -> Run {
    Run { throughput_rps, ..testing::run() }
}

/// Throughput as the paper tells it: its ratios at twelve nodes, and the orders that it names.
fn as_published(strategy: NodeStrategy, nodes: usize) -> f64 {
    let n = nodes as f64;
    let round_robin = 100.0 * n.min(8.0);
    match strategy {
        NodeStrategy::RoundRobin => round_robin,
        NodeStrategy::CfLru if nodes > 8 => 1.96 / 1.64 * round_robin,
        NodeStrategy::CfLfu if nodes > 8 => 1.96 / 1.30 * round_robin,
        NodeStrategy::CfLru => 0.93 * round_robin,
        NodeStrategy::CfLfu => 0.98 * round_robin,
        NodeStrategy::Sc | NodeStrategy::ScLardR => 1.96 * round_robin,
        NodeStrategy::ScLfu => 2.1 * round_robin,
    }
}

fn site(seed: u64, throughput: impl Fn(NodeStrategy, usize) -> f64) -> SiteResults {
    let planned = cells(Effort::Full, CloningPart::Trace, Site::Berkeley);
    let done = |of: NodeRun| (of, run(throughput(of.strategy, of.nodes)));
    let facts = SiteFacts { targets: 87_425, total_bytes: 6_600_000_000, request_mean_bytes: 40_000.0 };
    SiteResults { site: Site::Berkeley, seed, facts, runs: planned.into_iter().map(done).collect() }
}

fn micro(efficiency: impl Fn(MicroMechanism, u64) -> f64) -> MicroResults {
    let planned = SIZES_BYTES.into_iter().flat_map(MicroRun::of_size);
    let done = |of: MicroRun| {
        (of, run(if of.alone { 1000.0 } else { 1000.0 * efficiency(of.mechanism, of.size_bytes) }))
    };
    MicroResults { runs: planned.map(done).collect() }
}

/// Efficiency as section 4.1 tells it.
fn efficiency_as_published(mechanism: MicroMechanism, size_bytes: u64) -> f64 {
    let doublings = (size_bytes as f64).log2();
    match mechanism {
        MicroMechanism::Cloning | MicroMechanism::SlowCloning => (0.8 + (doublings - 6.0) * 0.025).min(0.99),
        MicroMechanism::Forwarding => {
            if size_bytes <= 1024 {
                0.75
            } else {
                (0.75 - (doublings - 10.0) * 0.05).max(0.5)
            }
        }
        MicroMechanism::Handoff | MicroMechanism::DearHandoff => (0.4 + (doublings - 6.0) * 0.05).min(0.78),
    }
}

fn verdicts<R: rule::StudyResults>(
    specs: &[rule::CloningClaimSpec<R>],
    results: &[R],
) -> Vec<(String, Verdict)> {
    rule::evaluate(specs, results).into_iter().map(|claim| (claim.id, claim.verdict)).collect()
}

#[test]
fn the_papers_own_figures_meet_its_claims() {
    let trace = [site(1, as_published), site(2, as_published)];
    let of_trace = verdicts(claims_trace::SPECS, &trace);
    assert_eq!(of_trace.len(), claims_trace::SPECS.len());
    let of_micro = verdicts(claims_micro::SPECS, &[micro(efficiency_as_published)]);
    assert_eq!(of_micro.len(), claims_micro::SPECS.len());
    let calibrated = verdicts(calibration::SPECS, &trace);
    for (id, verdict) in of_trace.into_iter().chain(of_micro).chain(calibrated) {
        assert!(verdict == Verdict::Holds, "{id}: {}", verdict.word());
    }
}

#[test]
fn claims_fail_where_the_figures_say_otherwise() {
    let equal = verdicts(claims_trace::SPECS, &[site(1, |_, nodes| 100.0 * nodes as f64)]);
    let failing: Vec<&str> =
        equal.iter().filter(|(_, verdict)| *verdict == Verdict::Fails).map(|(id, _)| id.as_str()).collect();
    // With all mechanisms equal, and growing with each node, RR grows as it should, and CF is not ahead where it should not be.
    assert_eq!(failing, ["t1", "t2", "t3", "t4", "t5", "t8", "t9", "t10", "t11"]);
    let flat = verdicts(claims_micro::SPECS, &[micro(|_, _| 0.85)]);
    let failing: Vec<&str> =
        flat.iter().filter(|(_, verdict)| *verdict == Verdict::Fails).map(|(id, _)| id.as_str()).collect();
    assert_eq!(failing, ["e1", "e2", "e4", "e6", "e7"]);
    assert!(flat.iter().all(|(id, _)| id != "e5"), "there is no crossover");
    let controls = verdicts(controls::CONTROLS, &[site(1, |_, nodes| nodes as f64)]);
    let failing = controls.iter().filter(|(_, verdict)| *verdict == Verdict::Fails);
    assert_eq!(failing.map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["p1", "x3", "x4", "x6"]);
}

#[test]
fn a_crossover_lies_between_its_sizes() {
    let results = micro(|mechanism, size_bytes| match mechanism {
        MicroMechanism::Forwarding if size_bytes <= 2048 => 0.7,
        MicroMechanism::Forwarding => 0.5,
        _ => 0.6,
    });
    // Half of the way from 2 KB to 4 KB on a logarithmic axis.
    let crossing = results.crossing_bytes(MicroLoad::Saturated).unwrap();
    assert!((crossing - 2048.0 * 2_f64.sqrt()).abs() < 1e-6, "{crossing}");
    assert_eq!(micro(|_, _| 0.5).crossing_bytes(MicroLoad::Single), None);
}

#[test]
fn seeds_and_lengths_are_as_asked() {
    let setting = CloningSetting { effort: Effort::Full, part: CloningPart::All, seed: None, seeds: None };
    assert_eq!(setting.seeds(), [1, 2, 3]);
    assert_eq!(CloningSetting { seeds: Some(5), ..setting }.seeds().len(), 5);
    assert_eq!(CloningSetting { seed: Some(9), ..setting }.seeds(), [9]);
    let of = |part| requests(&CloningSetting { part, ..setting }, &LiveCloning::default());
    assert_eq!(of(CloningPart::All), of(CloningPart::Micro) + of(CloningPart::Trace));
    assert!(setting.extent().caution(3).is_none());
    let quick = CloningSetting { effort: Effort::Quick, ..setting };
    assert!(quick.extent().caution(1).is_some_and(|words| words.contains("1 seed show")), "one seed");
}

#[test]
fn a_clone_is_not_free_and_large_documents_hide_it() {
    let results = run_micro(&()).unwrap();
    let at = |mechanism, load, size| results.efficiency(mechanism, load, size).unwrap();
    let (saturated, single) = (MicroLoad::Saturated, MicroLoad::Single);
    // 150.75 µs alone; the original parses for 150, sends the socket for 23 and routes one acknowledgment for 5.
    let small = at(MicroMechanism::Cloning, saturated, 64);
    assert!((small - 150.75 / 178.0).abs() < 0.002, "{small}");
    // One after the other: 156.2 µs alone, and 46 more; the acknowledgment comes before the next request is read.
    let small = at(MicroMechanism::Cloning, single, 64);
    assert!((small - 156.2 / 207.2).abs() < 0.002, "{small}");
    // What is fetched passes the interface of the node that answers twice.
    let large = at(MicroMechanism::Forwarding, saturated, 1 << 20);
    assert!((large - 0.5).abs() < 0.01, "{large}");
    // The back-end works 387 µs and 5 for each request before it sends, 290 and 5 alone.
    let small = at(MicroMechanism::Handoff, saturated, 64);
    assert!((small - 295.0 / 401.0).abs() < 0.005, "{small}");
}

#[test]
fn readings_differ_in_what_they_say() {
    let extent = NodesExtent { warmup: 1, requests: 10 };
    let base = NodeRun::new(NodeStrategy::CfLfu, 4);
    let scenario = |reading| base.with(reading).scenario(&extent, 1).unwrap();
    let as_elsewhere = scenario(NodeReading::AsElsewhere);
    for reading in NodeReading::CHANGED {
        let changed = scenario(reading);
        let differs = changed.model_params.settings() != as_elsewhere.model_params.settings()
            || changed.cache_bytes != as_elsewhere.cache_bytes
            || changed.cache.name != as_elsewhere.cache.name
            || changed.admission != as_elsewhere.admission;
        assert!(differs, "{reading:?}");
    }
    let alone = NodeRun::new(NodeStrategy::RoundRobin, 4);
    assert_eq!(alone.with(NodeReading::OneCopy), alone, "what does not concern a strategy is no other run");
}
