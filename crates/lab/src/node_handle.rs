//! How to run code in the nodes of a lab.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::cpus::CpuPlan;
use crate::error::LabError;
use crate::node::Node;
use crate::process::{Capture, Process};
use crate::traffic::InterfaceCounters;

/// A command that runs `program` in the network and mount namespaces of the process `pid`, in the present
/// directory unless nodes have their own copy of it.
#[must_use]
pub fn enter(pid: u32, program: impl AsRef<OsStr>) -> Command {
    enter_on(pid, None, program)
}

/// As [`enter`], on these CPUs.
pub(crate) fn enter_on(pid: u32, cpus: Option<&[usize]>, program: impl AsRef<OsStr>) -> Command {
    let mut command;
    if let Some(cpus) = cpus {
        let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
        command = Command::new("taskset");
        command.args(["--cpu-list", &list.join(","), "nsenter"]);
    } else {
        command = Command::new("nsenter");
    }
    let is_there =
        |directory: &PathBuf| root(pid).join(directory.strip_prefix("/").unwrap_or(directory)).is_dir();
    let directory = std::env::current_dir().ok().filter(is_there).unwrap_or_else(|| PathBuf::from("/"));
    let mut there = OsString::from("--wdns=");
    there.push(directory);
    command.args(["--target", &pid.to_string(), "--net", "--mount"]).arg(there).arg("--");
    command.arg(program);
    command
}

fn root(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/root"))
}

/// A node of a running lab.
#[derive(Debug, Clone, Copy)]
pub struct NodeHandle<'a> {
    pub(crate) node: Node,
    pub(crate) pid: u32,
    pub(crate) addresses: &'a [(Ipv4Addr, Ipv6Addr)],
    pub(crate) cpus: Option<&'a CpuPlan>,
}

impl NodeHandle<'_> {
    /// Which node it is; displays as the node's name.
    #[must_use]
    pub fn node(&self) -> Node {
        self.node
    }

    /// The process that holds its namespaces, for `nsenter --target`.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its own IPv4 address, the first one of the client.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.addresses[0].0
    }

    /// Its own IPv6 address, the first one of the client.
    #[must_use]
    pub fn address_v6(&self) -> Ipv6Addr {
        self.addresses[0].1
    }

    /// All its own addresses; only the client has more than one pair.
    #[must_use]
    pub fn addresses(&self) -> &[(Ipv4Addr, Ipv6Addr)] {
        self.addresses
    }

    /// The node's root directory seen from outside. `root().join("run/x")` is the node's `/run/x`, a file in
    /// memory that vanishes with the node; most other files are the machine's.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        root(self.pid)
    }

    /// A command that runs in this node: in the present directory, with this process's environment and, if
    /// there is a [`CpuPlan`], on the node's CPUs. Its process id is the program's own. It ends with the lab
    /// at the latest.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        enter_on(self.pid, self.cpus.map(|plan| plan.of(self.node)), program)
    }

    /// Starts a command, usually one from [`NodeHandle::command`], which is killed when the [`Process`] is dropped.
    ///
    /// # Errors
    /// See [`Process::start`].
    pub fn spawn(&self, command: &mut Command) -> Result<Process, LabError> {
        Process::start(command)
    }

    /// Runs `work` on a new thread in this node's *network* namespace and returns its result. Sockets opened
    /// and threads started there belong to the node for good. The file system is the machine's.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    ///
    /// # Panics
    /// When `work` panics.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        let entry = self.entry()?;
        let in_node = || {
            entry.enter()?;
            Ok(work())
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name(self.node.to_string()).spawn_scoped(scope, in_node);
            let thread = thread.map_err(|e| LabError::system("start a thread", e))?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// An entry to this node's network namespace for a thread that outlives this handle, such as a load
    /// generator.
    ///
    /// # Errors
    /// When the node is gone.
    pub fn entry(&self) -> Result<NamespaceEntry, LabError> {
        let path = format!("/proc/{}/ns/net", self.pid);
        let namespace = File::open(&path).map_err(|e| LabError::system(entering(self.node), e))?;
        Ok(NamespaceEntry { node: self.node, namespace, cpus: self.cpus.cloned() })
    }

    /// Writes the packets at `eth0` that `filter` selects (as for `tcpdump`; empty for all) to `file`, until the capture
    /// is stopped. Packets are captured when this returns.
    ///
    /// # Errors
    /// When there is no `tcpdump`, or it does not understand the filter.
    pub fn capture(&self, filter: &str, file: &Path) -> Result<Capture, LabError> {
        Capture::start(&mut self.command("tcpdump"), filter, file)
    }

    /// Counts of its interface `eth0` so far.
    ///
    /// # Errors
    /// When the node has none, like the switch.
    pub fn counters(&self) -> Result<InterfaceCounters, LabError> {
        let directory = self.root().join("sys/class/net/eth0/statistics");
        let read = |name: &str| {
            let text = fs::read_to_string(directory.join(name));
            let text = text.map_err(|e| LabError::system(format!("read {name} of {}", self.node), e))?;
            text.trim().parse().map_err(|_| LabError::Invalid(format!("{name} is no number: {text}")))
        };
        Ok(InterfaceCounters {
            received_packets: read("rx_packets")?,
            received_bytes: read("rx_bytes")?,
            sent_packets: read("tx_packets")?,
            sent_bytes: read("tx_bytes")?,
        })
    }
}

/// An entry to a node's network namespace; see [`NodeHandle::entry`]. Keeps the namespace alive.
#[derive(Debug)]
pub struct NamespaceEntry {
    node: Node,
    namespace: File,
    cpus: Option<CpuPlan>,
}

impl NamespaceEntry {
    /// Moves the calling thread, and threads that it starts from now on, into the network namespace and to the CPUs of
    /// the node, for good.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn enter(&self) -> Result<(), LabError> {
        move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|errno| LabError::system(entering(self.node), errno))?;
        self.cpus.as_ref().map_or(Ok(()), |plan| plan.pin_this_thread(self.node))
    }
}

fn entering(node: Node) -> String {
    format!("enter the network namespace of {node}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nodes() {
        for node in [Node::Switch, Node::FrontEnd, Node::Client, Node::Backend(0), Node::Backend(12)] {
            assert_eq!(node.to_string().parse::<Node>().unwrap(), node);
        }
        for bad in ["", "b", "b01", "b-1", "b+1", "backend", "frontend", "c"] {
            let error = bad.parse::<Node>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("no node `{bad}`")), "{error}");
        }
    }
}
