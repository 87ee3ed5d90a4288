//! Tests and fuzz targets that the document on security names are there.

use super::Violation;
use super::tree::Tree;

const RULE: &str = "named-tests";
const DOCUMENT: &str = "docs/security.md";

/// Checks what stands in backquotes as `FILE::TEST`, with a file of Rust, and as `fuzz:TARGET`.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let Some(text) = tree.text(DOCUMENT) else {
        return vec![Violation::new(
            DOCUMENT,
            1,
            RULE,
            "missing; it says what holds attacks, and by which tests",
        )];
    };
    let mut violations = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        for quoted in text.split('`').skip(1).step_by(2) {
            let remedy = match quoted.split_once(".rs::") {
                Some((file, test)) => missing_test(tree, &format!("{file}.rs"), test),
                None => quoted.strip_prefix("fuzz:").and_then(|target| missing_target(tree, target)),
            };
            violations.extend(remedy.map(|remedy| Violation::new(DOCUMENT, line, RULE, remedy)));
        }
    }
    violations
}

/// Files are told from `crates/`.
fn missing_test(tree: &Tree, file: &str, test: &str) -> Option<String> {
    let path = format!("crates/{file}");
    match tree.text(&path) {
        None => Some(format!("there is no file {path}; name the one that has `{test}`")),
        Some(text) if text.contains(&format!("fn {test}(")) => None,
        Some(_) => Some(format!("{path} has no test `{test}`; name the one that shows this")),
    }
}

fn missing_target(tree: &Tree, target: &str) -> Option<String> {
    let path = format!("fuzz/fuzz_targets/{target}.rs");
    (!tree.exists(&path)).then(|| format!("there is no {path}; name a fuzz target"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_must_be_there() {
        let count = |document: &str| {
            let test = ("crates/a/tests/it.rs", "#[test]\nfn holds() {}\n");
            let target = ("fuzz/fuzz_targets/x.rs", "");
            check(&Tree::of(&[(DOCUMENT, document), test, target])).len()
        };
        assert_eq!(count("| a | `a/tests/it.rs::holds`, `fuzz:x` |"), 0);
        assert_eq!(count("`a/tests/it.rs::gone` `b/tests/it.rs::holds`\n`fuzz:y`"), 3);
        assert_eq!(check(&Tree::default()).len(), 1);
    }
}
