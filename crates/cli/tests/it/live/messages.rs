//! The forms of messages on standard error.

use std::process::Stdio;

use super::processes::{Process, config, private_directory};

/// Starts a front-end whose one back-end's name leads nowhere, with these options, and ends it.
fn said(options: &[&str]) -> Vec<String> {
    let directory = private_directory();
    let file = directory.path().join("plimsoll.toml");
    let text = config(&[], "[[backend]]\nname = \"late\"\naddress = \"late.invalid:80\"\n");
    std::fs::write(&file, text).unwrap();
    let all = [&["balance", "--no-watch", "--config", file.to_str().unwrap()], options].concat();
    let mut process = Process::start_with_stdout(&all, Stdio::null());
    process.wait_for("admin API on http://", 0);
    // What is no configuration any longer is a message of several lines.
    std::fs::write(&file, "nonsense").unwrap();
    process.signal("-HUP");
    process.wait_for("stays in force", 0);
    process.signal("-TERM");
    assert_eq!(process.wait(), Some(0), "{}", process.said());
    process.wait_for("stopping", 0);
    process.said().lines().map(str::to_owned).collect()
}

#[test]
fn every_line_has_time_and_level_where_there_is_no_terminal() {
    for line in said(&[]) {
        let (time, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{line}");
        assert!(
            ["INFO ", "WARN ", "ERROR "].iter().any(|level| rest.trim_start().starts_with(level)),
            "{line}"
        );
    }
}

#[test]
fn every_line_is_short_where_that_is_asked_for() {
    for line in said(&["--log-format", "short"]) {
        assert!(line.starts_with("plimsoll: "), "{line}");
    }
}

#[test]
fn every_line_is_an_object_where_that_is_asked_for() {
    let mut warned = false;
    for line in said(&["--log-format", "json"]) {
        let message: serde_json::Value =
            serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(message["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{line}");
        for key in ["level", "message", "target"] {
            assert!(message[key].is_string(), "{line}");
        }
        warned |= message["level"] == "WARN" && message["backend"] == "late";
    }
    assert!(warned);
}

#[test]
fn an_origin_that_cannot_start_says_why_in_the_form_that_was_asked_for() {
    let mut origin = Process::start_with_stdout(
        &["origin", "--synthetic", "nonsense", "--log-format", "json"],
        Stdio::null(),
    );
    assert_eq!(origin.wait(), Some(2), "{}", origin.said());
    let line = origin.wait_for("nonsense", 0);
    let message: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
    assert_eq!(message["level"], "ERROR");
}
