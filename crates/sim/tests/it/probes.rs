//! Probes: what back-ends tell of their response times, and what a policy makes of it.

use std::cell::RefCell;
use std::sync::Once;

use plimsoll_policy::{
    BackendId, BuildContext, Built, Candidates, Capabilities, ClusterView, Decision, Health, LoadReport,
    LoadUse, Nanos, Policy, PolicySpec, Probes, Request, TakesReports, Time, assign_or_reject,
    params::ParamSet, register,
};
use plimsoll_sim::{
    Arrivals, CentralParams, Fault, FaultAction, LoadInformation, PollParams, TimeDistribution, TimeShape,
};

use crate::common::{request, targets};
use crate::spread::{Spread, poisson};

thread_local! {
    /// What was reported, and when.
    static REPORTED: RefCell<Vec<(Time, LoadReport)>> = const { RefCell::new(Vec::new()) };
}

/// Takes back-ends in turn, probes the first two after each request, and keeps what they report.
struct Recorder(usize);

impl Policy for Recorder {
    fn choose(&mut self, _: &Request, view: &ClusterView, _: Time) -> Decision {
        let first = self.0;
        self.0 += 1;
        let mut all = (first..first + view.len()).map(|n| BackendId::new(n % view.len()));
        assign_or_reject(all.find(|&b| view.is_eligible(b)))
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl TakesReports for Recorder {
    fn on_report(&mut self, report: &LoadReport, _: &ClusterView, now: Time) {
        REPORTED.with_borrow_mut(|all| all.push((now, *report)));
    }
}

impl Probes for Recorder {
    fn probe(&mut self, _: &ClusterView, _: Time) -> Candidates {
        Candidates::new([BackendId(0), BackendId(1)])
    }
}

static CAPABILITIES: Capabilities = Capabilities::NONE.probes::<Recorder>();

fn build(_: &BuildContext, _: &ParamSet) -> Built {
    Ok(Box::new(Recorder(0)))
}

static SPEC: PolicySpec = PolicySpec {
    name: "recorder",
    aliases: &[],
    summary: "a test's",
    source: "none",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::Reports,
    weighted: false,
    params: &[],
    build,
};

fn poll() -> LoadInformation {
    LoadInformation::Poll(PollParams::default())
}

/// What is reported where a request of 50 ms comes every 100 ms, to two back-ends in turn.
fn reported(loads: LoadInformation, front_ends: u16, faults: Vec<Fault>) -> Vec<(Time, LoadReport)> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| register(&[&SPEC]).unwrap());
    REPORTED.take();
    let spread = Spread {
        policy: "recorder",
        loads: Some(loads),
        front_ends,
        faults,
        backends: 2,
        arrivals: Arrivals::Trace { speed: 1.0 },
        service: Some(TimeDistribution { mean_ns: 5e7, shape: TimeShape::Deterministic }),
        ..Spread::default()
    };
    let requests: Vec<_> = (0..20).map(|n| request(0, 0, n * 100)).collect();
    spread.on_fifo(&targets(&[0]), &requests);
    REPORTED.take()
}

/// From the response times at a load, the fast back-ends are known, and from the loads those that have too much.
#[test]
fn prequal_is_better_than_chance() {
    for (load, most) in [(0.5, 0.8), (0.9, 0.35)] {
        let arrivals = poisson(load, 16);
        let random = Spread { policy: "random", arrivals, ..Spread::default() }.response(60_000);
        for loads in [LoadInformation::Exact, poll()] {
            for front_ends in [1, 6] {
                let loads = Some(loads);
                let prequal = Spread { policy: "prequal", loads, front_ends, arrivals, ..Spread::default() };
                let prequal = prequal.response(60_000);
                assert!(prequal < most * random, "{load} {loads:?} {front_ends}: {prequal} against {random}");
            }
        }
        // A pool of two probes, of whichever answered last.
        let arrivals = poisson(load, 4);
        let few = Spread { backends: 4, front_ends: 6, arrivals, ..Spread::default() };
        let exact = Spread { policy: "prequal", loads: Some(LoadInformation::Exact), ..few.clone() };
        let [prequal, random] = [exact, Spread { policy: "random", ..few }].map(|s| s.response(60_000));
        assert!(prequal < random, "{load} on 4: {prequal} against {random}");
    }
}

#[test]
fn response_times_are_told_by_those_who_know_them() {
    let told = |loads, front_ends| {
        let all = reported(loads, front_ends, Vec::new());
        assert!(all.len() >= 38, "two after each request");
        let told: Vec<_> = all.into_iter().filter_map(|(_, report)| report.latency).collect();
        assert!(told.iter().all(|&latency| latency == Nanos::from_millis(50)), "{told:?}");
        told.len()
    };
    // All but those before the first answer of each.
    assert_eq!((told(LoadInformation::Exact, 1), told(poll(), 1)), (40 - 3, 40 - 3));
    assert!(told(LoadInformation::Exact, 3) > 20 && told(poll(), 3) > 20);
    // Nobody tells a front-end more than it has seen itself.
    let central = LoadInformation::Central(CentralParams { latency_s: Nanos::ZERO });
    assert_eq!((told(LoadInformation::Own, 3), told(central, 3)), (0, 0));
}

/// A request that is lost after 10 ms is no fast one, and whoever comes back has no past.
#[test]
fn a_failure_is_no_fast_answer() {
    let fault = |ms, health| Fault {
        at: Time::ZERO + Nanos::from_millis(ms),
        backend: BackendId(0),
        action: FaultAction::Health(health),
    };
    let faults = vec![fault(210, Health::Down), fault(250, Health::Up)];
    for loads in [LoadInformation::Exact, poll()] {
        let all = reported(loads, 1, faults.clone());
        let of_first = all.iter().filter(|(_, report)| report.backend == BackendId(0));
        let latencies: Vec<_> =
            of_first.map(|(at, report)| (at.as_nanos() / 1_000_000, report.latency)).collect();
        let fifty = Some(Nanos::from_millis(50));
        assert_eq!(latencies[..4], [(0, None), (100, fifty), (200, fifty), (300, None)], "{loads:?}");
        assert!(latencies[5..].iter().all(|(_, latency)| *latency == fifty), "{loads:?}: {latencies:?}");
    }
}
