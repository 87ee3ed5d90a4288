//! What is shown of a bed when a test fails.

use plimsoll_lab::Node;

use super::Bed;

impl Bed {
    /// What the processes said.
    pub(super) fn said(&self) -> String {
        let names =
            (0..self.options.backends).map(|i| format!("b{i}.log")).chain(["front-end.log".to_owned()]);
        names
            .map(|name| {
                let text = std::fs::read_to_string(self.path(&name)).unwrap_or_default();
                let tail: Vec<&str> = text.lines().rev().take(30).collect();
                format!("{name}:\n{}\n", tail.into_iter().rev().collect::<Vec<_>>().join("\n"))
            })
            .collect()
    }

    /// What the front-end counts of the mechanism.
    pub(super) fn counted(&self) -> String {
        let text = self.admin("/metrics").unwrap_or_default();
        let of_mechanism = |line: &&str| {
            ["plimsoll_handoffs", "plimsoll_connections", "plimsoll_flows"]
                .iter()
                .any(|p| line.starts_with(p))
        };
        let mut out = text.lines().filter(of_mechanism).collect::<Vec<_>>().join("\n");
        for node in (0..self.options.backends).map(Node::Backend).chain([Node::FrontEnd, Node::Client]) {
            let sockets = self.lab.node(node).unwrap().command("ss").args(["-tanH"]).output().unwrap();
            let sockets = String::from_utf8_lossy(&sockets.stdout).into_owned();
            let some: Vec<&str> = sockets.lines().take(20).collect();
            out += &format!("\nsockets of {node}:\n{}", some.join("\n"));
        }
        out
    }
}
