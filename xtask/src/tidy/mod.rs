//! The rules, what they look at and what they report.

mod changelog;
mod circles;
mod core_sources;
mod decisions;
mod dependencies;
mod file_length;
mod fuzz_targets;
mod graph;
mod in_circles;
mod index;
mod links;
mod manifests;
mod modules;
mod named_tests;
mod names;
mod registered;
mod sleeps;
mod source_text;
mod tree;
mod violation;
mod words;

use std::path::Path;

use graph::Graph;
use tree::Tree;
use violation::Violation;

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
        sleeps::check(&tree),
        links::check(&tree),
        manifests::check(&tree),
        decisions::check(&tree),
        index::check(&tree),
        names::check(&tree, names::SHARED_NAMES),
        changelog::check(&tree),
        fuzz_targets::check(&tree),
        named_tests::check(&tree),
        circles::check(&tree, in_circles::IN_CIRCLES),
    ]
    .concat();
    violations.sort();
    Ok(violations)
}

/// Prints files, arrows and circles of each crate below `root`, and all together.
///
/// # Errors
/// A file that cannot be read, as text.
pub(crate) fn print_circles(root: &Path) -> Result<(), String> {
    let crates = circles::measure(&Tree::read(root)?)?;
    for measured in &crates {
        let circles = measured.circles.len();
        println!(
            "{}: {} files, {} arrows, {circles} circles",
            measured.directory, measured.files, measured.arrows
        );
        for circle in &measured.circles {
            println!("  {} files: {}", circle.files.len(), circle.files.join(" "));
            println!("    {}", circle.way.join(" -> "));
        }
    }
    let sum = |of: fn(&circles::Measured) -> usize| crates.iter().map(of).sum::<usize>();
    let inside = sum(|c| c.circles.iter().map(|circle| circle.files.len()).sum());
    println!(
        "all: {} files, {} arrows, {} circles with {inside} files",
        sum(|c| c.files),
        sum(|c| c.arrows),
        sum(|c| c.circles.len())
    );
    Ok(())
}
