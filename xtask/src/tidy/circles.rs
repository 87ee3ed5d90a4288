//! No circle of files: whoever changes one file of a crate needs to understand only those below it.
//!
//! The nodes are the files of a crate, the arrows what [`modules`](super::modules) finds; test modules do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::modules::CrateFiles;
use super::tree::Tree;

const RULE: &str = "circles";

/// What there is of files, arrows and circles in one crate.
pub(super) struct Measured {
    /// Directory of the crate.
    pub(super) directory: String,
    pub(super) files: usize,
    pub(super) arrows: usize,
    /// The files of each circle, one behind the other along a shortest way round first.
    pub(super) circles: Vec<Circle>,
}

/// Files that all lead to one another.
pub(super) struct Circle {
    pub(super) files: Vec<String>,
    /// A shortest way round.
    pub(super) way: Vec<String>,
}

/// Checks that every file in a circle is listed, and every listed file is in one.
pub(super) fn check(tree: &Tree, listed: &[&str]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut found = BTreeSet::new();
    match measure(tree) {
        Err(error) => violations.push(Violation::new("Cargo.toml", 1, RULE, error)),
        Ok(crates) => {
            for circle in crates.into_iter().flat_map(|measured| measured.circles) {
                if let Some(new) = circle.files.iter().find(|file| !listed.contains(&file.as_str())) {
                    let remedy = format!(
                        "in a circle of {} files: {}; let one of them not use the next",
                        circle.files.len(),
                        circle.way.join(" -> ")
                    );
                    violations.push(Violation::new(new, 1, RULE, remedy));
                }
                found.extend(circle.files);
            }
            for file in listed.iter().filter(|file| !found.contains(**file)) {
                let remedy = "stands in no circle; remove it from xtask/src/tidy/in_circles.rs";
                violations.push(Violation::new(file, 1, RULE, remedy));
            }
        }
    }
    violations
}

/// Measures each crate of the workspace.
///
/// # Errors
/// A file that is no Rust, or is missing.
pub(super) fn measure(tree: &Tree) -> Result<Vec<Measured>, String> {
    let manifests = tree.texts().map(|(path, _)| path).filter_map(|path| path.strip_suffix("/Cargo.toml"));
    let mut crates = Vec::new();
    for directory in manifests.filter(|d| d.starts_with("crates/") || *d == "xtask") {
        let mut measured =
            Measured { directory: directory.to_owned(), files: 0, arrows: 0, circles: Vec::new() };
        for root in ["lib.rs", "main.rs"].map(|name| format!("{directory}/src/{name}")) {
            if tree.text(&root).is_some() {
                let files = CrateFiles::read(tree, &root)?;
                let arrows = files.arrows();
                measured.files += files.files.len();
                measured.arrows += arrows.iter().map(BTreeSet::len).sum::<usize>();
                measured.circles.extend(circles(&files.files, &arrows));
            }
        }
        crates.push(measured);
    }
    Ok(crates)
}

fn circles(files: &[String], arrows: &[BTreeSet<usize>]) -> Vec<Circle> {
    let reached: Vec<BTreeSet<usize>> = (0..files.len()).map(|file| reached_from(file, arrows)).collect();
    let mut circles = Vec::new();
    let mut seen = BTreeSet::new();
    for file in (0..files.len()).filter(|&file| reached[file].contains(&file)) {
        if seen.contains(&file) {
            continue;
        }
        let members: BTreeSet<usize> =
            reached[file].iter().copied().filter(|&other| reached[other].contains(&file)).collect();
        let ways = members.iter().filter_map(|&start| way_round(start, arrows));
        let way = ways.min_by_key(Vec::len).unwrap_or_default();
        let name = |&index: &usize| files[index].clone();
        circles
            .push(Circle { files: members.iter().map(name).collect(), way: way.iter().map(name).collect() });
        seen.extend(members);
    }
    circles
}

/// The files that arrows lead to from `start`, itself only if a way leads back.
fn reached_from(start: usize, arrows: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next = vec![start];
    while let Some(file) = next.pop() {
        next.extend(arrows[file].iter().filter(|&&to| reached.insert(to)));
    }
    reached
}

/// A shortest way from `start` back to it, both ends included.
fn way_round(start: usize, arrows: &[BTreeSet<usize>]) -> Option<Vec<usize>> {
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut next = vec![start];
    while !next.is_empty() {
        let mut further = Vec::new();
        for from in next {
            for &to in &arrows[from] {
                if to == start {
                    let mut way = vec![start, from];
                    while let Some(&earlier) = way.last().and_then(|last| before.get(last)) {
                        way.push(earlier);
                    }
                    way.reverse();
                    return Some(way);
                }
                if let std::collections::btree_map::Entry::Vacant(entry) = before.entry(to) {
                    entry.insert(from);
                    further.push(to);
                }
            }
        }
        next = further;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "crates/x/src/lib.rs";

    /// The ways round in a crate of these files, beside its root and its manifest.
    fn ways(root: &str, files: &[(&str, &str)]) -> Vec<String> {
        let paths: Vec<(String, &str)> =
            files.iter().map(|(name, text)| (format!("crates/x/src/{name}"), *text)).collect();
        let mut all = vec![("crates/x/Cargo.toml", ""), (ROOT, root)];
        all.extend(paths.iter().map(|(path, text)| (path.as_str(), *text)));
        let crates = measure(&Tree::of(&all)).unwrap();
        let circles = crates.iter().flat_map(|measured| &measured.circles);
        circles.map(|circle| circle.way.join(" ").replace("crates/x/src/", "")).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn files_that_use_one_another_are_a_circle() {
        let root = "mod a; mod b; mod c;";
        let a = ("a.rs", "use crate::b::B; pub struct A(B);");
        let back = "use crate::{c, a::A}; pub struct B; fn f(_: A) {}";
        assert_eq!(ways(root, &[a, ("b.rs", back), ("c.rs", "")]), ["a.rs b.rs a.rs"]);
        assert_eq!(ways(root, &[a, ("b.rs", "pub struct B;"), ("c.rs", "use crate::a::A;")]), NONE);
        // Without `use`, and over a third file.
        let inline = "pub struct B; fn f() { crate::c::g() }";
        let third = "pub fn g() -> Option<super::a::A> { None }";
        assert_eq!(ways(root, &[a, ("b.rs", inline), ("c.rs", third)]), ["a.rs b.rs c.rs a.rs"]);
    }

    #[test]
    fn a_parent_that_only_declares_and_re_exports_is_in_no_circle() {
        let root = "mod p;";
        let b = ("p/b.rs", "pub struct B;");
        let a = ("p/a.rs", "use super::B; pub struct A(B);");
        assert_eq!(
            ways(root, &[("p/mod.rs", "mod a; mod b; pub use b::B; pub(crate) use a::A;"), a, b]),
            NONE
        );
        // It uses what it re-exports; its child uses only the other child.
        assert_eq!(
            ways(root, &[("p/mod.rs", "mod a; mod b; pub use b::B; pub use a::A; fn f(_: A) {}"), a, b]),
            NONE
        );
        let own = "mod a; mod b; pub use b::B; struct Own; fn f(_: a::A) {}";
        let uses_own = ("p/a.rs", "use super::Own; pub struct A(Own);");
        assert_eq!(ways(root, &[("p/mod.rs", own), uses_own, b]), ["p/mod.rs p/a.rs p/mod.rs"]);
    }

    #[test]
    fn globs_and_renamed_imports_are_followed() {
        let root = "mod a; mod b; pub use b::*; use a as first; fn f() { first::A; }";
        let b = ("b.rs", "pub struct B;");
        assert_eq!(ways(root, &[("a.rs", "use crate::B; pub struct A(B);"), b]), NONE);
        assert_eq!(ways(root, &[("a.rs", "use crate::f; pub struct A;"), b]), ["lib.rs a.rs lib.rs"]);
    }

    #[test]
    fn tests_and_comments_do_not_count() {
        let root = "mod a; mod b;";
        let a = ("a.rs", "use crate::b::B; pub struct A(B);");
        let tests = "pub struct B; // crate::a::A\n#[cfg(test)]\nmod tests { use crate::a::A; }";
        assert_eq!(ways(root, &[a, ("b.rs", tests)]), NONE);
        let elsewhere = "pub struct B; #[cfg(test)] mod tests; #[cfg(test)] use crate::{a, a::A};";
        assert_eq!(ways(root, &[a, ("b.rs", elsewhere)]), NONE);
    }

    #[test]
    fn the_list_holds_exactly_what_is_in_circles() {
        let a = ("crates/x/src/a.rs", "use crate::f;");
        let tree = Tree::of(&[("crates/x/Cargo.toml", ""), (ROOT, "mod a; pub fn f() { a::g() }"), a]);
        let lines =
            |listed: &[&str]| check(&tree, listed).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(lines(&[ROOT, "crates/x/src/a.rs"]), Vec::<String>::new());
        let new = &lines(&[ROOT])[0];
        assert!(new.contains("crates/x/src/lib.rs -> crates/x/src/a.rs -> crates/x/src/lib.rs"), "{new}");
        assert!(lines(&[ROOT, "crates/x/src/a.rs", "gone.rs"])[0].contains("gone.rs"));
    }
}
