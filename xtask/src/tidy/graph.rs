//! Which package depends on which, as Cargo resolves it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// A package of the workspace.
#[derive(Debug, Default)]
pub(super) struct Member {
    /// Path of its manifest from the root.
    pub(super) manifest: String,
    /// Text of its manifest.
    pub(super) manifest_text: String,
    /// Names of the packages it names as dependencies, except those for tests only.
    pub(super) dependencies: BTreeSet<String>,
}

/// The dependency graph of the workspace and all it needs, by package name. Versions of one package are not told apart.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// The workspace's own packages.
    pub(super) members: BTreeMap<String, Member>,
    /// For each package those that it is linked with: its normal dependencies.
    pub(super) links: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Asks Cargo for the graph of the workspace at `root`.
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .exec()
            .map_err(|e| format!("cargo metadata failed: {e}"))?;
        let resolve = metadata.resolve.as_ref().ok_or("cargo metadata gave no dependency graph")?;
        let mut graph = Self::default();
        for node in &resolve.nodes {
            let linked = node.deps.iter().filter(|dependency| {
                dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal)
            });
            let names: Vec<String> = linked.map(|d| metadata[&d.pkg].name.to_string()).collect();
            graph.links.entry(metadata[&node.id].name.to_string()).or_default().extend(names);
        }
        for package in metadata.workspace_packages() {
            let manifest = package.manifest_path.strip_prefix(root).unwrap_or(&package.manifest_path);
            let named = package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development);
            let member = Member {
                manifest: manifest.to_string(),
                manifest_text: std::fs::read_to_string(&package.manifest_path)
                    .map_err(|e| format!("cannot read {}: {e}", package.manifest_path))?,
                dependencies: named.map(|d| d.name.clone()).collect(),
            };
            graph.members.insert(package.name.to_string(), member);
        }
        Ok(graph)
    }

    /// The shortest chain of links from `start` to `goal`, both included.
    pub(super) fn chain(&self, start: &str, goal: &str) -> Option<Vec<String>> {
        let mut chains = vec![vec![start.to_owned()]];
        let mut seen = BTreeSet::from([start.to_owned()]);
        while !chains.is_empty() {
            let mut longer = Vec::new();
            for chain in chains {
                let end = chain.last()?;
                if end == goal {
                    return Some(chain);
                }
                for next in self.links.get(end).into_iter().flatten() {
                    if seen.insert(next.clone()) {
                        longer.push([&chain[..], std::slice::from_ref(next)].concat());
                    }
                }
            }
            chains = longer;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_workspace() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let graph = Graph::read(root).unwrap();
        let member = &graph.members["xtask"];
        assert_eq!(member.manifest, "xtask/Cargo.toml");
        assert!(member.dependencies.contains("cargo_metadata"));
        assert!(graph.chain("xtask", "serde_json").is_some());
        assert!(graph.chain("cargo_metadata", "xtask").is_none());
    }
}
