//! There is a change log, with a section for what is not released yet.

use super::Violation;
use super::tree::Tree;

const RULE: &str = "changelog";
const FILE: &str = "CHANGELOG.md";

/// Checks the change log.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let Some(text) = tree.text(FILE) else {
        return vec![Violation::new(FILE, 1, RULE, "missing; start one with a section `## Unreleased`")];
    };
    let has_section = text.lines().any(|line| matches!(line.trim_end(), "## Unreleased" | "## [Unreleased]"));
    match has_section {
        true => Vec::new(),
        false => vec![Violation::new(FILE, 1, RULE, "add a section `## Unreleased`")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_is_required() {
        let count = |text: &str| check(&Tree::of(&[(FILE, text)])).len();
        assert_eq!(count("# Changes\n\n## Unreleased\n"), 0);
        assert_eq!(count("# Changes\n\n## [Unreleased]\n"), 0);
        assert_eq!(count("# Changes\n\nUnreleased\n\n## 0.1.0\n"), 1);
        assert_eq!(check(&Tree::default()).len(), 1);
    }
}
