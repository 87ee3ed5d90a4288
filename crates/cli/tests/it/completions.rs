//! Shell completions and manual pages: they know all commands, and shells and `man` understand them.

use std::process::Command;

use crate::common::{plimsoll, text};

/// The commands that the help lists.
fn commands() -> Vec<String> {
    let help = text(&plimsoll(&["--help"]).stdout);
    let list = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let names =
        list.lines().filter_map(|line| line.split_whitespace().next().filter(|_| !line.starts_with("    ")));
    names.map(str::to_owned).filter(|name| name != "help").collect()
}

#[test]
fn scripts_complete_every_command() {
    let commands = commands();
    assert!(commands.len() > 10 && commands.contains(&"completions".to_owned()), "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = plimsoll(&["completions", shell]);
        let script = text(&output.stdout);
        assert!(output.status.success(), "{shell}");
        for what in commands.iter().map(String::as_str).chain(["no-resolve", "log-format"]) {
            assert!(script.contains(what), "{shell} does not know {what}");
        }
    }
    assert_eq!(plimsoll(&["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn bash_completes() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("plimsoll");
    std::fs::write(&file, plimsoll(&["completions", "bash"]).stdout).unwrap();
    let complete = |words: &str| {
        let script = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _plimsoll plimsoll \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[@]}}\"",
            file.display()
        );
        let output = Command::new("bash").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    };
    assert_eq!(complete("plimsoll bal"), "balance");
    assert_eq!(complete("plimsoll check --no"), "--no-resolve");
    assert_eq!(complete("plimsoll balance --log-format js"), "json");
}

#[test]
fn each_command_has_a_manual_page() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man1");
    assert!(plimsoll(&["man", pages.to_str().unwrap()]).status.success());
    let main = std::fs::read_to_string(pages.join("plimsoll.1")).unwrap();
    for command in commands() {
        let page = std::fs::read_to_string(pages.join(format!("plimsoll-{command}.1"))).unwrap();
        assert!(page.starts_with(".ie") && page.contains(".SH SYNOPSIS"), "{command}: {page}");
        let shown = command.replace('-', "\\-");
        assert!(main.contains(&format!("plimsoll\\-{shown}(1)")), "{command}");
    }
    let output = plimsoll(&["man", "/proc/none"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
}
