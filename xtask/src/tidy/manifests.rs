//! Every crate says what it is for, takes the workspace's lints and stands in ARCHITECTURE.md.

use super::Violation;
use super::tree::Tree;

const RULE: &str = "manifests";
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Checks the manifests of all crates below `crates/`, and of `xtask`.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let architecture = tree.text(ARCHITECTURE);
    if architecture.is_none() {
        violations.push(Violation::new(
            ARCHITECTURE,
            1,
            RULE,
            "missing; describe the crates and what they rest on",
        ));
    }
    for (path, text) in tree.texts() {
        let Some(directory) = path.strip_suffix("/Cargo.toml").filter(|d| is_crate(d)) else {
            continue;
        };
        let mut report = |remedy: String| violations.push(Violation::new(path, 1, RULE, remedy));
        if !sets(text, "[package]", &["description = \"", "description.workspace = true"]) {
            report("add a `description` of one line".to_owned());
        }
        if !sets(text, "[lints]", &["workspace = true"]) {
            report("add `[lints]` with `workspace = true`".to_owned());
        }
        let name = directory.rsplit('/').next().unwrap_or(directory);
        let names = [format!("`{name}`"), format!("`{directory}`"), format!("`plimsoll-{name}`")];
        if architecture.is_some_and(|text| !names.iter().any(|n| text.contains(n))) {
            report(format!("describe the crate in {ARCHITECTURE}, as `{name}` in backquotes"));
        }
    }
    violations
}

fn is_crate(directory: &str) -> bool {
    directory == "xtask" || directory.strip_prefix("crates/").is_some_and(|name| !name.contains('/'))
}

/// Whether the section holds a line that starts with one of `lines`.
fn sets(manifest: &str, section: &str, lines: &[&str]) -> bool {
    let body = manifest.lines().skip_while(|line| line.trim() != section).skip(1);
    body.take_while(|line| !line.starts_with('['))
        .any(|line| lines.iter().any(|wanted| line.trim().starts_with(wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nname = \"plimsoll-a\"\ndescription = \"x\"\n\n[lints]\nworkspace = true\n";

    fn remedies(manifest: &str, architecture: &str) -> Vec<String> {
        let tree = Tree::of(&[("crates/a/Cargo.toml", manifest), (ARCHITECTURE, architecture)]);
        check(&tree).into_iter().map(|violation| violation.remedy).collect()
    }

    #[test]
    fn a_complete_manifest_passes() {
        assert_eq!(remedies(GOOD, "| `a` | x |"), [""; 0]);
        assert_eq!(remedies(GOOD, "see `crates/a`"), [""; 0]);
    }

    #[test]
    fn each_missing_part_is_reported() {
        assert_eq!(remedies(&GOOD.replace("description", "# description"), "`a`").len(), 1);
        assert_eq!(remedies(&GOOD.replace("[lints]\n", "[lints.rust]\n"), "`a`").len(), 1);
        assert_eq!(remedies(&GOOD.replace("[lints]\n", "[lints]\n[x]\n"), "`a`").len(), 1);
        assert_eq!(remedies(GOOD, "`ab`, a").len(), 1);
        assert_eq!(check(&Tree::of(&[("crates/a/Cargo.toml", GOOD)])).len(), 1);
    }

    #[test]
    fn other_manifests_are_left_alone() {
        assert_eq!(
            check(&Tree::of(&[("benches/x/Cargo.toml", ""), ("Cargo.toml", ""), (ARCHITECTURE, "")])),
            []
        );
    }
}
