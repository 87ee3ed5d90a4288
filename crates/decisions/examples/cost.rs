//! Prints what recording and reading cost: `cargo run --release -p plimsoll-decisions --example cost`.

use std::error::Error;
use std::time::Instant;

use plimsoll_decisions::{BackendEntry, LogConfig, LogReader, LogRetention, LogWriter, Recorder, RunHeader};
use plimsoll_policy::{
    AdmissionControl, Assigned, BackendId, Completion, Decision, Health, Nanos, OfferOptions, Outcome, Phase,
    Request, TargetId, Time, Weight, Witness as _, mix,
};

const REQUESTS: u64 = 5_000_000;
/// Requests under way.
const LOAD: u64 = 100;
const PAUSE_US: u64 = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let mut recorder = Recorder::new();
    recorder.run_started(&header(), Time::ZERO);
    let (mut chunks, mut bytes) = (Vec::new(), 0);
    let started = Instant::now();
    let mut now = Time::ZERO;
    for n in 0..REQUESTS {
        now += Nanos::from_micros(PAUSE_US);
        let request = Request { client: n / 7, ..Request::of(n, TargetId(mix(n))) };
        let backend = BackendId((n % 4) as u16);
        recorder.offered(&request, &OfferOptions::PLAIN, Decision::Assign(backend), now);
        if let Some(done) = n.checked_sub(LOAD) {
            let completion = completion(done);
            let assigned =
                Assigned::told(done, completion.target, completion.backend, Time::ZERO, Phase::Active);
            recorder.completed(&assigned, &completion, now);
        }
        if recorder.is_chunk_full() {
            let chunk = recorder.take();
            bytes += chunk.len();
            if chunks.len() < LogWriter::CHUNKS_IN_FLIGHT {
                chunks.push(chunk);
            } else {
                recorder.recycle(chunk);
            }
        }
    }
    let event_ns = started.elapsed().as_nanos() as f64 / (2 * REQUESTS) as f64;
    println!("recorded: {event_ns:.1} ns an event, {:.1} bytes a request", bytes as f64 / REQUESTS as f64);

    let config = LogConfig {
        directory: directory.path().to_owned(),
        file_bytes: 1 << 30,
        files: 1,
        when_full: LogRetention::Stop,
    };
    let writer = LogWriter::open(&config)?;
    for chunk in chunks {
        writer.push(chunk);
    }
    writer.close();
    let started = Instant::now();
    let events = LogReader::open(directory.path())?.count();
    println!("read: {:.1} ns an event", started.elapsed().as_nanos() as f64 / events as f64);
    Ok(())
}

fn header() -> RunHeader {
    let entry = |i: u64| BackendEntry {
        name: format!("backend-{i}"),
        key: mix(i),
        weight: Weight::ONE,
        health: Health::Up,
        load: 0,
        others: 0,
        most: None,
        left: None,
    };
    RunHeader {
        policy: "least_connections".into(),
        settings: Vec::new(),
        seed: 1,
        cache: "gds".into(),
        cache_bytes: 32 << 20,
        class_costs: std::sync::Arc::default(),
        backends: (0..4).map(entry).collect(),
        admission: AdmissionControl::UNLIMITED,
        waiting: Vec::new(),
        inquiries: 0,
        reserved: 0,
        started_unix_ns: 0,
    }
}

fn completion(request: u64) -> Completion {
    Completion {
        target: TargetId(mix(request)),
        backend: BackendId((request % 4) as u16),
        outcome: Outcome::Completed,
        size_bytes: Some(20_000),
        hit: None,
        response_time: Nanos::from_micros(LOAD * PAUSE_US),
        class: 0,
    }
}
