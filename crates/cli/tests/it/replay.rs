//! `plimsoll replay`, run as a user runs it.

use std::fs;
use std::path::Path;

use plimsoll_decisions::{BackendEntry, LogConfig, LogRetention, LogWriter, Recorder, RunHeader};
use plimsoll_policy::{
    AdmissionControl, Assigned, BackendId, Completion, Decision, Ending, Health, OfferOptions, Offered,
    Request, TargetId, Time, Weight, Witness, mix,
};

use crate::common::{plimsoll, text};

/// Records, and can move the next assignment to another back-end than the policy chose.
struct Tampering {
    recorder: Recorder,
    tampers: bool,
}

impl Witness for Tampering {
    fn overrule(&mut self, own: Decision) -> Decision {
        match own {
            Decision::Assign(b) if self.tampers => Decision::Assign(BackendId((b.0 + 1) % 3)),
            own => own,
        }
    }

    fn offered(&mut self, request: &Request, options: &OfferOptions, decision: Decision, now: Time) {
        self.recorder.offered(request, options, decision, now);
    }

    fn completed(&mut self, assigned: &Assigned, completion: &Completion, now: Time) {
        self.recorder.completed(assigned, completion, now);
    }
}

/// Writes a log of 2,000 requests under LARD in ten chunks, without those in `lost`. The decision about request
/// `tampered` goes to another back-end.
fn log(directory: &Path, lost: &[usize], tampered: Option<u64>) {
    let entry = |i: u64| BackendEntry {
        name: format!("web-{i}"),
        key: mix(i),
        weight: Weight::ONE,
        health: Health::Up,
        load: 0,
        others: 0,
        most: None,
        left: None,
    };
    let header = RunHeader {
        policy: "lard".into(),
        settings: vec![("t_low".into(), "4".into()), ("t_high".into(), "9".into())],
        seed: 5,
        cache: "gds".into(),
        cache_bytes: 100_000,
        class_costs: std::sync::Arc::default(),
        backends: (0..3).map(entry).collect(),
        admission: AdmissionControl::UNLIMITED,
        waiting: Vec::new(),
        inquiries: 0,
        reserved: 0,
        started_unix_ns: 1_790_000_000_000_000_000,
    };
    let mut core = header.core(Tampering { recorder: Recorder::new(), tampers: false }).unwrap();
    core.witness_mut().recorder.run_started(&header, Time::ZERO);
    let config = LogConfig {
        directory: directory.to_owned(),
        file_bytes: 1 << 20,
        files: 4,
        when_full: LogRetention::Rotate,
    };
    let writer = LogWriter::open(&config).unwrap();
    let mut under_way = std::collections::VecDeque::new();
    for n in 0..2000 {
        let now = Time::from_nanos(n * 1_000_000);
        let request = Request::of(n, TargetId(mix((mix(n) % 30) * (mix(n + 7) % 30))));
        core.witness_mut().tampers = tampered == Some(n);
        let Offered::Assigned(assigned) = core.offer(&request, now) else { panic!("has to wait") };
        under_way.push_back(assigned);
        // The tampered log would not go on consistently: it ends.
        if tampered == Some(n) {
            break;
        }
        if under_way.len() > 12 {
            let assigned = under_way.pop_front().unwrap();
            core.complete(&assigned, Ending::answered(Some(500 + assigned.target.0 % 9000)), now);
        }
        if n % 200 == 199 {
            let chunk = core.witness_mut().recorder.take();
            if !lost.contains(&((n / 200) as usize)) {
                writer.push(chunk);
            }
        }
    }
    writer.push(core.witness_mut().recorder.take());
    writer.close();
}

/// Standard output, after this exit code with these words on standard error.
fn replay(args: &[&str], code: i32, message: &str) -> String {
    let args: Vec<&str> = ["replay"].iter().chain(args).copied().collect();
    let output = plimsoll(&args);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
    assert!(stderr.contains(message) && stderr.is_empty() == message.is_empty(), "{args:?}: {stderr}");
    text(&output.stdout)
}

fn json(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_whole_log_is_proved() {
    let directory = tempfile::tempdir().unwrap();
    log(directory.path(), &[], None);
    let path = directory.path().to_str().unwrap();
    let out = replay(&[path], 0, "");
    assert!(out.contains("Run 1: lard t_low=4 t_high=9 on 3 back-ends, started 2026-09-21"), "{out}");
    assert!(out.contains("2,000 of 2,000 decisions agree: identical"), "{out}");
    let file = directory.path().join("decisions-00000001.plog");
    let csv = directory.path().join("assignments.csv");
    let args = [file.to_str().unwrap(), "--json", "--decisions", csv.to_str().unwrap()];
    let proof = json(&replay(&args, 0, "")).remove(0);
    crate::json::assert_keys_documented(&proof, "`plimsoll replay`");
    assert_eq!(proof["proved"], true);
    assert_eq!((proof["decisions"].as_u64(), proof["identical"].as_u64()), (Some(2000), Some(2000)));
    assert_eq!(proof["runs"][0]["settings"]["t_high"], "9");
    let csv = fs::read_to_string(csv).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines.len(), lines[0]), (2001, "request,time_s,target,backend"));
    assert_eq!(lines[1], format!("0,0.000000000,{:016x},0", mix((mix(0) % 30) * (mix(7) % 30))));
}

#[test]
fn the_first_difference_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    log(directory.path(), &[], Some(1234));
    let path = directory.path().to_str().unwrap();
    let out = replay(&[path], 1, "1 of 1,235 decisions came out differently");
    for part in
        ["First difference: event ", "time        1.234000000 s", "request     1234", "loads       web-0 "]
    {
        assert!(out.contains(part), "no `{part}` in {out}");
    }
    assert!(out.contains("decisions-00000001.plog, byte ") && out.contains("NOT identical"), "{out}");
    // What is not missing cannot be accepted as missing.
    replay(&[path, "--partial"], 1, "came out differently");
    let proof = json(&replay(&[path, "--json"], 1, "came out differently")).remove(0);
    crate::json::assert_keys_documented(&proof, "`plimsoll replay`");
    let difference = &proof["first_difference"];
    assert_eq!(difference["request"], 1234);
    let (logged, replayed) = (&difference["logged"]["assign"], &difference["replayed"]["assign"]);
    assert_eq!(logged.as_u64().unwrap(), (replayed.as_u64().unwrap() + 1) % 3);
}

#[test]
fn a_log_without_its_start_proves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    log(directory.path(), &[0], None);
    let path = directory.path().to_str().unwrap();
    let out = replay(&[path], 1, "--partial accepts that");
    assert!(out.contains("the start of the run was rotated away"), "{out}");
    assert!(out.contains("of 1,800 decisions agree: not proved"), "{out}");
    replay(&[path, "--partial"], 0, "");
    let gap = tempfile::tempdir().unwrap();
    log(gap.path(), &[4, 5], None);
    let out = replay(&[gap.path().to_str().unwrap()], 1, "the log is not whole");
    assert!(out.contains("Missing: 2 chunks"), "{out}");
}

#[test]
fn other_policies_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    log(directory.path(), &[], None);
    let path = directory.path().to_str().unwrap();
    let args = [path, "-p", "wrr,lard", "--set", "lard.t_low=4", "--set", "t_high=9", "--json"];
    let rows = json(&replay(&args, 0, ""));
    assert_eq!(rows.len(), 3);
    crate::json::assert_keys_documented(&rows[1], "`plimsoll replay`");
    assert_eq!((rows[0]["live"].as_bool(), rows[1]["live"].as_bool()), (Some(true), Some(false)));
    let same = ["requests", "hits", "misses", "joined", "imbalance", "load_imbalance", "per_backend"];
    for key in same {
        assert_eq!(rows[0][key], rows[2][key], "{key}");
        assert!(!rows[0][key].is_null(), "{key}");
    }
    assert_eq!(rows[2]["moved"], 0);
    assert!(rows[1]["moved"].as_u64().unwrap() > 500);
    assert!(rows[1]["miss_ratio"].as_f64().unwrap() > rows[0]["miss_ratio"].as_f64().unwrap());
    let csv = directory.path().join("assignments.csv");
    let args = [path, "-p", "round_robin", "--cache", "1MiB", "--cache-policy", "lru"];
    let args: Vec<&str> = args.iter().copied().chain(["--decisions", csv.to_str().unwrap()]).collect();
    let out = replay(&args, 0, "");
    for part in ["lru of 1 MiB", "lard (live)", "round_robin", "web-2", "667"] {
        assert!(out.contains(part), "no `{part}` in {out}");
    }
    assert_eq!(fs::read_to_string(csv).unwrap().lines().count(), 2001);
}

#[test]
fn slips_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    replay(&[path], 1, "holds no decision log");
    log(directory.path(), &[], None);
    replay(&[path, "-p", "lrad"], 2, "did you mean `lard`");
    replay(&[path, "-p", "lard", "--set", "t_hihg=9"], 2, "did you mean `t_high`");
    replay(&[path, "-p", "lard", "--set", "t_high=nine"], 2, "t_high");
    replay(&[path, "-p", "lard", "--cache-policy", "lur"], 2, "lru");
    replay(&[path, "--cache", "1MiB"], 2, "--policy");
    replay(&[path, "-p", "lard", "--partial"], 2, "--partial");
    replay(&[path, "-p", "lard,wrr", "--decisions", "x.csv"], 2, "one policy");
    replay(&[path, "--decisions", "-"], 2, "standard output");
    let file = directory.path().join("decisions-00000001.plog");
    let mut bytes = fs::read(&file).unwrap();
    bytes[100] ^= 4;
    fs::write(&file, bytes).unwrap();
    replay(&[path], 1, "decisions-00000001.plog, byte 32: the log is damaged");
}
