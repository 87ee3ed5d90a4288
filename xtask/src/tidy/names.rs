//! Types that other modules see have names of their own: one name, one type in the workspace.

use std::collections::BTreeMap;

use super::Violation;
use super::tree::Tree;
use super::words::{is_test_file, lines_before_tests};

const RULE: &str = "names";
const KEYWORDS: &[&str] = &["struct", "enum", "trait", "type", "union"];

/// Names that several types may share, each with the reason.
pub(super) const SHARED_NAMES: &[(&str, &str)] =
    &[("Args", "the arguments of a command, always named with the module of the command: `simulate::Args`")];

/// Checks the types that modules of `crates/*/src` show to others, and that the list is not out of date.
pub(super) fn check(tree: &Tree, shared_names: &[(&str, &str)]) -> Vec<Violation> {
    let mut types: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for (path, text) in tree.texts() {
        if !is_source(path) {
            continue;
        }
        for (number, line) in lines_before_tests(text) {
            if let Some(name) = shown_type(line) {
                types.entry(name).or_default().push((path, number));
            }
        }
    }
    let mut violations = Vec::new();
    for (name, places) in &types {
        let listed = shared_names.iter().any(|&(shared, reason)| shared == *name && !reason.is_empty());
        let [(first, first_line), others @ ..] = places.as_slice() else { continue };
        for (path, line) in others.iter().filter(|_| !listed) {
            let remedy = format!(
                "{name} is also the name of a type in {first}:{first_line}; rename one of them, or list the name \
                 with a reason in {}",
                file!()
            );
            violations.push(Violation::new(path, *line, RULE, remedy));
        }
    }
    for (name, _) in shared_names {
        if types.get(name).is_none_or(|places| places.len() < 2) {
            let remedy = format!("no two types are called {name}; remove it from the list");
            violations.push(Violation::new(file!(), 1, RULE, remedy));
        }
    }
    violations
}

/// Whether the file is a source of a crate, and not of its tests.
fn is_source(path: &str) -> bool {
    let inside = path.strip_prefix("crates/").and_then(|rest| rest.split_once('/')).map(|(_, inside)| inside);
    inside.is_some_and(|inside| inside.starts_with("src/")) && path.ends_with(".rs") && !is_test_file(path)
}

/// The name of the type that a line declares with `pub`, `pub(crate)` or the like.
fn shown_type(line: &str) -> Option<&str> {
    let code = line.split("//").next().unwrap_or("");
    let mut words = code.split_whitespace().peekable();
    let mut is_public = false;
    while let Some(word) = words.next() {
        if KEYWORDS.contains(&word) && is_public {
            let name = words.next()?.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
            // A macro's `$name` is no name.
            return (!name.is_empty()).then_some(name);
        }
        // `pub`, `pub(crate)`, both parts of `pub(in super::super)`, and `unsafe` after them.
        is_public = word.starts_with("pub") || is_public && (word.ends_with(')') || word == "unsafe");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)], shared: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files), shared).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_name_of_two_types_is_reported_at_the_second() {
        let files = [
            ("crates/a/src/lib.rs", "pub struct Entry<T>(T);\n"),
            ("crates/b/src/x.rs", "\npub(crate) enum Entry {}\n"),
        ];
        let all = found(&files, &[]);
        assert_eq!(all.len(), 1);
        assert!(all[0].starts_with("crates/b/src/x.rs:2: names: Entry is also"), "{all:?}");
        assert_eq!(found(&files, &[("Entry", "a convention")]).len(), 0);
        assert_eq!(found(&files, &[("Entry", "")]).len(), 1);
        assert_eq!(found(&files[..1], &[("Entry", "a convention")]).len(), 1);
    }

    #[test]
    fn private_types_and_tests_may_repeat() {
        let name = "pub struct Entry;";
        for other in [
            ("crates/b/src/x.rs", "struct Entry;"),
            ("crates/b/src/x.rs", "// pub struct Entry;"),
            ("crates/b/src/x.rs", "pub use a::Entry;"),
            ("crates/b/src/x.rs", "#[cfg(test)]\nmod tests {\n    pub struct Entry;\n}"),
            ("crates/b/src/x/tests.rs", name),
            ("crates/b/tests/it/main.rs", name),
            ("benches/src/main.rs", name),
        ] {
            assert_eq!(found(&[("crates/a/src/lib.rs", name), other], &[]).len(), 0, "{other:?}");
        }
    }

    #[test]
    fn declarations_are_found() {
        assert_eq!(shown_type("    pub(in super::super) struct Copy {"), Some("Copy"));
        assert_eq!(shown_type("    [\"limits\"] pub struct Limits {"), Some("Limits"));
        assert_eq!(shown_type("pub unsafe trait Raw: Sized {"), Some("Raw"));
        assert_eq!(shown_type("pub type Tried = Candidates;"), Some("Tried"));
        assert_eq!(shown_type("pub fn of(kind: Kind) {"), None);
        assert_eq!(shown_type("    type Item = u8;"), None);
        assert_eq!(shown_type("        pub enum $name {"), None);
    }
}
