//! What no source or document holds: a path of the machine it was written on, a note of unfinished work, an ignored test.

use super::Violation;
use super::tree::Tree;
use super::words::{has_word, is_test_file, lines_before_tests};

const RULE: &str = "source-text";
// In pieces, so that this file does not break its own rule.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/tm", "p/")];
const UNFINISHED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const IGNORED: &str = concat!("#[ign", "ore");
const ENDINGS: &[&str] = &[".rs", ".toml", ".md", ".sh", ".py", "Makefile", ".ci/run"];

/// Checks all sources and documents.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| ENDINGS.iter().any(|e| path.ends_with(e))) {
        for (index, line) in text.lines().enumerate() {
            let mut report = |remedy: String| violations.push(Violation::new(path, index + 1, RULE, remedy));
            for word in UNFINISHED.iter().filter(|word| has_word(line, word)) {
                report(format!("`{word}`: finish it, or record it as an issue"));
            }
            if path.ends_with(".rs") && line.contains(IGNORED) {
                report("an ignored test proves nothing; make it run or remove it".to_owned());
            }
        }
        if !is_test_file(path) {
            let lines: Vec<(usize, &str)> = match path.ends_with(".rs") {
                true => lines_before_tests(text).collect(),
                false => text.lines().enumerate().map(|(index, line)| (index + 1, line)).collect(),
            };
            for (number, line) in lines {
                for machine_path in MACHINE_PATHS.iter().filter(|p| has_absolute(line, p)) {
                    let remedy =
                        format!("`{machine_path}...` exists on one machine only; use a relative path");
                    violations.push(Violation::new(path, number, RULE, remedy));
                }
            }
        }
    }
    violations
}

/// Whether `line` holds `path` as the start of a path, not amid one.
fn has_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| {
            c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | ')' | '*' | '~' | '/')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn notes_of_unfinished_work_are_reported() {
        for word in UNFINISHED {
            assert_eq!(count("a.rs", &format!("x // {word}: later\n")), 1);
            assert_eq!(count("a.rs", &format!("x_{word}\n")), 0);
        }
        assert_eq!(count("a.rs", &format!("#[cfg(test)]\nmod tests {{\n{IGNORED}]\n}}\n")), 1);
    }

    #[test]
    fn machine_paths_are_reported_outside_tests() {
        for path in MACHINE_PATHS {
            let line = format!("let p = \"{path}x\";\n");
            assert_eq!(count("crates/a/src/lib.rs", &line), 1, "{path}");
            assert_eq!(count("docs/a.md", &format!("write to {path}x")), 1, "{path}");
            assert_eq!(count("crates/a/tests/it/main.rs", &line), 0, "{path}");
            assert_eq!(
                count("crates/a/src/lib.rs", &format!("#[cfg(test)]\nmod tests {{\n{line}}}\n")),
                0,
                "{path}"
            );
            assert_eq!(
                count("crates/a/src/lib.rs", &format!("{line}#[cfg(test)]\nmod tests {{\n}}\n")),
                1,
                "{path}"
            );
            assert_eq!(count("a.md", &format!("../x{path}y")), 0, "{path}");
        }
    }
}
