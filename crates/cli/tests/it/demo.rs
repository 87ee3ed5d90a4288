//! `plimsoll demo`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use plimsoll_testkit::PATIENCE;
use serde_json::Value;

use crate::common::{plimsoll, text};

#[test]
fn lard_r_misses_less_than_wrr_by_real_traffic() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("demo");
    let arguments = [
        "demo",
        "--seconds",
        "2",
        "--backends",
        "4",
        "--speed",
        "4",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ];
    let output = plimsoll(&arguments);
    let (lines, messages) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{messages}");
    let runs: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let policies: Vec<_> = runs.iter().map(|run| run["policy"].as_str().unwrap()).collect();
    assert_eq!(policies, ["weighted_round_robin", "lard_r"]);
    for run in &runs {
        assert_eq!(
            (&run["backends"], &run["model"], &run["rejected"]),
            (&4.into(), &"live".into(), &0.into())
        );
        assert_eq!(run["simulated_s"], 2.0);
        assert!(run["completed"].as_u64().unwrap() > 100, "{run}");
        assert!(run["response_time_s"]["p99"].as_f64().unwrap() > 0.0);
        assert_eq!(run["per_backend"].as_array().unwrap().len(), 4);
        let (client, origins) =
            (run["miss_ratio"].as_f64().unwrap(), run["live"]["origin_miss_ratio"].as_f64().unwrap());
        assert!((client - origins).abs() < 0.1, "{client} {origins}");
    }
    let miss = |n: usize| runs[n]["miss_ratio"].as_f64().unwrap();
    assert!(miss(1) < miss(0), "LARD/R {} WRR {}", miss(1), miss(0));
    // A line for each second, warm-up included, of both policies; a busy machine leaves some out.
    let seconds = messages.lines().filter(|line| line.starts_with("     ")).count();
    assert!((2..=6).contains(&seconds), "{messages}");
    assert!(messages.contains("emulated disk"), "{messages}");
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("lard_r") && report.contains("emulated disk"));
    assert!(out.join("runs.csv").exists() && out.join("runs.parquet").exists());
}

/// Whether a program is installed; where `CI` is set it has to be.
fn is_installed(program: &str) -> bool {
    let found =
        ["/usr/sbin", "/usr/local/sbin", "/usr/bin"].iter().any(|d| Path::new(d).join(program).exists());
    assert!(found || std::env::var_os("CI").is_none(), "{program} is missing; install its package");
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

#[test]
fn other_balancers_are_measured_beside_ours() {
    if !is_installed("haproxy") || !is_installed("nginx") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let line = "demo --compare haproxy,nginx --cell 4 --seconds 1 --speed 4 --json --out";
    let arguments: Vec<&str> = line.split(' ').chain([path]).collect();
    let output = plimsoll(&arguments);
    let messages = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{messages}");
    assert!(messages.contains("Cells: 1, with 9 balancers each"), "{messages}");
    let printed = text(&output.stdout);
    let runs: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let systems: Vec<_> = runs.iter().map(|run| run["system"].as_str().unwrap()).collect();
    assert_eq!(systems.len(), 9);
    assert!(systems.contains(&"haproxy uri") && systems.contains(&"nginx least_conn"), "{systems:?}");
    for run in &runs {
        assert!(run["throughput_rps"].as_f64().unwrap() > 10.0, "{run}");
        assert!(run["simulated_rps"].as_f64().unwrap() > 10.0, "{run}");
        assert_eq!(run["failed"], 0, "{run}");
    }
    let report = std::fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(report.contains("haproxy uri, factor 125") && report.contains("bounded hashing loses"));
    assert_eq!(std::fs::read_to_string(dir.path().join("cells.jsonl")).unwrap(), printed);
}

#[test]
fn bad_arguments_are_refused_at_once() {
    let cases = [
        (&["--policy", "lard_s"][..], "lard"),
        (&["--policies", "wrr_gms"], "simulator"),
        (&["--backends", "0"], "--backends"),
        (&["--backends", "65"], "--backends"),
        (&["--seconds", "0"], "from 1 to 3600"),
        (&["--seconds", "x"], "from 1 to 3600"),
        (&["--speed", "nan"], "from 0.1 to 100"),
        (&["--compare", "apache"], "haproxy, nginx"),
        (&["--compare", "nginx", "--policy", "lard"], "cannot be used with"),
        (&["--compare", "nginx", "--cell", "99"], "--cell"),
        (&["--cell", "1"], "--compare"),
    ];
    for (arguments, said) in cases {
        let output = plimsoll(&[&["demo"][..], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(said), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_signal_ends_it_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["demo", "--seconds", "600", "--backends", "2", "--out", dir.path().to_str().unwrap()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut messages = BufReader::new(child.stderr.take().unwrap()).lines();
    // The first second is over: it runs.
    assert!(messages.by_ref().any(|line| line.unwrap().starts_with("     1")));
    let sent = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(sent.elapsed() < PATIENCE, "{:?}", sent.elapsed());
    assert_eq!(out, "");
    assert!(messages.any(|line| line.unwrap().contains("interrupted")));
}
