//! The estimator on cases worked by hand.

use super::aggregate::LoadThresholds;
use super::*;
use crate::request::TargetId;

const US: fn(u64) -> Nanos = Nanos::from_micros;
const NO_CLASS: ClassCost = ClassCost { cpu: Nanos::ZERO, disk: Nanos::ZERO, size_bytes: 0 };

fn setup() -> EstimatorSetup {
    EstimatorSetup {
        period: Nanos::from_millis(200),
        slot: Nanos::from_millis(50),
        slots: 200,
        costs: CostTable::default(),
        cache_bytes: 10_000,
        documents: 100,
        predictor: MissPredictor::History,
        thresholds: LoadThresholds::default(),
        clear_past: true,
        table_seed: 1,
    }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Nanos::from_millis(ms)
}

fn sniffed(backend: u16, kind: SniffedKind) -> SniffedRequest {
    let (backend, target) = (BackendId(backend), TargetId(0));
    SniffedRequest { backend, kind, target, class: 0, size_bytes: None, round_trip: Nanos::ZERO }
}

fn document(backend: u16, target: u64, size_bytes: u64) -> SniffedRequest {
    let target = TargetId(target);
    SniffedRequest { target, size_bytes: Some(size_bytes), ..sniffed(backend, SniffedKind::Static) }
}

/// Whether the request is expected to miss.
fn ask(estimator: &mut Estimator, request: &SniffedRequest, now: Time) -> bool {
    estimator.pass(request, NO_CLASS, now);
    estimator.expects_miss().unwrap()
}

#[test]
fn what_each_kind_costs() {
    let mut estimator = Estimator::new(setup(), 1);
    let cpu = |estimator: &Estimator| estimator.work_ahead(BackendId(0), at(0)).0;
    estimator.pass(&sniffed(0, SniffedKind::Connection), NO_CLASS, at(0));
    assert_eq!(cpu(&estimator), US(66));
    estimator.pass(&sniffed(0, SniffedKind::Conditional), NO_CLASS, at(0));
    estimator.pass(&sniffed(0, SniffedKind::Invalid), NO_CLASS, at(0));
    assert_eq!(cpu(&estimator), US(66 + 243 + 243));
    let class = ClassCost { cpu: US(20_000), disk: US(5000), size_bytes: 1025 };
    estimator.pass(&sniffed(0, SniffedKind::Dynamic), class, at(0));
    let busy = 66 + 243 + 243 + 213 + 20_000;
    // Three units are sent; the disk begins when the computation ends.
    assert_eq!(estimator.work_ahead(BackendId(0), at(0)), (US(busy + 111), US(busy + 5000)));
    assert_eq!(estimator.expects_miss(), None);
    // An idle time lets the clocks begin anew.
    estimator.pass(&sniffed(0, SniffedKind::Connection), NO_CLASS, at(500));
    assert_eq!(estimator.work_ahead(BackendId(0), at(500)), (US(66), US(66)));
}

#[test]
fn a_document_misses_once_it_is_cold_or_pushed_out() {
    for predictor in [MissPredictor::History, MissPredictor::Stamp] {
        let mut estimator = Estimator::new(EstimatorSetup { predictor, ..setup() }, 2);
        assert!(ask(&mut estimator, &document(0, 1, 6000), at(0)), "cold");
        assert!(!ask(&mut estimator, &document(0, 1, 6000), at(1000)), "warm");
        assert!(ask(&mut estimator, &document(1, 1, 6000), at(1000)), "cold at another one");
        // 8,000 bytes since the reference of 1 fit into the cache beside nothing else, 12,000 do not.
        assert!(ask(&mut estimator, &document(0, 2, 8000), at(2000)));
        assert!(!ask(&mut estimator, &document(0, 1, 6000), at(4000)), "{predictor:?}");
        assert!(ask(&mut estimator, &document(0, 3, 6000), at(5000)));
        assert!(ask(&mut estimator, &document(0, 4, 6000), at(6000)));
        assert!(ask(&mut estimator, &document(0, 1, 6000), at(8000)), "{predictor:?}");
        // A back-end that comes back has an empty memory.
        estimator.restart(BackendId(1));
        assert!(ask(&mut estimator, &document(1, 1, 6000), at(9000)));
    }
    let setup = EstimatorSetup { predictor: MissPredictor::AlwaysHit, ..setup() };
    assert!(!ask(&mut Estimator::new(setup, 1), &document(0, 1, 6000), at(0)));
}

#[test]
fn a_miss_keeps_the_disk_busy_and_counts() {
    let mut estimator = Estimator::new(setup(), 1);
    ask(&mut estimator, &document(0, 1, 5000), at(0));
    // Ten units to send, two blocks to read after 213 µs.
    assert_eq!(estimator.work_ahead(BackendId(0), at(0)), (US(213 + 370), US(213 + 15_600 + 600)));
    ask(&mut estimator, &document(0, 1, 5000), at(100));
    estimator.connected();
    estimator.end_period(at(200));
    let state = estimator.cluster();
    assert_eq!((state.miss_ratio, state.miss_disk_s), (0.5, 0.0162));
    assert!(
        (state.request_cpu_s - 0.000_583).abs() < 1e-12 && (state.load - 2.0 * 0.000_583 / 0.2).abs() < 1e-9
    );
    assert_eq!((estimator.requests(), estimator.connections()), (2.0, 1.0));
    // A period without requests, averaged evenly with the first one.
    estimator.end_period(at(400));
    assert_eq!((estimator.requests(), estimator.cluster().miss_ratio), (1.0, 0.5));
}

#[test]
fn a_large_response_goes_in_parts() {
    let large = SniffedRequest { round_trip: Nanos::from_millis(100), ..document(0, 1, 100_000) };
    let costs = CostTable { processing: Nanos::ZERO, ..CostTable::default() };
    let setup = EstimatorSetup { costs, predictor: MissPredictor::AlwaysHit, ..setup() };
    let mut estimator = Estimator::new(setup, 1);
    ask(&mut estimator, &large, at(0));
    // The first window of 2,920 bytes is 6 units; the others are on the board at their times, and do not delay what comes.
    assert_eq!(estimator.work_ahead(BackendId(0), at(0)).0, US(6 * 37));
    // Windows of 2, 4, 8, 16 and 32 segments, the last one of 9,480 bytes: at 200 ms, 11,680 and 23,360 bytes (23 and 46 units) are
    // to come in the next period. Load is low, so only that counts.
    let load = estimator.end_period(at(200))[0];
    assert!((load - 69.0 / 196.0).abs() < 1e-9, "{load}");
}

#[test]
fn the_past_comes_back_where_it_is_not_cleared() {
    for (clear_past, expected) in [(true, 0.0), (false, 1.0)] {
        let setup = EstimatorSetup { clear_past, slots: 8, ..setup() };
        let mut estimator = Estimator::new(setup, 1);
        let class = ClassCost { cpu: US(40_000 - 213), disk: Nanos::ZERO, size_bytes: 0 };
        estimator.pass(&sniffed(0, SniffedKind::Dynamic), class, at(0));
        estimator.end_period(at(200));
        // The board holds two periods: what was in the first one is now in the one after this.
        let load = estimator.end_period(at(400))[0];
        assert_eq!((load * 1e3).round() / 1e3, expected);
    }
}

#[test]
fn unknown_back_ends_and_sizes_do_no_harm() {
    let mut estimator = Estimator::new(setup(), 0);
    estimator.pass(&document(7, 1, 1), NO_CLASS, at(0));
    assert!(estimator.end_period(at(200)).is_empty());
    estimator.resize(1);
    estimator.pass(&document(0, 1, u64::MAX), ClassCost { cpu: Nanos::MAX, ..NO_CLASS }, Time::MAX);
    let large = SniffedRequest { round_trip: Nanos::new(1), ..document(0, 2, 1 << 30) };
    estimator.pass(&large, NO_CLASS, at(300));
    assert!(estimator.end_period(at(400)).iter().all(|load| load.is_finite()));
}
