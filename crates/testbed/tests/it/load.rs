//! The load generator against an origin.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_origin::synthetic::Synthetic;
use plimsoll_origin::{Origin, OriginConfig, OriginHandle, Source};
use plimsoll_testbed::load::{
    ArrivalPattern, CacheStatus, ClosedLoop, Expect, Meter, OpenLoop, Req, RequestFailure, closed_loop,
    open_loop,
};
use plimsoll_testkit::{PATIENCE, Why, pace_async};

async fn origin() -> (SocketAddr, OriginHandle) {
    let mut config = OriginConfig::new(Source::synthetic(
        Synthetic::table((0..10u64).map(|n| (format!("/{n}").into_bytes(), 1000 * n))).unwrap(),
    ));
    config.name = Some("b1".to_owned());
    let origin = Origin::bind(config, "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let handle = origin.handle();
    tokio::spawn(origin.serve(std::future::pending()));
    (handle.local_addr(), handle)
}

fn document(n: u64) -> Req {
    let number = n % 10;
    Req::get(format!("/{number}")).expecting(Expect::Document { number, size_bytes: 1000 * number })
}

#[tokio::test]
async fn a_closed_loop_sends_each_request_once_over_kept_connections() {
    let (target, origin) = origin().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let also = Arc::clone(&seen);
    let load = ClosedLoop {
        connections: 4,
        requests: 200,
        seconds: 60.0,
        observer: Some(Arc::new(move |number, _| also.lock().unwrap().push(number))),
        ..ClosedLoop::new(target, document)
    };
    let summary = closed_loop(load).await;
    assert_eq!((summary.requests, summary.succeeded, summary.failed()), (200, 200, 0), "{summary}");
    assert_eq!(summary.bytes, 20 * 45_000);
    assert_eq!(summary.backends, BTreeMap::from([("b1".to_owned(), 200)]));
    // An empty body is neither in memory nor on disk.
    assert_eq!(summary.cached.values().sum::<u64>(), 180);
    assert_eq!(summary.cached[&CacheStatus::Miss], 9);
    assert_eq!(summary.latency_us.len(), 200);
    assert!(summary.measured < Duration::from_secs(60));
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    assert_eq!(seen, (0..200).collect::<Vec<_>>());
    assert_eq!((origin.stats().requests, origin.stats().connections), (200, 4));
}

#[tokio::test]
async fn a_connection_for_each_request() {
    let (target, origin) = origin().await;
    let load = ClosedLoop {
        connections: 2,
        requests: 30,
        seconds: 60.0,
        keep_alive: false,
        ..ClosedLoop::new(target, document)
    };
    let summary = closed_loop(load).await;
    assert_eq!((summary.succeeded, summary.failed()), (30, 0), "{summary}");
    assert_eq!(origin.stats().connections, 30);
}

#[tokio::test]
async fn servers_take_turns_at_requests_or_at_kept_connections() {
    let (target, first) = origin().await;
    let (other, second) = origin().await;
    for (keep_alive, connections) in [(false, 15), (true, 16)] {
        let load = ClosedLoop {
            connections: 2,
            requests: 30,
            seconds: 60.0,
            keep_alive,
            further_targets: vec![other],
            ..ClosedLoop::new(target, document)
        };
        let summary = closed_loop(load).await;
        assert_eq!((summary.succeeded, summary.failed()), (30, 0), "{summary}");
        for origin in [&first, &second] {
            assert_eq!(origin.stats().connections, connections, "{keep_alive}");
        }
    }
}

#[tokio::test]
async fn a_closed_loop_ends_with_its_time_and_leaves_the_warm_up_out() {
    let (target, _) = origin().await;
    let meter = Meter::default();
    let load = ClosedLoop {
        connections: 2,
        seconds: 0.6,
        warmup_s: 0.3,
        meter: meter.clone(),
        ..ClosedLoop::new(target, document)
    };
    let summary = closed_loop(load).await;
    assert_eq!(summary.measured, Duration::from_millis(300));
    assert!(summary.outside > 0 && summary.requests > 0, "{summary}");
    let all: u64 = summary.per_second.iter().map(|s| s.succeeded).sum();
    assert_eq!(all, summary.outside + summary.succeeded);
    assert_eq!(meter.summary().requests, summary.requests);
}

#[tokio::test]
async fn an_open_loop_sends_what_is_due() {
    let (target, _) = origin().await;
    for arrivals in [ArrivalPattern::Fixed, ArrivalPattern::Poisson(3)] {
        let load = OpenLoop {
            rate_rps: 500.0,
            seconds: 1.0,
            warmup_s: 0.5,
            arrivals,
            connections: 8,
            ..OpenLoop::new(target, document)
        };
        let summary = open_loop(load).await;
        assert_eq!(summary.failed(), 0, "{summary}");
        assert!((150..350).contains(&summary.requests), "{summary}");
        assert!((400..600).contains(&(summary.requests + summary.outside)), "{summary}");
        assert_eq!(summary.measured, Duration::from_millis(500));
    }
}

#[tokio::test]
async fn a_stall_is_charged_to_every_request_that_was_due_in_it() {
    let (target, origin) = origin().await;
    origin.pause();
    let wake = origin.clone();
    tokio::spawn(async move {
        pace_async(Duration::from_millis(500), Why::SlowPeer).await;
        wake.resume();
    });
    let load = OpenLoop { rate_rps: 100.0, seconds: 1.0, connections: 2, ..OpenLoop::new(target, document) };
    let summary = open_loop(load).await;
    assert_eq!((summary.requests, summary.succeeded), (100, 100), "{summary}");
    // Two connections alone had a request under way; some 50 were due, half of them for 250 ms and more.
    let late = summary.latency_us.count_between(200_000, 10_000_000);
    assert!(late >= 20, "{late} of {summary}");
}

#[tokio::test]
async fn an_open_loop_against_one_that_hangs_ends_in_time() {
    let (target, origin) = origin().await;
    origin.pause();
    let load = OpenLoop {
        rate_rps: 100.0,
        seconds: 0.5,
        connections: 2,
        timeout: Duration::from_millis(300),
        ..OpenLoop::new(target, document)
    };
    let summary = tokio::time::timeout(PATIENCE, open_loop(load)).await.unwrap();
    assert_eq!((summary.requests, summary.failed()), (50, 50), "{summary}");
    assert!(summary.failures[&RequestFailure::Timeout] >= 2, "{summary}");
}

#[tokio::test]
async fn wrong_bodies_and_statuses_are_told() {
    let (target, _) = origin().await;
    let requests = |n| match n {
        0 => Req::get("/3").expecting(Expect::Document { number: 4, size_bytes: 3000 }),
        1 => Req::get("/3").expecting(Expect::Length(3001)),
        2 => Req::get("/3").expecting(Expect::Length(3000)),
        3 => Req::get("/nowhere").expecting(Expect::Length(3000)),
        4 => Req::post("/3", vec![b'x'; 20_000]),
        _ => Req::get("no path"),
    };
    let load = ClosedLoop { connections: 1, requests: 6, ..ClosedLoop::new(target, requests) };
    let summary = closed_loop(load).await;
    assert_eq!((summary.requests, summary.succeeded), (6, 1), "{summary}");
    assert_eq!(
        summary.failures,
        BTreeMap::from([(RequestFailure::WrongBody, 2), (RequestFailure::Unusable, 1)])
    );
    assert_eq!(summary.statuses, BTreeMap::from([(200, 3), (404, 1), (405, 1)]));
}
