//! Back-ends that are killed or hang while clients ask 1,000 times a second.

use std::time::{Duration, Instant};

use plimsoll_testbed::load::{LoadSummary, OpenLoop, Req, open_loop};

use super::processes::{FrontEnd, Origin, assert_replays, run};

const RATE_RPS: f64 = 1000.0;
const SECONDS: f64 = 15.0;

fn origins() -> Vec<Origin> {
    (0..4).map(|i| Origin::start(&format!("b{i}"), &[])).collect()
}

/// Asks for 500 targets in turn while `meanwhile` runs on a thread of its own.
fn under_load(front_end: &FrontEnd, meanwhile: impl FnOnce() + Send + 'static) -> LoadSummary {
    let load = OpenLoop {
        rate_rps: RATE_RPS,
        seconds: SECONDS,
        connections: 64,
        ..OpenLoop::new(front_end.address, |n| Req::get(format!("/{}", n % 500)))
    };
    let thread = std::thread::spawn(meanwhile);
    let summary = run(open_loop(load));
    thread.join().unwrap();
    summary
}

fn assert_none_failed(summary: &LoadSummary) {
    assert_eq!(summary.requests, (RATE_RPS * SECONDS) as u64);
    assert_eq!(summary.succeeded, summary.requests, "{:?} {:?}", summary.failures, summary.statuses);
}

fn all_killed_in_turn(policy: &str) {
    let mut origins = origins();
    let addresses: Vec<_> = origins.iter().map(|o| o.address).collect();
    let mut front_end = FrontEnd::start(
        &addresses,
        &format!("[policy]\nname = \"{policy}\"\n[decision_log]\ndirectory = \"log\"\n"),
    );
    let summary = under_load(&front_end, move || {
        for origin in &mut origins {
            std::thread::sleep(Duration::from_millis(1500));
            origin.process.kill();
            std::thread::sleep(Duration::from_millis(1500));
            origin.restart();
        }
        std::thread::sleep(Duration::from_secs(4));
    });
    assert_none_failed(&summary);
    // Locality leaves back-ends out that it does not need at this load; still, who was killed had to be replaced.
    assert!(summary.backends.len() >= 2, "{:?}", summary.backends);
    front_end.process.wait_for("back-end is down", 3);
    front_end.process.wait_for("back-end is up", 3);
    front_end.stop();
    assert_replays(&front_end.path("log"));
}

#[test]
fn gets_survive_the_death_of_every_backend_in_turn() {
    all_killed_in_turn("weighted_round_robin");
}

#[test]
fn gets_survive_the_death_of_every_backend_in_turn_with_locality() {
    all_killed_in_turn("lard_r");
}

#[test]
fn gets_survive_a_backend_that_hangs() {
    let origins = origins();
    let addresses: Vec<_> = origins.iter().map(|o| o.address).collect();
    let mut front_end = FrontEnd::start(&addresses, "[decision_log]\ndirectory = \"log\"\n");
    let (told, hung) = std::sync::mpsc::channel();
    let summary = under_load(&front_end, move || {
        std::thread::sleep(Duration::from_secs(3));
        origins[1].process.signal("-STOP");
        told.send(Instant::now()).unwrap();
        std::thread::sleep(Duration::from_secs(5));
        origins[1].process.signal("-CONT");
        std::thread::sleep(Duration::from_secs(8));
    });
    assert_none_failed(&summary);
    let (found, _) = front_end.process.wait_for("back-end is down", 0);
    let after = found.duration_since(hung.recv().unwrap());
    assert!(after < Duration::from_secs(3), "it was found after {after:?}");
    front_end.process.wait_for("back-end is up", 0);
    let backends = front_end.get("/backends");
    for backend in backends.as_array().unwrap() {
        let failed = backend["checks_failed"].as_u64().unwrap();
        assert_eq!(failed > 0, backend["name"] == "b1", "{backends:#}");
    }
    front_end.stop();
    assert_replays(&front_end.path("log"));
}
