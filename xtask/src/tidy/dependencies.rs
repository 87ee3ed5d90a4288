//! Crates depend on one another only along the arrows drawn in ARCHITECTURE.md, and the deterministic core does without
//! an asynchronous runtime, configuration, wire types and origin without eBPF, and what runs
//! beside a back-end without Parquet.

use super::Violation;
use super::graph::{Graph, Member};
use super::words::line_with;

const RULE: &str = "dependency-direction";
const PREFIX: &str = "plimsoll-";
const ANY: &[&str] = &["*"];

/// For each crate, without its prefix, the crates of the workspace that it may name as dependencies, also for building.
/// What is for tests only is not restricted.
pub(super) const ARROWS: &[(&str, &[&str])] = &[
    ("cache", &[]),
    ("classes", &[]),
    ("policy", &["cache"]),
    ("sniffer", &["classes", "policy"]),
    ("synth", &[]),
    ("trace", &["synth"]),
    ("sim", &["policy", "cache", "synth"]),
    ("report", &[]),
    ("studies", &["policy", "cache", "synth", "trace", "sim", "report"]),
    ("config", &["policy", "cache", "classes", "tls", "wire"]),
    ("decisions", &["policy", "cache"]),
    ("wire", &[]),
    ("tls", &[]),
    ("datapath", &["wire"]),
    ("switch", &["policy", "datapath"]),
    ("directory", &["wire"]),
    (
        "balancer",
        &[
            "policy",
            "config",
            "classes",
            "decisions",
            "datapath",
            "directory",
            "exchange",
            "observe",
            "sniffer",
            "switch",
            "tls",
            "wire",
        ],
    ),
    ("origin", &["cache", "synth", "wire"]),
    ("observe", &["policy", "config"]),
    ("exchange", &["policy", "wire"]),
    (
        "agent",
        &["cache", "origin", "datapath", "policy", "config", "decisions", "exchange", "observe", "wire"],
    ),
    ("client", &["policy", "wire"]),
    ("client-c", &["client"]),
    ("lab", &[]),
    ("testbed", &["policy", "synth", "config", "balancer", "origin"]),
    ("testkit", &[]),
    (
        "experiments",
        &[
            "policy", "synth", "config", "balancer", "agent", "client", "origin", "wire", "lab", "report",
            "studies", "testbed", "datapath",
        ],
    ),
    ("cli", ANY),
];

/// Crates, without their prefix, and packages that must not be linked into them, even through others.
pub(super) const FORBIDDEN: &[(&str, &str)] = &[
    ("policy", "tokio"),
    ("cache", "tokio"),
    ("sim", "tokio"),
    ("wire", "libbpf-rs"),
    ("config", "libbpf-rs"),
    ("config", "parquet"),
    ("config", "tokio"),
    ("directory", "libbpf-rs"),
    ("origin", "libbpf-rs"),
    ("origin", "parquet"),
    ("agent", "parquet"),
    ("client", "libbpf-rs"),
    ("client", "parquet"),
];

/// Checks the graph against a table of arrows and one of forbidden packages.
pub(super) fn check(graph: &Graph, arrows: &[(&str, &[&str])], forbidden: &[(&str, &str)]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (package, member) in &graph.members {
        let Some(name) = package.strip_prefix(PREFIX) else {
            continue;
        };
        match arrows.iter().find(|(from, _)| *from == name) {
            Some((_, allowed)) => violations.extend(check_arrows(name, member, allowed)),
            None => {
                let remedy = format!("`{name}` is not in the table of arrows; add it to {}", file!());
                violations.push(Violation::new(&member.manifest, 1, RULE, remedy));
            }
        }
    }
    for &(name, unwanted) in forbidden {
        let package = format!("{PREFIX}{name}");
        let (Some(member), Some(chain)) = (graph.members.get(&package), graph.chain(&package, unwanted))
        else {
            continue;
        };
        let line = line_with(&member.manifest_text, &chain[1]);
        let remedy = format!("links {unwanted} ({}); `{name}` does without it", chain.join(" -> "));
        violations.push(Violation::new(&member.manifest, line, RULE, remedy));
    }
    violations
}

fn check_arrows(name: &str, member: &Member, allowed: &[&str]) -> Vec<Violation> {
    let wrong = member.dependencies.iter().filter_map(|dependency| {
        let to = dependency.strip_prefix(PREFIX)?;
        if allowed == ANY || allowed.contains(&to) {
            return None;
        }
        let remedy =
            format!("`{name}` may not depend on `{to}`; move the code, or change the design and {}", file!());
        Some(Violation::new(&member.manifest, line_with(&member.manifest_text, dependency), RULE, remedy))
    });
    wrong.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn graph(links: &[(&str, &[&str])]) -> Graph {
        let mut graph = Graph::default();
        for &(package, dependencies) in links {
            graph.links.insert(package.to_owned(), names(dependencies));
            if package.starts_with(PREFIX) {
                let manifest_text = format!("[dependencies]\n{}\n", dependencies.join("\n"));
                let manifest = format!("{package}/Cargo.toml");
                let member = Member { manifest, manifest_text, dependencies: names(dependencies) };
                graph.members.insert(package.to_owned(), member);
            }
        }
        graph
    }

    const TABLE: &[(&str, &[&str])] = &[("a", &["b"]), ("b", &[]), ("all", ANY)];

    #[test]
    fn arrows_of_the_table_pass() {
        let graph = graph(&[
            ("plimsoll-a", &["plimsoll-b", "serde"]),
            ("plimsoll-b", &[]),
            ("plimsoll-all", &["plimsoll-a", "plimsoll-b"]),
            ("other", &["plimsoll-a"]),
        ]);
        assert_eq!(check(&graph, TABLE, &[("a", "tokio")]), []);
    }

    #[test]
    fn an_arrow_against_the_table_is_reported_where_it_stands() {
        let graph = graph(&[("plimsoll-a", &[]), ("plimsoll-b", &["libc", "plimsoll-a"])]);
        let violations = check(&graph, TABLE, &[]);
        assert_eq!(violations.len(), 1);
        assert_eq!((violations[0].file.as_str(), violations[0].line), ("plimsoll-b/Cargo.toml", 3));
    }

    #[test]
    fn a_crate_that_the_table_does_not_know_is_reported() {
        assert_eq!(check(&graph(&[("plimsoll-c", &[])]), TABLE, &[]).len(), 1);
    }

    #[test]
    fn a_forbidden_package_is_found_through_others() {
        let graph = graph(&[
            ("plimsoll-a", &["libc", "plimsoll-b"]),
            ("plimsoll-b", &["hyper"]),
            ("hyper", &["tokio"]),
        ]);
        let violations = check(&graph, TABLE, &[("a", "tokio"), ("b", "mio")]);
        assert_eq!(violations.len(), 1);
        assert!(violations[0].remedy.contains("plimsoll-a -> plimsoll-b -> hyper -> tokio"));
        assert_eq!(violations[0].line, 3);
    }
}
