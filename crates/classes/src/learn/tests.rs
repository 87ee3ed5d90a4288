use plimsoll_testkit::{
    DemandSpread, SyntheticLog, SyntheticRequest, TRUE_COSTS_S, TrueDiscipline, rand_index,
};

use super::*;

const FIGURES: &str = "PLIMSOLL_CLASSES_FIGURES";

/// How well a log was understood.
#[derive(Debug)]
struct Quality {
    rand: f64,
    /// The largest relative error of a class's cost.
    worst: f64,
}

/// The clock of a log.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Clock {
    Exact,
    /// As nginx's `$msec` and `$request_time`: begin and end in whole milliseconds.
    Milliseconds,
    /// As Apache's `%t` and `%D`: begin in whole seconds, duration in microseconds.
    WholeSeconds,
}

/// In the order in which a server logs requests: that of their ends.
fn observe(learner: &mut ClassLearner, requests: &[SyntheticRequest], clock: Clock) {
    let mut order: Vec<&SyntheticRequest> = requests.iter().collect();
    order.sort_by_key(|request| request.ends_ns);
    for request in order {
        let backend = request.backend.to_string();
        let (begins_ns, ends_ns) = (request.begins_ns, request.ends_ns);
        let (begins_ns, takes_ns) = match clock {
            Clock::Exact => (begins_ns, ends_ns - begins_ns),
            Clock::Milliseconds => {
                let [begins_ms, ends_ms] = [begins_ns, ends_ns].map(|ns| ns / 1_000_000);
                (begins_ms * 1_000_000, (ends_ms - begins_ms) * 1_000_000)
            }
            Clock::WholeSeconds => {
                (begins_ns / 1_000_000_000 * 1_000_000_000, (ends_ns - begins_ns) / 1000 * 1000)
            }
        };
        learner.observe(&ObservedRequest {
            begins_ns,
            takes_ns,
            method: request.method.as_bytes(),
            path_and_query: request.target.as_bytes(),
            size_bytes: request.size_bytes,
            backend: Some(backend.as_bytes()),
            with_client: false,
            counts: true,
        });
    }
}

fn quality(learned: &LearnedClasses, requests: &[SyntheticRequest]) -> Quality {
    let found: Vec<usize> = requests
        .iter()
        .map(|r| usize::from(learned.table.class_of(r.method.as_bytes(), r.target.as_bytes())))
        .collect();
    let truth: Vec<usize> = requests.iter().map(|r| r.class).collect();
    let mut sums = [(0.0, 0.0); TRUE_COSTS_S.len()];
    for (class, number) in truth.iter().zip(&found) {
        let cost_s = learned.table.class(*number as u16).map_or(0.0, |class| class.cpu_s);
        sums[*class] = (sums[*class].0 + cost_s, sums[*class].1 + 1.0);
    }
    let error = |((sum, count), truth_s): ((f64, f64), f64)| (sum / count / truth_s - 1.0).abs();
    let worst = sums.into_iter().zip(TRUE_COSTS_S).map(error).fold(0.0, f64::max);
    Quality { rand: rand_index(&truth, &found), worst }
}

fn learned(log: SyntheticLog, clock: Clock, options: &LearnOptions) -> (LearnedClasses, Quality) {
    let requests = log.run();
    let mut learner = ClassLearner::new(options);
    observe(&mut learner, &requests, clock);
    let learned = learner.learn().unwrap();
    let quality = quality(&learned, &requests);
    if std::env::var_os(FIGURES).is_some() {
        eprintln!("{log:?} {clock:?}: {quality:?} {:?}", learned.report.method);
        eprintln!(
            "  R2 classes {:.4} uris {:.4}, {} classes",
            learned.report.explained_by_classes,
            learned.report.explained_by_uris,
            learned.report.classes.len()
        );
    }
    (learned, quality)
}

fn log(discipline: TrueDiscipline, spread: DemandSpread, seed: u64) -> SyntheticLog {
    SyntheticLog { discipline, spread, load: 0.8, requests: 40_000, backends: 2, seed }
}

const SPREADS: [DemandSpread; 3] = [DemandSpread::Normal, DemandSpread::Exponential, DemandSpread::Lognormal];

/// Back-end 1 has half the speed and half the requests of back-end 0: the same log in slow motion.
#[test]
fn a_slow_back_end_is_found_and_costs_are_those_of_an_average_one() {
    for discipline in [TrueDiscipline::InTurn(1), TrueDiscipline::Shared(1)] {
        let one = |seed| SyntheticLog { backends: 1, ..log(discipline, DemandSpread::Normal, seed) };
        let mut requests = one(1).run();
        let slow = one(2).run().into_iter().map(|mut request| {
            (request.begins_ns, request.ends_ns) = (2 * request.begins_ns, 2 * request.ends_ns);
            request.backend += 1;
            request
        });
        requests.extend(slow);
        let mut learner = ClassLearner::new(&LearnOptions::default());
        observe(&mut learner, &requests, Clock::Exact);
        let learned = learner.learn().unwrap();
        let [(fast, of_fast), (slow, of_slow)] = &learned.report.slowness[..] else {
            panic!("{discipline:?}: {:?}", learned.report.slowness)
        };
        assert_eq!((fast.as_str(), slow.as_str()), ("0", "1"));
        assert!((of_slow / of_fast - 2.0).abs() < 0.1, "{discipline:?}: {of_fast} {of_slow}");
        let quality = quality(&learned, &requests);
        assert!(quality.rand >= 0.9, "{discipline:?}: {quality:?}");
        let average = std::f64::consts::SQRT_2;
        for (class, truth_s) in learned.table.classes().iter().zip(TRUE_COSTS_S) {
            assert!((class.cpu_s / truth_s / average - 1.0).abs() < 0.1, "{discipline:?}: {class:?}");
        }
    }
}

#[test]
fn equal_back_ends_have_no_slowness() {
    let (learned, _) = learned(
        log(TrueDiscipline::InTurn(1), DemandSpread::Exponential, 1),
        Clock::Exact,
        &LearnOptions::default(),
    );
    assert_eq!(learned.report.slowness, []);
}

#[test]
fn classes_and_costs_are_recovered_at_80_percent_load() {
    for (discipline, inferred) in [
        (TrueDiscipline::InTurn(1), QueueDiscipline::InTurn { workers: 1 }),
        (TrueDiscipline::InTurn(4), QueueDiscipline::InTurn { workers: 4 }),
        (TrueDiscipline::Shared(1), QueueDiscipline::Shared { cores: 1 }),
        (TrueDiscipline::Shared(4), QueueDiscipline::Shared { cores: 4 }),
    ] {
        for spread in SPREADS {
            for seed in 1..=3 {
                for clock in [Clock::Exact, Clock::Milliseconds] {
                    let (learned, quality) =
                        learned(log(discipline, spread, seed), clock, &LearnOptions::default());
                    let case = format!("{discipline:?} {spread:?} seed {seed} {clock:?}");
                    assert!(quality.rand >= 0.9, "{case}: {quality:?}");
                    assert!(quality.worst <= 0.1, "{case}: {quality:?}");
                    let DemandMethod::Reconstructed { discipline, .. } = learned.report.method else {
                        panic!("{case}: {:?}", learned.report.method)
                    };
                    assert_eq!(discipline, inferred, "{case}");
                }
            }
        }
    }
}

/// The number of workers is not told from whole seconds: it is 1 unless given.
#[test]
fn whole_seconds_are_enough_where_workers_are_known() {
    for (discipline, workers) in [
        (TrueDiscipline::InTurn(1), None),
        (TrueDiscipline::Shared(1), None),
        (TrueDiscipline::Shared(4), Some(4)),
    ] {
        for spread in SPREADS {
            for seed in 1..=3 {
                let options = LearnOptions { workers, ..LearnOptions::default() };
                let (learned, quality) =
                    learned(log(discipline, spread, seed), Clock::WholeSeconds, &options);
                let case = format!("{discipline:?} {spread:?} seed {seed}: {quality:?}");
                assert!(quality.rand >= 0.9 && quality.worst <= 0.15, "{case}");
                let DemandMethod::FromMeans { discipline: found, .. } = learned.report.method else {
                    panic!("{case}")
                };
                let in_turn = matches!(found, QueueDiscipline::InTurn { .. });
                assert_eq!(in_turn, discipline == TrueDiscipline::InTurn(1), "{case}");
            }
        }
    }
}

/// Hardly any URI comes twice: groups of paths have to stand in for URIs.
#[test]
fn rare_uris_do_not_hide_that_requests_take_turns() {
    let mut requests = log(TrueDiscipline::InTurn(1), DemandSpread::Normal, 1).run();
    for (n, request) in requests.iter_mut().enumerate() {
        request.method = "GET";
        request.target = format!("/kind{}/{n}?session={n}", request.class);
    }
    for clock in [Clock::WholeSeconds, Clock::Milliseconds] {
        let mut learner = ClassLearner::new(&LearnOptions::default());
        observe(&mut learner, &requests, clock);
        let learned = learner.learn().unwrap();
        let quality = quality(&learned, &requests);
        assert!(quality.rand >= 0.9 && quality.worst <= 0.15, "{clock:?}: {quality:?}");
    }
}

/// The test of recovery can fail: durations as they are logged give wrong costs.
#[test]
fn durations_alone_are_no_costs() {
    let requests = log(TrueDiscipline::Shared(1), DemandSpread::Normal, 1).run();
    let mut sums = [(0.0, 0.0); TRUE_COSTS_S.len()];
    for request in &requests {
        let sum = &mut sums[request.class];
        *sum = (sum.0 + (request.ends_ns - request.begins_ns) as f64 / 1e9, sum.1 + 1.0);
    }
    assert!(sums.iter().zip(TRUE_COSTS_S).all(|((sum, count), cost_s)| sum / count > 2.0 * cost_s));
}

#[test]
fn an_idle_server_needs_no_correction() {
    let idle = SyntheticLog { load: 0.001, ..log(TrueDiscipline::Shared(1), DemandSpread::Normal, 1) };
    let (learned, quality) = learned(idle, Clock::Exact, &LearnOptions::default());
    let DemandMethod::Reconstructed { discipline, dependence_before, .. } = learned.report.method else {
        panic!()
    };
    assert_eq!(discipline, QueueDiscipline::Independent);
    assert!(dependence_before < 0.04, "{dependence_before}");
    assert!(quality.rand >= 0.9 && quality.worst <= 0.1, "{quality:?}");
}

#[test]
fn equal_logs_give_equal_tables() {
    let log = log(TrueDiscipline::InTurn(2), DemandSpread::Exponential, 5);
    let one = learned(log, Clock::Milliseconds, &LearnOptions::default()).0;
    assert_eq!(one, learned(log, Clock::Milliseconds, &LearnOptions::default()).0);
    let text = one.table.write();
    assert_eq!(crate::ClassTable::read(&text).unwrap().table, one.table);
    let costs: Vec<f64> = one.table.classes().iter().map(|class| class.cpu_s).collect();
    assert!(costs.is_sorted(), "{costs:?}");
    let shares: f64 = one.report.classes.iter().map(|class| class.cost_share).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
}

#[test]
fn options_bound_the_classes() {
    let requests = log(TrueDiscipline::Shared(1), DemandSpread::Normal, 1);
    for (most_classes, similar, count) in [(3, 0.2, 3), (1, 0.2, 1), (100, 1.0, 5)] {
        let options = LearnOptions { most_classes, similar, ..LearnOptions::default() };
        let (learned, _) = learned(requests, Clock::Exact, &options);
        assert!(
            learned.table.classes().len() <= count,
            "{most_classes} {similar}: {}",
            learned.table.classes().len()
        );
        if most_classes == 1 {
            assert!(learned.report.explained_by_classes.abs() < 1e-9);
        } else {
            assert!(learned.report.explained_by_classes > 0.5);
        }
    }
}

/// A million different parameters and paths give a small table, and what was put together is said.
#[test]
fn a_million_uris_give_a_small_table() {
    let mut learner = ClassLearner::new(&LearnOptions::default());
    for n in 0..1_000_000u64 {
        let (target, takes_ns) = match n % 4 {
            0 => (format!("/item/{n}"), 2_000_000),
            1 => (format!("/search?q={n}&p{n}=1"), 8_000_000),
            2 => (format!("/a/{n}/b/{}/c", n * 7 % 999_983), 4_000_000),
            _ => (format!("/list?page={}&kind=dear&session={n}", n % 50), 16_000_000),
        };
        let begins_ns = n * 20_000_001;
        let path_and_query = target.as_bytes();
        learner.observe(&ObservedRequest {
            begins_ns,
            takes_ns,
            method: b"GET",
            path_and_query,
            size_bytes: 9,
            backend: None,
            with_client: false,
            counts: true,
        });
    }
    let learned = learner.learn().unwrap();
    assert!(learned.table.patterns().len() < 50, "{}", learned.table.patterns().len());
    assert_eq!(learned.table.classes().len(), 4);
    for (target, cost_s) in
        [("/item/new", 0.002), ("/search?q=new", 0.008), ("/a/x/b/y/c", 0.004), ("/list?page=7", 0.016)]
    {
        let class = learned.table.class(learned.table.class_of(b"GET", target.as_bytes())).unwrap();
        assert!((class.cpu_s / cost_s - 1.0).abs() < 0.01, "{target}: {class:?}");
    }
    let said = learned.report.dropped.join("\n");
    for part in ["beyond the first 256", "different segments at", "parameters beyond the bounds"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// Without a time of the back-end, downloads by slow clients must not look expensive.
#[test]
fn slow_clients_are_left_out() {
    let learn = |with_client| {
        let mut learner = ClassLearner::new(&LearnOptions::default());
        for n in 0..4000u64 {
            let large = n % 2 == 0;
            let takes_ns = 10_000_000 + if large { 500_000_000 + n * 1_000_000 } else { 0 };
            learner.observe(&ObservedRequest {
                begins_ns: n * 5_001_234_567,
                takes_ns,
                method: b"GET",
                path_and_query: b"/file",
                size_bytes: if large { 1 << 20 } else { 1000 },
                backend: None,
                with_client,
                counts: true,
            });
        }
        learner.learn().unwrap()
    };
    let found = learn(true);
    assert!((found.table.classes()[0].cpu_s - 0.01).abs() < 1e-6, "{:?}", found.table.classes());
    assert!(
        found.report.dropped.iter().any(|said| said.starts_with("2000 requests with responses over 64 KiB"))
    );
    assert!(learn(false).table.classes()[0].cpu_s > 1.0);
}

#[test]
fn logs_without_times_are_refused() {
    let mut learner = ClassLearner::new(&LearnOptions::default());
    assert_eq!(learner.requests(), 0);
    let request = ObservedRequest {
        begins_ns: 7,
        takes_ns: 0,
        method: b"GET",
        path_and_query: b"/",
        size_bytes: 9,
        backend: None,
        with_client: false,
        counts: true,
    };
    learner.observe(&request);
    learner.observe(&ObservedRequest { path_and_query: b"*", ..request });
    // Errors are no examples.
    learner.observe(&ObservedRequest { takes_ns: 5, counts: false, ..request });
    assert_eq!(learner.requests(), 1);
    assert_eq!(learner.learn(), Err(LearnError::NoTimes));
    assert_eq!(ClassLearner::new(&LearnOptions::default()).learn(), Err(LearnError::NoTimes));
}
