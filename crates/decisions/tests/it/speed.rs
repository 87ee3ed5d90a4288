//! What recording and replaying cost. Prints; asserts nothing of time.

use std::time::Instant;

use plimsoll_decisions::Recorder;
use plimsoll_policy::{BackendId, Completion, Decision, Nanos, Outcome, Request, TargetId, Time, mix};

use crate::live::{header, write};

#[test]
#[ignore = "a measurement: cargo test --release -p plimsoll-decisions -- --ignored --nocapture speed"]
fn cost_of_an_event() {
    const PAIRS: u64 = 5_000_000;
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new();
    recorder.run_started(&header("least_connections"), Time::ZERO);
    let mut chunks = Vec::new();
    let mut bytes = 0;
    let started = Instant::now();
    let mut now = Time::ZERO;
    for n in 0..PAIRS {
        now += Nanos::from_micros(50);
        let request = Request { client: n / 7, ..Request::of(n, TargetId(mix(n))) };
        recorder.offered(&request, Decision::Assign(BackendId((n % 4) as u16)), now);
        // 100 requests are under way.
        if let Some(done) = n.checked_sub(100) {
            let completion = Completion {
                target: TargetId(mix(done)),
                backend: BackendId((done % 4) as u16),
                outcome: Outcome::Completed,
                size_bytes: Some(20_000),
                response_time: Nanos::from_micros(100 * 50),
            };
            recorder.completed(done, &completion, now);
        }
        if recorder.buffered_bytes() >= Recorder::CHUNK_BYTES {
            let chunk = recorder.take();
            bytes += chunk.len();
            if chunks.len() < 100 {
                chunks.push(chunk);
            } else {
                recorder.recycle(chunk);
            }
        }
    }
    let ns = started.elapsed().as_nanos() as f64 / (2 * PAIRS) as f64;
    println!("{ns:.1} ns an event, {:.1} bytes a request", bytes as f64 / PAIRS as f64);
    write(directory.path(), chunks);
    let started = Instant::now();
    let events = plimsoll_decisions::LogReader::open(directory.path()).unwrap().count();
    println!("{:.1} ns an event read, {events} events", started.elapsed().as_nanos() as f64 / events as f64);
    assert!(events > 100_000);
}
