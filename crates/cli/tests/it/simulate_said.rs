//! What `simulate` says of options that cannot do what they are for.

use std::fs;

use crate::common::{plimsoll, text};

/// Standard error of a command that succeeds.
fn said(args: &[&str]) -> String {
    let output = plimsoll(args);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
    said
}

const RUN: [&str; 8] = ["simulate", "synth:chess", "--limit", "3000", "--policy", "lard", "--backends", "4"];

#[test]
fn what_would_happen_after_the_end_is_said_not_to() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let late =
        ["--fault", "down:3@1000", "--fault", "down:2@0", "--hot-spot", "0.5@2000-3000", "--warmup", "100"];
    let said = said(&[&RUN[..], &late, &["--out", out]].concat());
    assert!(said.contains("before the fault at 1000 s, which did not happen"), "{said}");
    assert!(
        said.contains("before the hot spot at 2000 s") && said.contains("warning: the run ended at "),
        "{said}"
    );
    assert!(!said.contains("fault at 0 s"), "{said}");
    let report = fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(report.contains("before the fault at 1000 s"), "the report does not say it");
}

#[test]
fn service_times_that_nothing_takes_are_said_to_change_nothing() {
    let with = |more: &[&str]| said(&[&RUN[..], &["--service", "exponential:5s"], more].concat());
    let of_lard = with(&[]);
    assert!(
        of_lard.contains("--service changes nothing: on the model lard only dynamic requests"),
        "{of_lard}"
    );
    assert!(!with(&["--dynamic-share", "0.5"]).contains("--service"));
    assert!(!with(&["--model", "fifo"]).contains("--service"));
}

#[test]
fn negative_values_are_refused_with_what_their_option_takes() {
    let cases: [(&[&str], &[&str]); 9] = [
        (&["simulate", "t.csv", "--seed", "-1"], &["--seed", "0 or more"]),
        (&["simulate", "t.csv", "--backends", "-1"], &["--backends", "-1"]),
        (&["simulate", "t.csv", "--warmup", "-1"], &["--warmup", "0 or more"]),
        (&["simulate", "t.csv", "--speed", "-1"], &["--speed", "expected"]),
        (&["simulate", "t.csv", "--dynamic-share", "-0.1"], &["--dynamic-share", "expected"]),
        (&["simulate", "t.csv", "--cache", "-5MB"], &["--cache", "-5MB"]),
        (&["advise", "t.csv", "--target-load", "-3x"], &["--target-load", "such as 3x"]),
        (&["advise", "t.csv", "--p99", "-5ms"], &["--p99", "-5ms"]),
        (&["origin", "--disk-speed", "-1"], &["--disk-speed"]),
    ];
    for (args, parts) in cases {
        let output = plimsoll(args);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(!message.contains("'-- -") && !message.contains("unexpected argument"), "{message}");
        for part in parts {
            assert!(message.contains(part), "{args:?}: no `{part}` in: {message}");
        }
    }
}

#[test]
fn what_a_scenario_file_cannot_have_is_named_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.toml");
    let path = file.to_str().unwrap();
    let cases = [
        ("[set]\nlard.t_low = 0\n", "s.toml line 4, column 6: policy `lard`: `t_low = 0`"),
        ("[set]\n\nlard.t_lwo = 3\n", "s.toml line 5, column 6: no policy"),
        ("set = { cpu_speed = 0 }\n", "s.toml line 3, column 9: model"),
        ("fault = \"down:9@1\"\n", "s.toml line 3, column 1: a fault names back-end 9"),
        ("seed = 2\nspeed = 5\n", "s.toml line 4, column 1: --speed goes with"),
    ];
    for (more, message) in cases {
        fs::write(&file, format!("traces = [\"synth:chess\"]\npolicy = \"lard\"\n{more}")).unwrap();
        let output = plimsoll(&["simulate", "--scenario", path]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(message), "no `{message}` in: {said}");
    }
    // What the command line gives is not the file's.
    fs::write(&file, "traces = [\"synth:chess\"]\nspeed = 5\narrivals = \"trace\"\n").unwrap();
    let output = plimsoll(&["simulate", "--scenario", path, "--speed", "7", "--arrivals", "closed"]);
    let said = text(&output.stderr);
    assert!(said.contains("with the scenario") && said.contains("--speed goes with"), "{said}");
}
