//! The end of a bed in good order, which leaves nothing behind.

use std::path::PathBuf;

use plimsoll_lab::Node;
use plimsoll_testkit::PATIENCE;

use super::Bed;

impl Bed {
    /// Stops everything in good order: nothing is left in the kernel of the front-end or the back-ends, and the decisions
    /// replay.
    pub(in crate::handoff) fn stop(mut self) {
        self.stop_front_end();
        let log = self.path("decisions");
        // The log of a front-end that was killed has no end.
        let partial = if self.was_killed { &["--partial"][..] } else { &[] };
        let out = crate::common::plimsoll(&[&["replay", log.to_str().unwrap()], partial].concat());
        let (stdout, stderr) = (crate::common::text(&out.stdout), crate::common::text(&out.stderr));
        assert!(out.status.success() && !stdout.contains("NOT"), "{stdout}{stderr}");
        self.stop_agents();
    }

    /// The same where a front-end was killed, and its log has gaps.
    pub(in crate::handoff) fn stop_after_crash(mut self) {
        self.stop_front_end();
        self.stop_agents();
    }

    /// Nothing of ours is left on a node.
    fn assert_clean(&self, node: Node) {
        let handle = self.lab.node(node).unwrap();
        let pins = std::fs::read_dir(handle.root().join("sys/fs/bpf")).unwrap();
        // The kernel has some of its own there.
        let ours = pins
            .map(|entry| entry.unwrap())
            .filter(|e| e.file_name().to_string_lossy().starts_with("plimsoll"));
        let left: Vec<_> = ours.map(|entry| entry.path()).collect();
        // In a directory that is root's alone, another user can remove nothing.
        let may_stay = self.options.bpf_mode == "700" && self.options.owner.is_some();
        let is_empty = |path: &PathBuf| std::fs::read_dir(path).unwrap().next().is_none();
        assert!(
            left.is_empty() || may_stay && left.iter().all(is_empty),
            "pins are left on {node}: {left:?}"
        );
        assert!(!handle.root().join("run/plimsoll").exists(), "files are left on {node}");
        let say = |program: &str, arguments: &[&str]| {
            let output = handle.command(program).args(arguments).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let qdiscs = say("tc", &["qdisc", "show"]);
        assert!(!qdiscs.contains("clsact"), "a qdisc is left on {node}: {qdiscs}");
        if node != Node::FrontEnd {
            let addresses = say("ip", &["addr", "show", "dev", "lo"]);
            let vips = [self.vip().ip().to_string(), self.vip_v6().ip().to_string()];
            assert!(!vips.iter().any(|vip| addresses.contains(&format!("{vip}/"))), "on {node}: {addresses}");
            let setting = |of: &str, name: &str| {
                let path = format!("/proc/sys/net/ipv4/conf/{of}/{name}");
                handle.run(|| std::fs::read_to_string(path).unwrap()).unwrap()
            };
            for name in ["arp_ignore", "arp_announce"] {
                assert_eq!(setting("eth0", name), setting("default", name), "{name} of {node}");
            }
        }
    }

    fn stop_front_end(&mut self) {
        let front_end = self.front_end.take().unwrap();
        let status = front_end.stop_within(PATIENCE).unwrap();
        assert_eq!(status.and_then(|s| s.code()), Some(0));
    }

    fn stop_agents(&mut self) {
        for server in self.servers.drain(..) {
            server.stop_within(PATIENCE).unwrap();
        }
        for agent in self.agents.iter_mut().filter_map(Option::take) {
            let status = agent.stop_within(PATIENCE).unwrap();
            assert_eq!(status.and_then(|s| s.code()), Some(0));
        }
        for node in (0..self.options.backends).map(Node::Backend).chain([Node::FrontEnd]) {
            self.assert_clean(node);
        }
    }
}
