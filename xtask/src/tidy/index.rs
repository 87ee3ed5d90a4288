//! The index of the documentation lists every page.

use super::Violation;
use super::tree::Tree;

const RULE: &str = "index";
const DIRECTORY: &str = "docs/";
const INDEX: &str = "docs/README.md";
/// Pages with an index of their own.
const RECORDS: &str = "docs/decisions/";

/// Checks that each page of the documentation is linked from its index.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let Some(index) = tree.text(INDEX) else {
        return vec![Violation::new(INDEX, 1, RULE, "missing; list every page with a link")];
    };
    let pages =
        tree.texts().map(|(path, _)| path).filter(|path| path.ends_with(".md") && !path.starts_with(RECORDS));
    let pages = pages.filter_map(|path| path.strip_prefix(DIRECTORY)).filter(|page| *page != "README.md");
    pages
        .filter(|page| !index.contains(&format!("]({page})")))
        .map(|page| Violation::new(INDEX, 1, RULE, format!("add a link to {page}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(index: &str) -> Vec<String> {
        let files = [
            (INDEX, index),
            ("docs/a.md", ""),
            ("docs/b/c.md", ""),
            ("docs/decisions/0001-a.md", ""),
            ("x.md", ""),
        ];
        check(&Tree::of(&files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_page_is_listed() {
        assert!(missing("[a](a.md) [c](b/c.md)").is_empty());
        assert_eq!(missing("a.md [c](b/c.md)").len(), 1);
        assert_eq!(missing("").len(), 2);
        assert_eq!(check(&Tree::default()).len(), 1);
    }
}
