//! What kernels of nodes count.

use plimsoll_lab::Node;

use super::Bed;

impl Bed {
    /// A node's counter among those that `nstat` calls `TcpExt`.
    pub(in crate::handoff) fn kernel_counter(&self, node: Node, name: &str) -> u64 {
        let node = self.lab.node(node).unwrap();
        let output = node.command("cat").arg("/proc/net/netstat").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        plimsoll_testkit::kernel_counter(&text, "TcpExt", name)
    }
}
