//! `plimsoll trace`: here `stats`, and what the tests of the others need.

mod convert;
mod formats;
mod logs;
mod real;
mod synth;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::common::shared as real_trace;

fn plimsoll(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.arg("trace").args(args).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    plimsoll(args).output().unwrap()
}

/// Standard output of a run that must succeed.
fn stdout(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn stats(trace: &str) -> Value {
    serde_json::from_str(&stdout(&["stats", trace, "--json"])).unwrap()
}

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), content).unwrap();
        self.name(name)
    }
}

/// Checks that a run fails with this exit code, prints no result and says these things in one paragraph.
fn fails(args: &[&str], code: i32, says: &[&str]) {
    let output = run(args);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    assert_eq!(output.stdout, b"", "{args:?}");
    for text in says {
        assert!(message.contains(text), "{args:?} does not say {text:?}: {message}");
    }
    // clap adds a usage line and a pointer to --help to its own errors.
    let own = message.strip_prefix("plimsoll: ");
    assert!(own.is_none_or(|text| text.trim_end().lines().count() == 1), "{message}");
    assert!(!message.contains("panicked"), "{message}");
}

fn counts<'a>(list: &'a Value, pick: fn(&Value) -> &Value) -> impl Iterator<Item = u64> + 'a {
    let list = list.as_array().unwrap().iter();
    list.map(move |entry| pick(entry).as_u64().unwrap())
}

#[test]
fn the_text_tells_the_same() {
    let Some(path) = real_trace("apache_combined_2015.log.gz") else {
        return;
    };
    let text = stdout(&["stats", &path]);
    for part in [
        "Read as combined-log: 10,000 lines, 9,614 requests counted.",
        "Not counted: method POST: 2, status 301: 164,",
        "Requests       9,614\n",
        "Targets        1,389\n",
        "2.56 GiB (2,746,940,015 B)",
        "535 MiB (561,277,715 B)",
        "8.4 % of requests: /favicon.ico",
        "from 2015-05-17 10:05:00 UTC to 2015-05-20 21:05:59",
        "Errors: none",
        "Sizes of documents",
        "Arrivals per minute",
        "█",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let width = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(width <= 80, "{width}");
}

#[test]
fn rejected_lines_are_shown_with_reasons() {
    let scratch = Scratch::new();
    let mut log = String::new();
    for second in 0..50 {
        log += &format!("h - - [01/Jul/1995:00:00:{second:02} +0000] \"GET /a HTTP/1.0\" 200 10\n");
        if second == 7 {
            log += "not a line of a log \u{1b}[2J\n";
        }
    }
    let path = scratch.file("access.log", log);
    let text = stdout(&["stats", &path]);
    assert!(text.contains("Errors: 1 of 51 lines (2.0 %) could not be used:\n"), "{text}");
    assert!(text.contains("access.log line 9: "), "{text}");
    let found = stats(&path);
    assert_eq!((&found["lines_rejected"], &found["rejections"][0]["line"]), (&1.into(), &9.into()));
    fails(&["stats", &path, "--max-bad-ratio", "0.01"], 1, &["1 of 51 lines", "line 9"]);
}

#[test]
fn the_report_holds_the_data_of_its_plots() {
    let Some(path) = real_trace("worldcup98_test_log.gz") else {
        return;
    };
    let scratch = Scratch::new();
    let dir = scratch.name("a/report");
    let text = stdout(&["stats", &path, "--out", &dir]);
    assert!(text.contains(&format!("Report: {dir}/report.html")), "{text}");
    let read = |name: &str| fs::read_to_string(Path::new(&dir).join(name)).unwrap();
    let html = read("report.html");
    for title in
        ["Cumulative requests and sizes", "Memory to cover requests", "Popularity", "Requests per minute"]
    {
        assert!(html.contains(&format!(">{title}</figcaption>")), "{title}");
    }
    assert!(!html.contains("src=\"http"), "the report must not need the network");
    let targets = read("targets.csv");
    assert_eq!(targets.lines().count(), 411);
    assert!(targets.lines().nth(1).unwrap().starts_with("1,3208,99,"), "{targets}");
    assert!(targets.lines().last().unwrap().ends_with(",1000,1626894"), "{targets}");
    let sum = |name: &str, column: usize| -> u64 {
        let table = read(name);
        let cells = table.lines().skip(1).map(|line| line.split(',').nth(column).unwrap());
        cells.map(|cell| cell.parse::<u64>().unwrap()).sum()
    };
    assert_eq!(sum("sizes.csv", 2), 1_000);
    assert_eq!(sum("sizes.csv", 3), 410);
    assert_eq!(sum("arrivals.csv", 2), 1_000);
}

#[test]
fn world_cup_totals_are_checked() {
    let (Some(log), Some(check)) =
        (real_trace("worldcup98_test_log.gz"), real_trace("worldcup98_test_log.check"))
    else {
        return;
    };
    let published = fs::read_to_string(&check).unwrap();
    let text = stdout(&["stats", &log, "--check", &check]);
    assert!(text.contains(published.trim_end()), "{text}");
    assert!(text.contains(&format!("Check: equal to {check}, all 21 lines.")), "{text}");
    // The same file with Windows line ends says the same.
    let scratch = Scratch::new();
    let windows = scratch.file("windows.check", published.replace('\n', "\r\n"));
    stdout(&["stats", &log, "--check", &windows]);

    let altered = published.replace("Max Size: 60349", "Max Size: 60350").replace("Server 96: 247\n", "");
    let altered = scratch.file("altered.check", altered);
    let output = run(&["stats", &log, "--check", &altered]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(
        text.contains("line   9 -           Max Size: 60350\n  line   9 +           Max Size: 60349\n"),
        "{text}"
    );
    assert!(text.contains("- (no such line)\n"), "{text}");
    assert!(stderr(&output).contains("differ from"), "{}", stderr(&output));

    let json = run(&["stats", &log, "--json", "--check", &altered]);
    assert_eq!(json.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["check"]["equal"], false);
    assert_eq!(json["check"]["differences"][0]["line"], 9);
    assert_eq!(json["world_cup_check"].as_str().unwrap().trim_end(), published.trim_end());
}

#[test]
fn check_wants_a_world_cup_log_read_whole() {
    let (Some(log), Some(check)) =
        (real_trace("nasa_1995_excerpt.log.gz"), real_trace("worldcup98_test_log.check"))
    else {
        return;
    };
    fails(&["stats", &log, "--check", &check], 2, &["World Cup 98 log", "common-log"]);
    fails(&["stats", &log, "--check", &check, "--limit", "5"], 2, &["--limit"]);
    fails(&["stats", &log, "--check", "missing.check"], 1, &["missing.check"]);
}

#[test]
fn bad_traces_are_refused_with_reasons() {
    let scratch = Scratch::new();
    fails(&["stats", &scratch.name("missing.log")], 1, &["missing.log", "existing file"]);
    fails(&["stats", &scratch.file("empty", "")], 1, &["it is empty"]);
    fails(&["stats", &scratch.file("text", "hello\nworld\n")], 1, &["--format"]);
    fails(&["stats", "x", "--format", "comon-log"], 2, &["did you mean `common-log`?"]);
    fails(&["stats", "synth:rize"], 2, &["did you mean \"rice\"?"]);
    if let Some(path) = real_trace("nasa_1995_excerpt.log.gz") {
        let whole = fs::read(path).unwrap();
        let cut = scratch.file("cut.log.gz", &whole[..whole.len() / 2]);
        fails(&["stats", &cut], 1, &["cut.log.gz", "gzip", "end before"]);
    }
}

#[test]
fn names_of_any_length_keep_within_the_width() {
    let scratch = Scratch::new();
    let name = "/x".repeat(500);
    let path = scratch.file("trace.csv", format!("time_s,target,size_bytes\n0,{name},1\n1,{name},1\n"));
    let text = stdout(&["stats", &path]);
    let facts = text.split("Requests ").nth(1).unwrap();
    assert!(facts.contains("/x/x/x") && facts.contains('…'), "{text}");
    assert!(facts.lines().all(|line| line.chars().count() <= 100), "{text}");
}
