//! Back-ends that are killed or hang while clients ask 1,000 times a second.

use std::time::Duration;

use plimsoll_testbed::load::{LoadSummary, OpenLoop, Req, open_loop};
use plimsoll_testkit::{Why, pace};

use super::processes::{FrontEnd, Origin, assert_replays, run};

const RATE_RPS: f64 = 1000.0;
const SECONDS: f64 = 12.0;
/// Between two events.
const REST: Duration = Duration::from_millis(500);

fn origins() -> Vec<Origin> {
    (0..4).map(|i| Origin::start(&format!("b{i}"), &[])).collect()
}

/// Asks for 500 targets in turn while `meanwhile` runs on a thread of its own, and also returns what that returns: the
/// back-ends, which are to live until the front-end was asked about them.
fn under_load<T: Send + 'static>(
    front_end: &FrontEnd,
    meanwhile: impl FnOnce() -> T + Send + 'static,
) -> (LoadSummary, T) {
    let load = OpenLoop {
        rate_rps: RATE_RPS,
        seconds: SECONDS,
        connections: 64,
        ..OpenLoop::new(front_end.address, |n| Req::get(format!("/{}", n % 500)))
    };
    let thread = std::thread::spawn(meanwhile);
    let summary = run(open_loop(load));
    (summary, thread.join().unwrap())
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
        // A back-end that is only kept waiting for a processor is not down.
        &format!(
            "[policy]\nname = \"{policy}\"\n[health]\ntimeout = \"10s\"\n[decision_log]\ndirectory = \"log\"\n"
        ),
    );
    let heard = front_end.process.heard();
    let (summary, _origins) = under_load(&front_end, move || {
        for (number, origin) in origins.iter_mut().enumerate() {
            pace(REST, Why::UnderLoad);
            origin.process.kill();
            heard.wait_for("back-end is down", number);
            pace(REST, Why::UnderLoad);
            origin.restart();
            heard.wait_for("back-end is up", number);
        }
        origins
    });
    assert_none_failed(&summary);
    // Locality leaves back-ends out that it does not need at this load; still, who was killed had to be replaced.
    assert!(summary.backends.len() >= 2, "{:?}", summary.backends);
    front_end.stop();
    assert_replays(&front_end.path("log"));
}

#[test]
fn gets_survive_a_back_end_that_is_killed_and_restarted_every_second() {
    let mut origins = origins();
    let addresses: Vec<_> = origins.iter().map(|o| o.address).collect();
    let mut front_end = FrontEnd::start(&addresses, "[decision_log]\ndirectory = \"log\"\n");
    let (summary, _origins) = under_load(&front_end, move || {
        for _ in 0..(SECONDS as usize) - 1 {
            pace(REST, Why::UnderLoad);
            origins[0].process.kill();
            pace(REST, Why::UnderLoad);
            origins[0].restart();
        }
        origins
    });
    assert_none_failed(&summary);
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
    // Long enough for the others: they may have to wait for a processor.
    let more = "[health]\ntimeout = \"2s\"\n[decision_log]\ndirectory = \"log\"\n";
    let mut front_end = FrontEnd::start(&addresses, more);
    let heard = front_end.process.heard();
    let (summary, _origins) = under_load(&front_end, move || {
        pace(REST, Why::UnderLoad);
        origins[1].process.signal("-STOP");
        // Found by checks, while clients wait for it.
        heard.wait_for("back-end is down", 0);
        pace(REST, Why::UnderLoad);
        origins[1].process.signal("-CONT");
        heard.wait_for("back-end is up", 0);
        origins
    });
    assert_none_failed(&summary);
    let backends = front_end.get("/backends");
    for backend in backends.as_array().unwrap() {
        let failed = backend["checks_failed"].as_u64().unwrap();
        assert_eq!(failed > 0, backend["name"] == "b1", "{backends:#}");
    }
    front_end.stop();
    assert_replays(&front_end.path("log"));
}
