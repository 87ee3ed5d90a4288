//! Runs programs for the lab and waits for them.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::{Command, Output, Stdio};

use crate::error::LabError;

/// Debian packages of the programs that a lab may run.
const PACKAGES: [(&str, &str); 9] = [
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("nft", "nftables"),
    ("ethtool", "ethtool"),
    ("tcpdump", "tcpdump"),
    ("nsenter", "util-linux"),
    ("unshare", "util-linux"),
    ("taskset", "util-linux"),
    ("chrt", "util-linux"),
];

/// The error when `program` cannot be started.
pub(crate) fn not_started(program: &str, error: io::Error) -> LabError {
    if error.kind() != io::ErrorKind::NotFound {
        return LabError::system(format!("run `{program}`"), error);
    }
    let package =
        PACKAGES.iter().find(|(name, _)| *name == program).map_or("unknown", |(_, package)| package);
    LabError::Program { program: program.to_owned(), package }
}

/// Whether a program is in the search path.
pub(crate) fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|directory| directory.join(program).is_file())
}

/// Fails unless `program` is installed. For programs that are run through another one.
pub(crate) fn need(program: &str) -> Result<(), LabError> {
    if is_installed(program) { Ok(()) } else { Err(not_started(program, io::ErrorKind::NotFound.into())) }
}

/// Runs a command with this standard input and returns its standard output.
pub(crate) fn run(command: &mut Command, input: &str) -> Result<String, LabError> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| not_started(&program, e))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read all of its input prints why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output =
        child.wait_with_output().map_err(|e| LabError::system(format!("wait for `{program}`"), e))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(failed(command, input, &output))
}

fn failed(command: &Command, input: &str, output: &Output) -> LabError {
    let printed = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let printed = String::from_utf8_lossy(printed).trim().to_owned();
    LabError::Command {
        command: failed_line(&printed, input).unwrap_or_else(|| line(command)),
        status: output.status.to_string(),
        printed: if printed.is_empty() { "it printed nothing".to_owned() } else { printed },
    }
}

/// Of several commands given to `ip -batch -` or `tc -batch -`, the one that failed.
fn failed_line(printed: &str, input: &str) -> Option<String> {
    let (_, number) = printed.rsplit_once("Command failed -:")?;
    let number: usize = number.trim().parse().ok()?;
    input.lines().nth(number.checked_sub(1)?).map(|line| format!("ip {line}"))
}

/// The command as one would type it, without the part that enters the node.
pub(crate) fn line(command: &Command) -> String {
    let mut words: Vec<String> = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    if let Some(end) = words.iter().position(|word| word == "--") {
        words.drain(..=end);
    }
    let mut line = String::new();
    for word in &words {
        // Writing to a string does not fail.
        let _ = write!(line, "{}{word}", if line.is_empty() { "" } else { " " });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_failure() {
        assert_eq!(run(&mut Command::new("cat"), "a\nb\n").unwrap(), "a\nb\n");
        let error = run(Command::new("sh").args(["-c", "echo why >&2; exit 3"]), "").unwrap_err().to_string();
        assert_eq!(error, "`sh -c echo why >&2; exit 3` failed (exit status: 3): why");
        let error = run(Command::new("nsenter").args(["--target", "x", "--", "true"]), "").unwrap_err();
        assert!(error.to_string().starts_with("`true` failed"), "{error}");
    }

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let error = not_started("ip", io::ErrorKind::NotFound.into()).to_string();
        assert_eq!(error, "the program `ip` is missing; install it (Debian package iproute2)");
        assert!(need("sh").is_ok() && need("no-such-program-here").is_err());
    }

    #[test]
    fn a_failed_line_of_several_is_found() {
        let printed = "RTNETLINK answers: File exists\nCommand failed -:2";
        assert_eq!(failed_line(printed, "link a\nlink b\n").as_deref(), Some("ip link b"));
        assert_eq!(failed_line("Command failed -:9", "link a\n"), None);
        assert_eq!(failed_line("Command failed -:0", "link a\n"), None);
        assert_eq!(failed_line("no", "link a\n"), None);
    }
}
