//! What commands print and write for people: tables that fit, and directories in which nothing of others is lost.

use std::fs;

use crate::common::{plimsoll, text};

const SIMULATE: &str = "simulate synth:chess --limit 3000 --hardware 1998 --backends 2,4";

fn run(line: &str, more: &[&str]) -> std::process::Output {
    let args: Vec<&str> = line.split(' ').chain(more.iter().copied()).collect();
    plimsoll(&args)
}

#[test]
fn tables_of_all_policies_fit_without_a_terminal() {
    let policies: Vec<&str> = plimsoll_policy::REGISTRY.iter().map(|spec| spec.name).collect();
    let all = policies.join(",");
    for more in [&["-p", &all][..], &["-p", &all, "--all-rows"], &["-p", &all, "--arrivals", "poisson:50"]] {
        let printed = text(&run(SIMULATE, more).stdout);
        for line in printed.lines() {
            assert!(line.chars().count() <= 80, "{line}\n{printed}");
        }
        assert!(policies.iter().all(|policy| printed.contains(policy)), "{printed}");
        assert_eq!(printed.contains("more policies, from best to worst"), !more.contains(&"--all-rows"));
    }
    let claims = text(&run("reproduce lard --quick --figure 6", &[]).stdout);
    assert!(claims.lines().all(|line| line.chars().count() <= 80), "{claims}");
    assert!(claims.contains("calibrated"), "{claims}");
}

#[test]
fn a_report_replaces_its_own_files_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let path = out.to_str().unwrap();
    let first = run(SIMULATE, &["--out", path]);
    assert!(first.status.success());
    assert!(!text(&first.stderr).contains("replaced"));
    fs::write(out.join("notes.csv"), "mine").unwrap();
    // Another command's report in its place, by itself and without a question.
    let second = run("trace stats synth:chess,requests=2000", &["--out", path]);
    assert!(second.status.success(), "{}", text(&second.stderr));
    assert!(text(&second.stderr).contains("replaced the report of `plimsoll simulate` in "));
    assert!(out.join("sizes.csv").exists() && !out.join("runs.csv").exists());
    assert_eq!(fs::read_to_string(out.join("notes.csv")).unwrap(), "mine");
}

#[test]
fn files_of_others_are_overwritten_only_by_force() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let mine = dir.path().join("runs.csv");
    for command in [SIMULATE, "reproduce lard --quick --figure 6", "demo"] {
        fs::write(&mine, "mine").unwrap();
        let refused = run(command, &["--out", path]);
        let message = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{command}: {message}");
        assert!(message.contains("runs.csv exists already") && message.contains("--force"), "{message}");
        assert!(refused.stdout.is_empty());
        assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
        // In place of the directory there is a file.
        let refused = run(command, &["--out", mine.to_str().unwrap(), "--force"]);
        assert_eq!(refused.status.code(), Some(2), "{command}");
        assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
    }
    assert!(run(SIMULATE, &["--out", path, "--force"]).status.success());
    assert!(fs::read_to_string(&mine).unwrap().starts_with("policy,"));
}

#[test]
fn results_are_printed_even_if_they_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    // The decisions take a name of the report's while the command works.
    let decisions = dir.path().join("runs.csv");
    let line = "simulate synth:chess --limit 3000 --hardware 1998 --backends 2 --policy lard";
    let output = run(line, &["--out", path, "--decisions", decisions.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("runs.csv exists already"), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.contains("lard") && !printed.contains("Report:"), "{printed}");
    assert!(fs::read_to_string(&decisions).unwrap().starts_with("request,time_s"));
}
