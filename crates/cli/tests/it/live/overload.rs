//! Three times as many requests as the back-ends can answer, with the default configuration.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_testbed::load::{ClosedLoop, OpenLoop, Req, closed_loop, open_loop};

use super::processes::{FrontEnd, Origin, run};

/// What a client waits for an answer: later ones are worth nothing.
const PATIENCE: Duration = Duration::from_secs(1);

fn resident_bytes(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// What the clients saw in one round.
#[derive(Debug)]
struct Round {
    /// Requests per second answered at the peak, the lower one of before and after.
    peak_rps: f64,
    /// Requests per second answered in time under overload.
    good_rps: f64,
    /// Share of requests refused under overload.
    refused_ratio: f64,
    /// 99 % of refusals came within this time after sending.
    refusals_p99: Duration,
}

impl Round {
    /// Whether enough was answered, and refusals came soon. The requirements are 0.9 of the peak and 300 ms, on an idle
    /// machine; here tests, clients and back-ends take processors from each other.
    fn is_good(&self) -> bool {
        self.good_rps >= 0.9 * self.peak_rps
            && self.refused_ratio > 0.3
            && self.refusals_p99 < Duration::from_millis(600)
    }
}

/// As fast as 128 clients get answers, one request after the other.
fn peak_rps(front_end: &FrontEnd, seconds: f64) -> f64 {
    let peak = run(closed_loop(ClosedLoop {
        connections: 128,
        seconds,
        warmup_s: 1.0,
        ..ClosedLoop::new(front_end.address, |n| Req::get(format!("/{n}")))
    }));
    assert_eq!(peak.succeeded, peak.requests, "{:?} {:?}", peak.failures, peak.statuses);
    peak.succeeded as f64 / peak.measured.as_secs_f64()
}

fn round(front_end: &FrontEnd) -> Round {
    let before_rps = peak_rps(front_end, 4.0);
    let refusals: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let seen = Arc::clone(&refusals);
    let over = run(open_loop(OpenLoop {
        rate_rps: 3.0 * before_rps,
        seconds: 7.0,
        warmup_s: 1.0,
        connections: 3000,
        timeout: PATIENCE,
        observer: Some(Arc::new(move |_, outcome| {
            if outcome.status == Some(503) {
                seen.lock().unwrap().push(outcome.latency - outcome.lateness);
            }
        })),
        ..OpenLoop::new(front_end.address, |n| Req::get(format!("/{n}")))
    }));
    let good_rps = over.succeeded as f64 / over.measured.as_secs_f64();
    let refused = over.statuses.get(&503).copied().unwrap_or(0);
    assert!(refused > 0 && over.statuses.keys().all(|s| [200, 503].contains(s)), "{:?}", over.statuses);
    let mut refusals = std::mem::take(&mut *refusals.lock().unwrap());
    refusals.sort_unstable();
    let refusals_p99 = refusals[refusals.len() * 99 / 100];
    // What the machine could do may have changed meanwhile; a peak that overload has left behind would be a defect, and
    // shows in its own number.
    let after_rps = peak_rps(front_end, 3.0);
    assert!(after_rps > 0.5 * before_rps, "{after_rps:.0} requests/s after, {before_rps:.0} before overload");
    Round {
        peak_rps: before_rps.min(after_rps),
        good_rps,
        refused_ratio: refused as f64 / over.requests as f64,
        refusals_p99,
    }
}

#[test]
fn three_times_overload_keeps_nine_tenths_of_the_peak() {
    let files = plimsoll_balancer::raise_open_file_limit();
    assert!(
        files.is_none_or(|most| most > 7000),
        "7000 open files are needed, {files:?} allowed (`ulimit -Hn`)"
    );
    // An emulated CPU that answers some 250 requests of 1 KB a second, first come, first served.
    let slow = ["--cpu-delay", "lard98", "--cpu-speed", "0.1"];
    let origins: Vec<Origin> = (0..4).map(|i| Origin::start(&format!("b{i}"), &slow)).collect();
    let addresses: Vec<_> = origins.iter().map(|o| o.address).collect();
    let mut front_end = FrontEnd::start(&addresses, "");
    let before = resident_bytes(front_end.process.pid());
    let mut rounds = Vec::new();
    // Another attempt when something else had the processors; a front-end that breaks down does so each time.
    while rounds.len() < 3 && !rounds.last().is_some_and(Round::is_good) {
        rounds.push(round(&front_end));
    }
    println!("{rounds:#?}");
    assert!(
        rounds.last().is_some_and(Round::is_good),
        "required on an idle machine: 0.9 of the peak answered in time, 99 % of refusals within 300 ms; demanded here: \
         0.9 and 600 ms, and three in ten refused, in one of three rounds: {rounds:#?}"
    );
    let after = resident_bytes(front_end.process.pid());
    // The first round opens up to 3,000 connections.
    assert!(after < before + (96 << 20), "memory grew from {before} to {after} bytes");
    front_end.stop();
}
