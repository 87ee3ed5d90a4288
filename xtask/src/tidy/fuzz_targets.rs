//! Every fuzz target has a program and seeds, and the other way round.

use std::collections::BTreeSet;

use super::Violation;
use super::tree::Tree;

const RULE: &str = "fuzz-targets";
const PROGRAMS: &str = "fuzz/fuzz_targets";
const CORPUS: &str = "fuzz/corpus/";
const MANIFEST: &str = "fuzz/Cargo.toml";

/// Checks the targets of all crates.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut names = BTreeSet::new();
    let manifest = tree.text(MANIFEST).unwrap_or_default();
    for (path, text) in tree.texts().filter(|(path, _)| is_list(path)) {
        let mut report = |remedy: String| violations.push(Violation::new(path, 1, RULE, remedy));
        let of_crate = path.split('/').nth(1).unwrap_or_default();
        let found = targets(text);
        if found.is_empty() {
            report("no targets; list them in TARGETS as (\"name\", function)".to_owned());
        }
        for name in found {
            let program = format!("{PROGRAMS}/{name}.rs");
            let call = format!("target!(plimsoll_{of_crate}::fuzz::TARGETS, \"{name}\")");
            if !tree.text(&program).is_some_and(|text| text.contains(&call)) {
                report(format!("write {program} with `plimsoll_fuzz::{call};`"));
            }
            if !manifest.contains(&format!("name = \"{name}\"\n")) {
                report(format!("add [[bin]] for {name} to {MANIFEST}"));
            }
            if !tree.exists(&format!("{CORPUS}{name}")) {
                report(format!("add seeds for {name} to {CORPUS}{name}/"));
            }
            if !names.insert(name) {
                report(format!("{name} is a target of two crates; name one of them otherwise"));
            }
        }
    }
    for (name, _) in tree.files_in(PROGRAMS, ".rs") {
        let name = name.trim_end_matches(".rs");
        if !names.contains(name) {
            let remedy = format!("no crate has a target {name}; remove its program and seeds");
            violations.push(Violation::new(&format!("{PROGRAMS}/{name}.rs"), 1, RULE, remedy));
        }
    }
    let of_seeds = tree.paths().filter_map(|path| path.strip_prefix(CORPUS)?.split('/').next());
    for name in of_seeds.collect::<BTreeSet<_>>() {
        if !names.contains(name) {
            let remedy = format!("no crate has a target {name}; remove these seeds");
            violations.push(Violation::new(&format!("{CORPUS}{name}"), 1, RULE, remedy));
        }
    }
    violations
}

/// Whether this is the file with a crate's list of targets.
fn is_list(path: &str) -> bool {
    path.strip_prefix("crates/")
        .is_some_and(|rest| rest.split_once('/').is_some_and(|(_, p)| p == "src/fuzz.rs"))
}

/// The names in `TARGETS`.
fn targets(text: &str) -> Vec<&str> {
    let list =
        text.split_once("TARGETS").and_then(|(_, rest)| rest.split_once("];")).map_or("", |(list, _)| list);
    let names = list.split("(\"").skip(1);
    names.filter_map(|rest| rest.split_once('"').map(|(name, _)| name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "pub const TARGETS: &[(&str, fn(&[u8]))] = &[(\"a_b\", a::b)];\n";
    const PROGRAM: &str = "plimsoll_fuzz::target!(plimsoll_a::fuzz::TARGETS, \"a_b\");\n";

    fn of(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn targets_programs_and_seeds_belong_together() {
        let list = ("crates/a/src/fuzz.rs", LIST);
        let program = ("fuzz/fuzz_targets/a_b.rs", PROGRAM);
        let manifest = ("fuzz/Cargo.toml", "[[bin]]\nname = \"a_b\"\n");
        let seed = ("fuzz/corpus/a_b/one", "x");
        assert!(of(&[list, program, manifest, seed]).is_empty());
        assert_eq!(of(&[list]).len(), 3);
        assert_eq!(of(&[program, manifest, seed]).len(), 2);
        let other = ("crates/b/src/fuzz.rs", LIST);
        assert_eq!(of(&[list, other, program, manifest, seed]).len(), 2);
        assert_eq!(of(&[("crates/a/src/fuzz.rs", "")]).len(), 1);
    }
}
