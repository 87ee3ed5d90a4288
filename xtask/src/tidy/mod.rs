//! The rules, what they look at and what they report.

mod changelog;
mod core_sources;
mod decisions;
mod dependencies;
mod file_length;
mod graph;
mod links;
mod manifests;
mod registered;
mod source_text;
mod tree;
mod words;

use std::fmt;
use std::path::Path;

use graph::Graph;
use tree::Tree;

/// One place that breaks a rule. Sorts by place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// Path from the root of the repository.
    file: String,
    /// Line from 1.
    line: usize,
    /// Name of the rule.
    rule: &'static str,
    /// What is wrong and what to do.
    remedy: String,
}

impl Violation {
    fn new(file: &str, line: usize, rule: &'static str, remedy: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, rule, remedy: remedy.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.rule, self.remedy)
    }
}

/// Applies every rule to the repository at `root`.
///
/// # Errors
/// A file that cannot be read, or `cargo metadata` failing, as text.
pub(crate) fn run(root: &Path) -> Result<Vec<Violation>, String> {
    let tree = Tree::read(root)?;
    let graph = Graph::read(root)?;
    let mut violations = [
        file_length::check(&tree, file_length::LONG_FILES),
        registered::check(&tree),
        dependencies::check(&graph, dependencies::ARROWS, dependencies::FORBIDDEN),
        core_sources::check(&tree),
        source_text::check(&tree),
        links::check(&tree),
        manifests::check(&tree),
        decisions::check(&tree),
        changelog::check(&tree),
    ]
    .concat();
    violations.sort();
    Ok(violations)
}
