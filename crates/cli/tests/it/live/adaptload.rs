//! `policy = "adaptload"` before four origins: a heavy-tailed workload, boundaries that are set from it, and back-ends that
//! leave and join meanwhile.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_testbed::load::{Expect, LoadSummary, OpenLoop, Req, open_loop};
use plimsoll_testkit::{Why, pace};
use serde_json::Value;

use super::processes::{FrontEnd, Origin, assert_replays, config, run};

/// Documents with sizes from 300 bytes to 1 MB, a bounded Pareto distribution of shape 1.1.
pub(super) const DOCUMENTS: u64 = 150;

pub(super) fn size_bytes(document: u64) -> u64 {
    let rank = (document as f64 + 0.5) / DOCUMENTS as f64;
    (300.0 / (1.0 - rank).powf(1.0 / 1.1)).min(1e6) as u64
}

/// A request for one of the documents; all come about as often, mixed.
pub(super) fn request(number: u64) -> Req {
    let document = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % DOCUMENTS;
    let size = size_bytes(document);
    Req::get(format!("/size/{size}/{document}")).expecting(Expect::Length(size))
}

/// The size that request `number` asks for.
fn asked(number: u64) -> u64 {
    size_bytes((number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % DOCUMENTS)
}

/// Sends requests; the size of each and who answered it.
fn load(front_end: &FrontEnd, first: u64, seconds: f64) -> (LoadSummary, Vec<(u64, String)>) {
    let seen: Arc<Mutex<Vec<(u64, String)>>> = Arc::default();
    let keep = Arc::clone(&seen);
    let summary = run(open_loop(OpenLoop {
        rate_rps: 400.0,
        seconds,
        connections: 64,
        observer: Some(Arc::new(move |number, outcome| {
            let backend = outcome.backend.clone().unwrap_or_default();
            keep.lock().unwrap().push((asked(first + number), backend));
        })),
        ..OpenLoop::new(front_end.address, move |number| request(first + number))
    }));
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (summary, seen)
}

/// Back-ends with the ends of their intervals, as the admin API shows them.
pub(super) fn boundaries(front_end: &FrontEnd) -> Vec<(String, u64, f64)> {
    let shown = front_end.get("/policy/tables");
    let tables = shown["tables"].as_array().unwrap();
    let table = tables.iter().find(|table| table["name"] == "boundaries").unwrap();
    let row = |row: &Value| {
        // The last one has no end.
        let end = row[1].as_u64().unwrap_or(u64::MAX);
        (row[0].as_str().unwrap().to_owned(), end, row[3].as_f64().unwrap())
    };
    table["rows"].as_array().unwrap().iter().map(row).collect()
}

/// Back-ends that may get a size: those whose interval holds it, and those that share the bin in which one ends.
pub(super) fn owners(boundaries: &[(String, u64, f64)], size_bytes: u64) -> Vec<&str> {
    let mut start = 0.0;
    let mut out = Vec::new();
    for (name, end, _) in boundaries {
        if size_bytes <= *end && size_bytes as f64 >= start {
            out.push(name.as_str());
        }
        // The widest that a bin with this end can be, and a byte for rounding.
        start = *end as f64 / 1.02 - 1.0;
    }
    out
}

#[test]
fn each_size_goes_to_its_interval_and_nothing_is_lost() {
    let origins: Vec<Origin> = (0..4).map(|i| Origin::start(&format!("b{i}"), &[])).collect();
    let addresses: Vec<_> = origins.iter().map(|o| o.address).collect();
    let more = "[policy]\nname = \"adaptload\"\nbatch = 1000\n[decision_log]\ndirectory = \"log\"\n";
    let mut front_end = FrontEnd::start(&addresses, more);
    let (file, pid) = (front_end.file.clone(), front_end.process.pid().to_string());
    let heard = front_end.process.heard();
    let leave_and_join = std::thread::spawn(move || {
        for (number, count) in [3, 4, 2, 4].into_iter().enumerate() {
            pace(Duration::from_millis(1300), Why::UnderLoad);
            std::fs::write(&file, config(&addresses[..count], more)).unwrap();
            assert!(std::process::Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
            heard.wait_for(" again", number);
        }
    });
    let (summary, seen) = load(&front_end, 0, 7.0);
    leave_and_join.join().unwrap();
    assert_eq!((summary.requests, summary.succeeded), (2800, 2800), "{:?}", summary.failures);
    for name in ["b0", "b1", "b2", "b3"] {
        assert!(seen.iter().any(|(_, backend)| backend == name), "{name}");
    }

    let before = boundaries(&front_end);
    assert_eq!(before.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), ["b0", "b1", "b2", "b3"]);
    assert!(before.iter().all(|(.., share)| (share - 0.25).abs() < 0.01), "{before:?}");
    let adjustments =
        |front_end: &FrontEnd| front_end.get("/policy")["stats"]["adjustments"].as_f64().unwrap();
    let adjusted = adjustments(&front_end);
    let (summary, seen) = load(&front_end, 10_000, 1.5);
    assert_eq!((summary.requests, summary.succeeded), (600, 600), "{:?}", summary.failures);
    let after = boundaries(&front_end);
    // Fewer requests than a batch: the boundaries have moved once at most.
    assert!(adjustments(&front_end) - adjusted < 1.5);
    for (size, backend) in &seen {
        let may = [owners(&before, *size), owners(&after, *size)].concat();
        assert!(may.contains(&backend.as_str()), "{size} bytes from {backend}: {before:?} {after:?}");
    }
    // Not everything from everyone: the smallest from the first, the largest from the last.
    let of = |size: u64| seen.iter().filter(|(s, _)| *s == size).map(|(_, b)| b.as_str()).collect::<Vec<_>>();
    assert!(of(size_bytes(0)).iter().all(|b| *b == "b0") && !of(size_bytes(0)).is_empty());
    let largest = size_bytes(DOCUMENTS - 1);
    assert!(of(largest).iter().all(|b| *b != "b0"), "{:?}", of(largest));
    front_end.stop();
    assert_replays(&front_end.path("log"));
}
