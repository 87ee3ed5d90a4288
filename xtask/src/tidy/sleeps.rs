//! Tests wait for events and not for time: no bare sleep in a test, no upper bound on time that a busy machine can miss.

use super::Violation;
use super::tree::Tree;
use super::words::{has_word, is_test_file};

const RULE: &str = "sleeps";
/// The one crate that lets time pass, in functions that say why.
const TESTKIT: &str = "crates/testkit/";
const SLEEPS: &[&str] = &["sleep", "sleep_until", "sleep_ms", "park_timeout"];
/// The one upper bound: what only a failure reaches.
const BOUND: &str = "PATIENCE";

/// Checks the tests of the crates, unit tests included.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let is_checked =
        |path: &str| path.ends_with(".rs") && path.starts_with("crates/") && !path.starts_with(TESTKIT);
    for (path, text) in tree.texts().filter(|(path, _)| is_checked(path)) {
        let before_tests = if is_test_file(path) { 0 } else { lines_before_unit_tests(text) };
        // The clock of the runtime is the test's own where it stands still unless everybody waits.
        let mut paused = false;
        for (index, line) in text.lines().enumerate().skip(before_tests) {
            let code = line.split("//").next().unwrap_or_default();
            if code.contains("#[test]") || code.contains("::test") {
                paused = code.contains("start_paused = true");
            }
            let mut report = |remedy: String| violations.push(Violation::new(path, index + 1, RULE, remedy));
            if let Some(sleep) = SLEEPS.iter().find(|name| is_called(code, name))
                && !paused
            {
                report(format!(
                    "`{sleep}` in a test: wait for the event (`testkit::eventually`), or say why time has to pass \
                     (`testkit::pace`)"
                ));
            }
            if !paused && has_upper_bound(code) {
                report(format!(
                    "a busy machine takes longer: wait for the event, or compare with `testkit::{BOUND}`"
                ));
            }
        }
    }
    violations
}

/// How many lines come before the unit tests, which by convention stand last in a file, or in a file of their own.
fn lines_before_unit_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let begins =
        |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    lines.windows(2).position(begins).unwrap_or(lines.len())
}

/// Whether `name` is called or imported, be it behind a path.
fn is_called(code: &str, name: &str) -> bool {
    has_word(code, name)
        && (code.contains(&format!("{name}(")) || code.trim_start().starts_with("use "))
        && !code.contains(&format!("fn {name}("))
        && !code.contains(&format!("\"{name}"))
}

/// Whether an assertion demands that less time than some other bound has passed.
fn has_upper_bound(code: &str) -> bool {
    let Some((_, condition)) = code.split_once("assert!(") else {
        return false;
    };
    condition.match_indices("elapsed() <").any(|(at, found)| {
        let bound = condition[at + found.len()..].trim_start_matches('=').trim_start();
        !has_word(bound.split([',', ')', '&', '|']).next().unwrap_or_default(), BOUND)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).iter().map(|violation| violation.line).collect()
    }

    fn in_tests(text: &str) -> Vec<usize> {
        lines("crates/a/tests/it/b.rs", text)
    }

    #[test]
    fn sleeps_are_found_in_tests_alone() {
        let sleep = "std::thread::sleep(TIME);\n";
        assert_eq!(in_tests(sleep), [1]);
        assert_eq!(lines("crates/a/src/b/tests.rs", sleep), [1]);
        assert_eq!(lines("crates/a/src/b.rs", sleep), NONE);
        assert_eq!(
            lines("crates/a/src/b.rs", &format!("{sleep}#[cfg(test)]\nmod tests {{\n{sleep}}}\n")),
            [4]
        );
        assert_eq!(lines("crates/a/src/b.rs", &format!("#[cfg(test)]\nmod tests;\n{sleep}")), NONE);
        assert_eq!(lines("crates/testkit/src/tests.rs", sleep), NONE);
    }

    #[test]
    fn sleeps_under_every_name_are_found() {
        assert_eq!(in_tests("use std::thread::sleep;\n\ntokio::time::sleep_until(end).await;\n"), [1, 3]);
        assert_eq!(in_tests("// sleep(1)\nlet args = [\"sleep\", \"1000\"];\nfn no_sleep() {}\n"), NONE);
        assert_eq!(in_tests("std::thread::park_timeout(TIME);"), [1]);
    }

    #[test]
    fn a_clock_that_the_test_moves_may_be_slept_by() {
        let sleep = "tokio::time::sleep(TIME).await;\n";
        assert_eq!(
            in_tests(&format!("#[tokio::test(start_paused = true)]\n{sleep}#[tokio::test]\n{sleep}")),
            [4]
        );
    }

    #[test]
    fn upper_bounds_are_found() {
        assert_eq!(in_tests("assert!(began.elapsed() < Duration::from_secs(5));"), [1]);
        assert_eq!(in_tests("    assert!(ends && began.elapsed() <= LIMIT, \"{PATIENCE:?}\");"), [1]);
        assert_eq!(in_tests("assert!(began.elapsed() < PATIENCE);\nassert!(began.elapsed() >= TIME);"), NONE);
        assert_eq!(in_tests("while began.elapsed() < TIME {}"), NONE);
    }
}
