//! Rust files stay short: over 400 lines only with a reason, over 500 never.

use super::Violation;
use super::tree::Tree;

const RULE: &str = "file-length";
const USUAL_LINES: usize = 400;
const MOST_LINES: usize = 500;

/// Files that may have more than 400 lines, each with the reason.
pub(super) const LONG_FILES: &[(&str, &str)] = &[];

/// Checks the length of every Rust file, and that the list of long ones is not out of date.
pub(super) fn check(tree: &Tree, long_files: &[(&str, &str)]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".rs")) {
        let lines = text.lines().count();
        let listed = long_files.iter().any(|&(file, reason)| file == path && !reason.is_empty());
        let remedy = if lines > MOST_LINES {
            format!("{lines} lines, at most {MOST_LINES} are allowed; split it by subject")
        } else if lines > USUAL_LINES && !listed {
            format!(
                "{lines} lines, more than {USUAL_LINES}; split it, or list it with a reason in {}",
                file!()
            )
        } else {
            continue;
        };
        violations.push(Violation::new(path, 1, RULE, remedy));
    }
    for &(path, _) in long_files {
        let lines = tree.text(path).map_or(0, |text| text.lines().count());
        if lines <= USUAL_LINES {
            let remedy = format!("{lines} lines need no exception; remove it from the list in {}", file!());
            violations.push(Violation::new(path, 1, RULE, remedy));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(lines: usize, long_files: &[(&str, &str)]) -> usize {
        check(&Tree::of(&[("a.rs", &"x\n".repeat(lines)), ("b.md", &"x\n".repeat(900))]), long_files).len()
    }

    #[test]
    fn boundaries() {
        assert_eq!(lengths(400, &[]), 0);
        assert_eq!(lengths(401, &[]), 1);
        assert_eq!(lengths(401, &[("a.rs", "one table")]), 0);
        assert_eq!(lengths(401, &[("a.rs", "")]), 1);
        assert_eq!(lengths(501, &[("a.rs", "one table")]), 1);
    }

    #[test]
    fn a_needless_exception_is_reported() {
        assert_eq!(lengths(400, &[("a.rs", "one table")]), 1);
        assert_eq!(lengths(400, &[("gone.rs", "one table")]), 1);
    }
}
