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

#[test]
fn three_times_overload_keeps_nine_tenths_of_the_peak() {
    // An emulated CPU that answers some 250 requests of 1 KB a second, first come, first served.
    let slow = ["--cpu-delay", "lard98", "--cpu-speed", "0.1"];
    let origins: Vec<Origin> = (0..4).map(|i| Origin::start(&format!("b{i}"), &slow)).collect();
    let addresses: Vec<_> = origins.iter().map(|o| o.address).collect();
    let mut front_end = FrontEnd::start(&addresses, "");

    let peak = run(closed_loop(ClosedLoop {
        connections: 128,
        seconds: 5.0,
        warmup_s: 1.0,
        ..ClosedLoop::new(front_end.address, |n| Req::get(format!("/{n}")))
    }));
    let peak_rps = peak.succeeded as f64 / peak.measured.as_secs_f64();
    let before = resident_bytes(front_end.process.pid());
    let refusals: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let seen = Arc::clone(&refusals);
    let over = run(open_loop(OpenLoop {
        rate_rps: 3.0 * peak_rps,
        seconds: 9.0,
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
    let mut refusals = std::mem::take(&mut *refusals.lock().unwrap());
    refusals.sort_unstable();
    let p99 = refusals.get(refusals.len() * 99 / 100).copied().unwrap_or_default();
    println!(
        "peak {peak_rps:.0} requests/s; at three times that {good_rps:.0} in time, {refused} refused, 99 % within {p99:?}"
    );
    assert!(
        good_rps >= 0.9 * peak_rps,
        "{good_rps:.0} of {peak_rps:.0}: {:?} {:?}",
        over.failures,
        over.statuses
    );
    assert!(refused > 0, "{:?}", over.statuses);
    let after = resident_bytes(front_end.process.pid());
    assert!(after < before + (64 << 20), "memory grew from {before} to {after} bytes");
    front_end.stop();
}
