//! Decision records are numbered without gaps and listed in their index.

use super::Violation;
use super::tree::Tree;

const RULE: &str = "decisions";
const DIRECTORY: &str = "docs/decisions";
const INDEX: &str = "docs/decisions/README.md";

/// Checks the directory of decision records.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let Some(index) = tree.text(INDEX) else {
        return vec![Violation::new(INDEX, 1, RULE, "missing; list every decision record with a link")];
    };
    let mut expected = 1;
    for (name, _) in tree.files_in(DIRECTORY, ".md").filter(|(name, _)| *name != "README.md") {
        let path = format!("{DIRECTORY}/{name}");
        let number: Option<u32> =
            name.split_once('-').filter(|(digits, _)| digits.len() == 4).and_then(|(d, _)| d.parse().ok());
        match number {
            Some(number) if number == expected => expected += 1,
            Some(number) => {
                let remedy = format!("numbered {number:04} where {expected:04} comes next; renumber it");
                violations.push(Violation::new(&path, 1, RULE, remedy));
                expected = number + 1;
            }
            None => violations.push(Violation::new(&path, 1, RULE, "call it NNNN-subject.md, with a number")),
        }
        if !index.contains(&format!("]({name})")) {
            violations.push(Violation::new(INDEX, 1, RULE, format!("add a link to {name}")));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(index: &str, names: &[&str]) -> usize {
        let paths: Vec<String> = names.iter().map(|name| format!("{DIRECTORY}/{name}")).collect();
        let mut files = vec![(INDEX, index)];
        files.extend(paths.iter().map(|path| (path.as_str(), "")));
        check(&Tree::of(&files)).len()
    }

    #[test]
    fn consecutive_and_listed_passes() {
        assert_eq!(count("[1](0001-a.md) [2](0002-b.md)", &["0001-a.md", "0002-b.md"]), 0);
    }

    #[test]
    fn gaps_doubles_and_bad_names_are_reported() {
        assert_eq!(count("[1](0001-a.md) [3](0003-b.md)", &["0001-a.md", "0003-b.md"]), 1);
        assert_eq!(count("[1](0001-a.md) [1](0001-b.md)", &["0001-a.md", "0001-b.md"]), 1);
        assert_eq!(count("[2](0002-a.md)", &["0002-a.md"]), 1);
        assert_eq!(count("[x](plots.md) [y](01-a.md)", &["plots.md", "01-a.md"]), 2);
    }

    #[test]
    fn an_unlisted_record_and_a_missing_index_are_reported() {
        assert_eq!(count("0001-a.md", &["0001-a.md"]), 1);
        assert_eq!(check(&Tree::default()).len(), 1);
    }
}
