//! Decision log and access log.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use plimsoll_decisions::{LogReader, replay};
use plimsoll_testkit::{Why, pace, wait_for};
use plimsoll_trace::{ReadOptions, TraceInput, formats, load};
use serde_json::Value;

use super::rig::{Rig, text};
use crate::common::origin::Origin;

#[test]
fn the_decision_log_on_demand() {
    let origins = [Origin::echo(), Origin::echo()];
    let directory = tempfile::tempdir().unwrap();
    let tables = format!(
        "[policy]\nname = \"lard\"\n[decision_log]\ndirectory = \"{}\"\n",
        directory.path().display()
    );
    let rig = Rig::new(&[&origins[0], &origins[1]], &tables);
    for i in 0..25 {
        rig.get_times(1, &format!("/{}", i % 7));
    }
    rig.metrics_once(|m| m.get("plimsoll_load") == 0.0);
    let flushed = rig.call("POST", "/decisions/flush", &[], "");
    assert_eq!(flushed.status, 200, "{flushed:?}");
    let state = flushed.json();
    assert_eq!(
        (&state["enabled"], &state["errors"], &state["dropped_chunks"]),
        (&true.into(), &0.into(), &0.into())
    );
    let files = state["files"].as_array().unwrap();
    let on_disk = std::fs::metadata(directory.path().join(files[0]["name"].as_str().unwrap())).unwrap().len();
    assert_eq!((files.len(), state["bytes"].as_u64()), (1, Some(on_disk)));
    // A replay sees everything while the front-end still runs.
    let mut assigned = 0;
    let proof = replay(&mut LogReader::open(directory.path()).unwrap(), &mut |_| assigned += 1).unwrap();
    assert!(!proof.is_refuted(), "{:?}", proof.first_difference);
    assert_eq!((proof.decisions().1, assigned), (25, 25));
    assert_eq!(rig.get("/decisions").json()["directory"], directory.path().display().to_string());
}

#[test]
fn no_decision_log() {
    let origin = Origin::echo();
    let rig = Rig::new(&[&origin], "");
    assert_eq!(rig.get("/decisions").json()["enabled"], false);
    rig.call("POST", "/decisions/flush", &[], "").assert_error(409);
}

fn access_log(file: &Path, format: &str) -> String {
    format!("[access_log]\nfile = \"{}\"\nformat = \"{format}\"\n", file.display())
}

/// The lines of a log once there are so many.
fn lines(file: &Path, count: usize) -> Vec<String> {
    wait_for("lines of the log", || {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        (lines.len() >= count).then_some(lines)
    })
}

#[test]
fn the_combined_log_is_a_trace() {
    let origin = Origin::echo();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("access.log");
    let rig = Rig::new(&[&origin], &access_log(&file, "combined"));
    let mut client = rig.client();
    let mut bytes = 0;
    for i in 0..40 {
        client.send(format!(
            "GET /page/{}?q=%22x HTTP/1.1\r\nHost: a\r\nUser-Agent: odd \"agent\" \\ \u{e4}\t{i}\r\nReferer: http://r/\"\r\n\r\n",
            i % 8
        ));
        bytes += client.response("GET").body.len() as u64;
    }
    rig.stop();
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 40);
    assert!(
        text.lines().all(|l| l.is_ascii()
            && l.contains(r#" 200 "#)
            && l.contains(r#"odd \"agent\" \\ \xc3\xa4\x09"#))
    );
    let trace = load(&[TraceInput::File(file)], &ReadOptions::default()).unwrap();
    let report = &trace.report;
    assert_eq!((report.format, report.records, report.lines_rejected), (Some(formats::log::COMBINED), 40, 0));
    let read: u64 = trace.open().unwrap().map(|record| record.unwrap().size_bytes).sum();
    assert_eq!((trace.targets.len(), read), (8, bytes));
}

#[test]
fn json_lines_with_the_split_of_the_latency() {
    let origin = Origin::answering(|request| {
        pace(Duration::from_millis(30), Why::SlowPeer);
        crate::common::origin::echo(request)
    });
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("access.log");
    let tables = format!("[policy]\nname = \"lard_r\"\n{}", access_log(&file, "json"));
    let rig = Rig::new(&[&origin], &tables);
    rig.get_times(2, "/a?b=c");
    let mut bad = rig.client();
    bad.send("GET\r\n\r\n");
    assert_eq!(bad.response("GET").status(), 400);
    let all: Vec<Value> = lines(&file, 3).iter().map(|l| serde_json::from_str(l).unwrap()).collect();
    let served: Vec<&Value> = all.iter().filter(|v| v["status"] == 200).collect();
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    for line in &served {
        assert_eq!((text(&line["client"]), text(&line["method"])), ("127.0.0.1".into(), "GET".into()));
        assert_eq!((text(&line["target"]), text(&line["version"])), ("/a?b=c".into(), "HTTP/1.1".into()));
        assert_eq!((text(&line["policy"]), text(&line["backend"])), ("lard_r".into(), "b0".into()));
        assert_eq!(
            (&line["bytes"], &line["attempts"], &line["waited"]),
            (&11.into(), &1.into(), &false.into())
        );
        assert_eq!((&line["referer"], &line["user_agent"]), (&Value::Null, &Value::Null));
        let part = |key: &str| line[key].as_f64().unwrap();
        assert!(part("first_byte_s") >= 0.03, "{line}");
        let sum = part("assign_s") + part("first_byte_s") + part("transfer_s");
        // Each is cut to whole microseconds.
        assert!((part("total_s") - sum).abs() < 4e-6, "{line}");
        assert_eq!(text(&line["time"]).len(), "2026-01-01T00:00:00.000000Z".len());
    }
    assert_eq!((text(&served[0]["reason"]), text(&served[1]["reason"])), ("new".into(), "locality".into()));
    let refused: Vec<&Value> = all.iter().filter(|v| v["status"] == 400).collect();
    assert_eq!((refused.len(), served.len()), (1, 2));
    assert_eq!((&refused[0]["target"], &refused[0]["backend"]), (&Value::Null, &Value::Null));
}

#[test]
fn the_line_of_a_client_that_left_has_what_it_got() {
    const BYTES: usize = 64 << 20;
    let origin = Origin::answering(|_| {
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + BYTES, b'x');
        answer
    });
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("access.log");
    let rig = Rig::new(&[&origin], &access_log(&file, "json"));
    let mut client = rig.client();
    client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut come = vec![0; 1 << 20];
    client.stream.read_exact(&mut come).unwrap();
    drop(client);
    let line: Value = serde_json::from_str(&lines(&file, 1)[0]).unwrap();
    assert_eq!(line["status"], 499, "{line}");
    let bytes = line["bytes"].as_u64().unwrap() as usize;
    assert!(((1 << 20) - 1000..BYTES).contains(&bytes), "{line}");
    assert!(line["first_byte_s"].as_f64().is_some(), "{line}");
}

#[test]
fn a_rotated_log_is_let_go_on_reload() {
    let origin = Origin::echo();
    let directory = tempfile::tempdir().unwrap();
    let (file, rotated) = (directory.path().join("access.log"), directory.path().join("access.log.1"));
    let config = text(&[(&origin, "")], &access_log(&file, "combined"));
    let rig = Rig::from_text(&config);
    rig.get_times(3, "/before");
    assert_eq!(lines(&file, 3).len(), 3);
    std::fs::rename(&file, &rotated).unwrap();
    rig.reload(&config);
    rig.get_times(2, "/after");
    assert!(lines(&file, 2).iter().all(|l| l.contains("/after")));
    assert_eq!(lines(&rotated, 3).len(), 3);
    assert_eq!(rig.metrics().get("plimsoll_access_log_lines_lost_total"), 0.0);
}

#[test]
fn lines_that_cannot_be_written_are_counted() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        eprintln!("there is no /dev/full here: nothing tested");
        return;
    }
    let origin = Origin::echo();
    let rig = Rig::new(&[&origin], &access_log(full, "json"));
    rig.get_times(5, "/a");
    rig.metrics_once(|m| m.get("plimsoll_access_log_lines_lost_total") == 5.0);
}
