//! The command with the policy: what a user types.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_own-policy")).args(arguments).output().unwrap()
}

fn simulate(policy: &str) -> Output {
    let arguments =
        ["simulate", "synth:rice", "--limit", "2000", "--backends", "4", "--json", "--policy", policy];
    run(&arguments)
}

fn text(output: &[u8]) -> String {
    String::from_utf8(output.to_vec()).unwrap()
}

#[test]
fn simulate_runs_the_own_policy_beside_others() {
    let out = simulate("hashed_choices:choices=3,uri_hash");
    assert!(out.status.success(), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    assert!(said.contains("hashed_choices") && said.contains("uri_hash"), "{said}");
}

#[test]
fn lists_and_errors_know_it() {
    assert!(text(&run(&["policies"]).stdout).contains("hashed_choices"));
    let wrong = simulate("hashed_choice");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("hashed_choices"), "{}", text(&wrong.stderr));
    let wrong = simulate("hashed_choices:choices=0");
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong.stderr));
}
