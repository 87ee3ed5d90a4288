//! `plimsoll advise`.

use serde_json::Value;

use crate::common::{plimsoll, plimsoll_with_input, text};

const QUESTION: &str =
    "advise synth:chess --limit 6000 --hardware 1998 --memory 1MiB --backends 3 --target-load 100";

fn run(line: &str, more: &[&str]) -> std::process::Output {
    let args: Vec<&str> = line.split(' ').chain(more.iter().copied()).collect();
    plimsoll(&args)
}

#[test]
fn an_advice_is_the_same_again_and_its_configuration_is_good() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("advice");
    let first = run(QUESTION, &["--out", out.to_str().unwrap()]);
    let printed = text(&first.stdout);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    assert!(printed.contains("ADVICE") && printed.contains("3 back-ends with 1 MiB"), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    let config = out.join("plimsoll.toml");
    let check = plimsoll(&["check", "--config", config.to_str().unwrap()]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stderr));
    assert!(text(&check.stdout).contains("is good"));
    let advice: Value = serde_json::from_slice(&std::fs::read(out.join("advice.json")).unwrap()).unwrap();
    let policy = advice["policy"].as_str().unwrap();
    assert!(std::fs::read_to_string(&config).unwrap().contains(&format!("name = \"{policy}\"")));
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("How to distribute the load of this site") && report.contains(policy));
    let (again, once_more) = (run(QUESTION, &["--json"]), run(QUESTION, &["--json"]));
    assert_eq!(text(&again.stdout), text(&once_more.stdout));
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["policies"], advice["policies"]);
    assert_eq!(again["backends"], 3);
}

/// A log whose requests differ in their queries alone, and whose name is more than one line.
#[test]
fn the_configuration_counts_targets_as_the_log_was_read_and_is_good_whatever_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let (log, out) = (dir.path().join("a\nx = 1.log"), dir.path().join("advice"));
    let line = |n: u32| {
        let (minute, second) = (n / 60 % 60, n % 60);
        format!(
            "192.0.2.1 - - [01/Jan/2026:00:{minute:02}:{second:02} +0000] \"GET /{}?s={n} HTTP/1.1\" 200 9000\n",
            n % 70
        )
    };
    std::fs::write(&log, (0..3_000).map(line).collect::<String>()).unwrap();
    // So few that both times of the log, one behind the other, would be beyond what the simulator counts, if they began in 1970.
    let asked = [
        "advise",
        log.to_str().unwrap(),
        "--strip-query",
        "--target-load",
        "0.01x",
        "--seed",
        "18446744073709551615",
    ];
    let advised = plimsoll(&[&asked[..], &["--out", out.to_str().unwrap()]].concat());
    assert_eq!(advised.status.code(), Some(0), "{}", text(&advised.stderr));
    let config = out.join("plimsoll.toml");
    let check = plimsoll(&["check", "--config", config.to_str().unwrap()]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stderr));
    assert!(std::fs::read_to_string(&config).unwrap().contains("[target]\nkey = \"path\"\n"));
    let advice: Value = serde_json::from_slice(&std::fs::read(out.join("advice.json")).unwrap()).unwrap();
    assert!(advice["policies"][0]["capacity_rps"].as_f64().is_some_and(|rps| rps > 1_000.0), "{advice}");
}

#[test]
fn logs_that_lead_to_no_advice_are_refused() {
    let line = |n: u32| {
        format!("192.0.2.1 - - [01/Jan/2026:00:00:{:02} +0000] \"GET /{n} HTTP/1.1\" 200 -\n", n % 60)
    };
    let few: String = (0..10).map(line).collect();
    let no_sizes: String = (0..60).flat_map(|n| vec![line(n); 40]).collect();
    let cases: [(&[u8], &str); 4] = [
        (b"", "-"),
        (few.as_bytes(), "10 requests are too few"),
        (no_sizes.as_bytes(), "--fields size="),
        (b"nothing that is a log\nat all\n", "--format"),
    ];
    for (log, said) in cases {
        let output = plimsoll_with_input(&["advise", "-"], log);
        let messages = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{messages}");
        assert!(messages.contains(said), "{messages}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn questions_that_make_no_sense_are_refused() {
    let cases: [(&[&str], &str); 8] = [
        (&["--target-load", "many"], "such as 3x"),
        (&["--target-load", "1000000000"], "expected 0.001 to"),
        (&["--p99", "0"], "above 0"),
        (&["--memory", "0"], "--memory"),
        (&["--backends", "0"], "--backends"),
        (&["--network", "10"], "10Gbit"),
        (&["--set", "lard_r.t_low=3"], "plimsoll measure"),
        (&["--hardware", "nvem"], "nvme"),
    ];
    for (more, said) in cases {
        let output = run("advise synth:chess --limit 3000", more);
        let messages = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {messages}");
        assert!(messages.contains(said), "{more:?}: {messages}");
    }
}

#[test]
fn what_the_log_does_not_tell_is_said() {
    // All within one second, and most of it by POST.
    let line = |n: u32| {
        let method = if n.is_multiple_of(10) { "GET" } else { "POST" };
        format!("192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] \"{method} /{} HTTP/1.1\" 200 9000\n", n % 70)
    };
    let log: String = (0..30_000).map(line).collect();
    let output = plimsoll_with_input(&["advise", "-"], log.as_bytes());
    let said = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(said.contains("all its times are within one second") && !said.contains("has no times"), "{said}");
    assert!(said.contains("90.0 % of the log's requests do not count here"), "{said}");
    assert!(said.contains("Take any balancer") && said.contains("256 MiB"), "{said}");
    let output = plimsoll_with_input(&["advise", "-", "--target-load", "3x"], log.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("within one second"), "{}", text(&output.stderr));
}
