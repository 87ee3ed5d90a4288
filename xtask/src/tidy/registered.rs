//! Every policy and cache is registered, explained in its own file and listed in the documentation.

use super::Violation;
use super::tree::Tree;
use super::words::has_word;

const RULE: &str = "registered";

/// A directory of which each file is one entry of a registry.
struct Family {
    crate_sources: &'static str,
    directory: &'static str,
    document: &'static str,
    /// Whether a file's documentation cites a publication and shows pseudocode.
    explained: bool,
}

const FAMILIES: &[Family] = &[
    Family {
        crate_sources: "crates/policy/src",
        directory: "crates/policy/src/policies",
        document: "docs/policies.md",
        explained: true,
    },
    Family {
        crate_sources: "crates/cache/src",
        directory: "crates/cache/src/caches",
        document: "docs/caches.md",
        explained: false,
    },
];

/// Checks all families.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    FAMILIES.iter().flat_map(|family| check_family(tree, family)).collect()
}

fn check_family(tree: &Tree, family: &Family) -> Vec<Violation> {
    let mut violations = Vec::new();
    let registry = registry_entries(tree, family.crate_sources);
    if registry.is_none() {
        let remedy = "no file of this crate has a REGISTRY array; add one with an entry per file";
        violations.push(Violation::new(family.directory, 1, RULE, remedy));
    }
    let document = tree.text(family.document);
    if document.is_none() {
        let remedy = format!("missing; write an entry for each file in {}", family.directory);
        violations.push(Violation::new(family.document, 1, RULE, remedy));
    }
    for (name, text) in tree.files_in(family.directory, ".rs") {
        let stem = name.trim_end_matches(".rs");
        if stem == "mod" || stem == "registry" {
            continue;
        }
        let path = format!("{}/{name}", family.directory);
        let mut report = |remedy: String| violations.push(Violation::new(&path, 1, RULE, remedy));
        if registry.as_ref().is_some_and(|entries| !has_word(entries, &format!("{stem}::SPEC"))) {
            report(format!("not registered; add `&{stem}::SPEC` to REGISTRY"));
        }
        if document.is_some_and(|text| !has_entry(text, stem)) {
            let place = family.document;
            report(format!(
                "undocumented; add a heading or table row with `{stem}` in backquotes to {place}"
            ));
        }
        for remedy in header_remedies(text, family.explained) {
            report(remedy.to_owned());
        }
    }
    violations
}

/// The text between the brackets of the crate's `REGISTRY`.
fn registry_entries(tree: &Tree, sources: &str) -> Option<String> {
    tree.texts().filter(|(path, _)| path.starts_with(sources) && path.ends_with(".rs")).find_map(
        |(_, text)| {
            let declaration = ["static REGISTRY", "const REGISTRY"].iter().find_map(|d| text.find(d))?;
            let rest = text[declaration..].split_once('=')?.1;
            Some(rest.split_once("];")?.0.to_owned())
        },
    )
}

fn has_entry(document: &str, stem: &str) -> bool {
    let name = format!("`{stem}`");
    document.lines().any(|line| line.starts_with(['#', '|']) && line.contains(&name))
}

/// What the documentation at the head of a file lacks.
fn header_remedies(text: &str, explained: bool) -> Vec<&'static str> {
    let header: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let mut remedies = Vec::new();
    if header.is_empty() {
        remedies.push("open the file with `//!` documentation");
    }
    if explained && !has_citation(&header) {
        remedies.push(
            "cite the source in the opening documentation: `//! Citation: ...` with authors, title and year",
        );
    }
    if explained && !has_pseudocode(&header) {
        remedies.push("show the pseudocode in the opening documentation, in a block fenced with ```text");
    }
    remedies
}

/// A line that starts with `Citation:`, with a year in it or in the lines after it.
fn has_citation(header: &[&str]) -> bool {
    let Some(start) = header.iter().position(|line| line.starts_with("Citation:")) else {
        return false;
    };
    let paragraph = header[start..].iter().take_while(|line| !line.is_empty());
    paragraph
        .flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()))
        .any(|word| word.parse::<u32>().is_ok_and(|year| (1900..2100).contains(&year)))
}

fn has_pseudocode(header: &[&str]) -> bool {
    let Some(start) = header.iter().position(|&line| line == "```text") else {
        return false;
    };
    let body = &header[start + 1..];
    let end = body.iter().position(|&line| line == "```");
    end.is_some_and(|end| body[..end].iter().any(|line| !line.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str =
        "//! Name.\n//!\n//! Citation: A, \"B\",\n//! C 1998.\n//!\n//! ```text\n//! n <- 1\n//! ```\n";
    const REGISTRY: &str = "pub static REGISTRY: &[&Spec] = &[\n    &lard::SPEC,\n    &rr::SPEC,\n];\n";
    const CACHES: [(&str, &str); 2] = [
        ("crates/cache/src/registry.rs", "const REGISTRY: &[&S] = &[&lru::SPEC];"),
        ("docs/caches.md", "# `lru`"),
    ];

    fn policies(header: &str, registry: &str, document: &str) -> Vec<Violation> {
        let files = [
            ("crates/policy/src/policies/mod.rs", registry),
            ("crates/policy/src/policies/lard.rs", header),
            ("docs/policies.md", document),
        ];
        check(&Tree::of(&[&files[..], &CACHES].concat()))
    }

    #[test]
    fn a_complete_family_passes() {
        assert_eq!(policies(HEADER, REGISTRY, "## `lard`\n"), []);
        assert_eq!(policies(HEADER, REGISTRY, "| `lard` | x |\n"), []);
    }

    #[test]
    fn an_unregistered_file_is_reported() {
        for registry in [REGISTRY.replace("lard", "lard_r"), "fn f() { lard::SPEC }".to_owned()] {
            assert_eq!(policies(HEADER, &registry, "## `lard`\n").len(), 1, "{registry}");
        }
    }

    #[test]
    fn a_missing_entry_in_the_documentation_is_reported() {
        for document in ["", "## `lard_r`\n", "see `lard`\n"] {
            let violations = policies(HEADER, REGISTRY, document);
            assert!(violations.len() == 1 && violations[0].remedy.starts_with("undocumented"), "{document}");
        }
    }

    #[test]
    fn an_incomplete_header_is_reported() {
        let cases = [
            ("", 3),
            (&HEADER.replace("Citation", "See"), 1),
            (&HEADER.replace("1998", "one day"), 1),
            (&HEADER.replace("```text", "```"), 1),
            (&HEADER.replace("//! n <- 1\n", ""), 1),
            ("use x;\n//! Name.\n", 3),
        ];
        for (header, expected) in cases {
            assert_eq!(policies(header, REGISTRY, "## `lard`\n").len(), expected, "{header}");
        }
    }

    #[test]
    fn a_cache_needs_registry_and_documentation_but_no_pseudocode() {
        let with = |name: &str| {
            let path = format!("crates/cache/src/caches/{name}.rs");
            let files = [(path.as_str(), "//! Name.\n")];
            policies_and(&files)
        };
        assert_eq!(with("lru"), []);
        assert_eq!(with("lfu").len(), 2);
    }

    fn policies_and(files: &[(&str, &str)]) -> Vec<Violation> {
        let policies = [("crates/policy/src/policies/mod.rs", REGISTRY), ("docs/policies.md", "")];
        check(&Tree::of(&[files, &policies, &CACHES].concat()))
    }

    #[test]
    fn missing_registry_and_documents_are_reported() {
        assert_eq!(check(&Tree::default()).len(), 4);
    }
}
