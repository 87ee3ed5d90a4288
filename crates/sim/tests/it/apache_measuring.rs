//! What a policy hears of requests and back-ends in the Apache model, by hand.

use std::sync::{Arc, Mutex};

use plimsoll_policy::{
    BackendId, Capabilities, ClusterView, Decision, HostMetrics, Kind, Nanos, Policy, Request, SniffedKind,
    SniffedRequest, Sniffs, TakesMetrics, Time,
};
use plimsoll_sim::SimRequest;
use plimsoll_sim::models::apache::ApacheParams;

use crate::apache_run::{ApacheRun, BASIC, MS, SEND, TEARDOWN, US, not_modified, plain};
use crate::common::request;

#[derive(Default)]
struct HeardOnWire {
    asked: Vec<Kind>,
    sniffed: Vec<(u64, SniffedRequest)>,
    metrics: Vec<(u64, HostMetrics)>,
}

/// Sends everything to the first back-end, and notes what it hears.
#[derive(Clone, Default)]
struct Listens(Arc<Mutex<HeardOnWire>>);

static LISTENS: Capabilities = Capabilities::NONE.sniffs::<Listens>().takes_metrics::<Listens>();

impl Policy for Listens {
    fn choose(&mut self, request: &Request, _: &ClusterView, _: Time) -> Decision {
        self.0.lock().unwrap().asked.push(request.kind);
        Decision::Assign(BackendId(0))
    }

    fn capabilities(&self) -> &'static Capabilities {
        &LISTENS
    }
}

impl Sniffs for Listens {
    fn on_sniffed(&mut self, sniffed: &SniffedRequest, _: &ClusterView, now: Time) {
        self.0.lock().unwrap().sniffed.push((now.as_nanos(), *sniffed));
    }
}

impl TakesMetrics for Listens {
    fn metrics_interval(&self) -> Nanos {
        Nanos::from_millis(500)
    }

    fn on_metrics(&mut self, metrics: &HostMetrics, _: &ClusterView, now: Time) {
        self.0.lock().unwrap().metrics.push((now.as_nanos(), *metrics));
    }
}

/// What is heard of these requests.
fn heard(params: ApacheParams, requests: &[SimRequest]) -> HeardOnWire {
    let listens = Listens::default();
    ApacheRun { params, ..ApacheRun::default() }.run_with(Box::new(listens.clone()), requests);
    std::mem::take(&mut listens.0.lock().unwrap())
}

#[test]
fn requests_and_ends_are_heard_as_they_pass() {
    let dynamic = SimRequest { kind: Kind::Dynamic, class: 2, ..request(3, 512, 100) };
    let params = ApacheParams { input_classes: 1, dynamic_deviation: 0.0, probes: 0, ..plain() };
    let heard = heard(params, &[not_modified(0), dynamic]);
    assert_eq!(heard.asked, [Kind::Connection; 2], "nothing else is known at a SYN");
    let of: Vec<(u64, SniffedKind, u16)> =
        heard.sniffed.iter().map(|(at, s)| (*at, s.kind, s.class)).collect();
    let first_ends = 100 * MS + BASIC + 30 * US + TEARDOWN;
    // 66 µs of the first connection's teardown and of nothing else come before the second one: that begins 100 ms later.
    let second_ends = 200 * MS + BASIC + 20 * MS + 4 * SEND + TEARDOWN;
    let expected = [
        (100 * MS, SniffedKind::Conditional, 0),
        (first_ends, SniffedKind::Connection, 0),
        (200 * MS, SniffedKind::Dynamic, 2),
        (second_ends, SniffedKind::Connection, 0),
    ];
    // The SYN of the second one comes at 100 ms, too, and costs the kernel 66 µs before the first process begins.
    let shifted = (first_ends + 66 * US, SniffedKind::Connection, 0);
    assert_eq!(of, [expected[0], shifted, expected[2], expected[3]]);
    assert_eq!(heard.sniffed[2].1.round_trip, Nanos::from_millis(100));
    assert_eq!(heard.sniffed[2].1.size_bytes, Some(512));
}

#[test]
fn back_ends_are_measured_and_that_takes_their_time() {
    // One process. From 100 ms on it computes for 1 s, one more connection waits, and the probe of 500 ms behind it.
    let params = ApacheParams {
        start_servers: 1,
        max_clients: 1,
        metrics_cpu_s: Nanos::from_millis(5),
        scheduler: 2,
        ..plain()
    };
    let busy = SimRequest { kind: Kind::Dynamic, service: Nanos::from_secs(1), ..request(0, 512, 0) };
    let requests = [busy, not_modified(10), not_modified(2_300)];
    let heard_at_once = heard(params, &requests).metrics;
    let at = |n: usize| heard_at_once[n].0 / MS;
    let metrics = |n: usize| heard_at_once[n].1;
    assert_eq!((at(0), at(1), at(2), at(3)), (500, 1_000, 1_500, 2_000));
    // The probe of the start: establishment, basic steps and 1,024 bytes.
    let alone = Nanos::new(66 * US + BASIC + 2 * SEND);
    let of_syn = Nanos::from_micros(66);
    assert_eq!(metrics(0).probe_time, Some(alone + of_syn), "a SYN comes at the same time");
    let counts = |n: usize| {
        let m = metrics(n);
        (m.pending, m.at_disk, m.serving_static, m.serving_dynamic)
    };
    assert_eq!((counts(0), counts(1), counts(2)), ((1, 0, 0, 1), (2, 0, 0, 1), (0, 0, 0, 0)));
    assert_eq!(metrics(1).probe_time, Some(Nanos::from_millis(500)), "outstanding: its age");
    // It was answered after the request that computes, the daemon twice, and the connection before it.
    assert!(metrics(2).probe_time.unwrap() > Nanos::from_millis(600));
    assert_eq!(metrics(3).probe_time, Some(alone + Nanos::from_millis(5)), "behind the daemon of 1,500 ms");
    let delayed = ApacheParams { metrics_delayed: 1, ..params };
    let heard_later = heard(delayed, &requests).metrics;
    // The daemon of 500 ms has its turn when the process has computed, at 1,100 ms.
    assert_eq!(heard_later[0].0 / MS, 1_105);
}
