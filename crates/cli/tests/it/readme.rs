//! The commands of the README, as somebody pastes them.

use std::path::Path;
use std::process::Command;

use plimsoll_testkit::OwnLoopback;

use crate::common::text;

const README: &str = include_str!("../../../../README.md");

/// The commands of the section with this title, those of all its blocks for a shell.
fn commands(title: &str) -> String {
    let section = README.split("\n## ").find(|section| section.starts_with(title)).unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    blocks.collect()
}

#[test]
fn the_live_quick_start_answers_and_replays() {
    let (own, directory) = (OwnLoopback::new(), tempfile::tempdir().unwrap());
    let address = own.at(80).ip().to_string();
    let script = commands("Balance live traffic").replace("127.0.0.1:", &format!("{address}:"));
    assert!(script.contains("plimsoll balance") && script.contains("plimsoll replay"), "{script}");
    let bin = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    // What fails ends the script, and with it what it has started.
    let script = format!("set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}");
    let output = Command::new("bash")
        .arg("-c")
        .arg(&script)
        .env("PATH", path)
        .current_dir(directory.path())
        .output()
        .unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("plimsoll.toml is good."), "{stdout}");
    assert!(stdout.contains("\n200\n"), "{stdout}\n{stderr}");
    assert!(
        stdout.contains("\"policy\": \"lard_r\"") && stdout.contains("has assigned this target to"),
        "{stdout}"
    );
    assert!(stdout.contains("identical"), "{stdout}");
    let page = std::fs::metadata(directory.path().join("try-plimsoll/page")).unwrap();
    assert_eq!(page.len(), 10_000);
    // Everything that was written is in that directory.
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}
