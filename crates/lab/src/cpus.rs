//! The assignment of CPUs to nodes.

use std::fs;
use std::path::Path;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::error::LabError;
use crate::node::Node;

/// Reserves a CPU for the front-end's node, so that exactly the front-end's work runs there: the node's
/// processes, and the kernel's work for packets that arrive at the node (receive packet steering). Packets
/// that other nodes receive, also from the front-end, are processed on the other CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuPlan {
    /// The CPU of the front-end, from 0.
    pub front_end: usize,
    /// The CPUs of all other nodes.
    pub others: Vec<usize>,
}

impl CpuPlan {
    /// The last CPU of this machine for the front-end, all others for the rest.
    ///
    /// # Errors
    /// When there is only one.
    pub fn of_this_machine() -> Result<Self, LabError> {
        let online = fs::read_to_string("/sys/devices/system/cpu/online")
            .map_err(|e| LabError::system("read which CPUs there are", e))?;
        let mut cpus = parse_list(online.trim())
            .ok_or_else(|| LabError::Invalid(format!("not a list of CPUs: {online}")))?;
        match cpus.pop() {
            Some(front_end) if !cpus.is_empty() => Ok(Self { front_end, others: cpus }),
            _ => Err(LabError::Unsupported {
                what: "a CPU for the front-end alone".to_owned(),
                why: "this machine has only one".to_owned(),
            }),
        }
    }

    pub(crate) fn check(&self) -> Result<(), LabError> {
        if self.others.is_empty() || self.others.contains(&self.front_end) {
            return Err(LabError::Invalid(
                "the front-end and the other nodes need different CPUs".to_owned(),
            ));
        }
        if let Some(cpu) = self.others.iter().chain([&self.front_end]).find(|cpu| **cpu >= CpuSet::MAX_CPU) {
            return Err(LabError::Invalid(format!("there is no CPU {cpu}")));
        }
        Ok(())
    }

    /// The CPUs of a node.
    #[must_use]
    pub fn of(&self, node: Node) -> &[usize] {
        if node == Node::FrontEnd { std::slice::from_ref(&self.front_end) } else { &self.others }
    }

    /// Binds the calling thread, and threads and processes that it starts from now on, to the CPUs of a node. A program
    /// that measures the front-end binds itself to those of [`Node::Client`].
    ///
    /// # Errors
    /// When the machine has no such CPU.
    pub fn pin_this_thread(&self, node: Node) -> Result<(), LabError> {
        pin(self.of(node))
    }

    /// Makes the kernel process packets that arrive at a node's interfaces on the node's CPUs; `root` is the
    /// node's root directory.
    pub(crate) fn steer(&self, node: Node, root: &Path) -> Result<(), LabError> {
        let mask = mask(self.of(node));
        let interfaces = root.join("sys/class/net");
        let what = |path: &Path| format!("steer packets by {}", path.display());
        let list = |path: &Path| {
            let entries = fs::read_dir(path).map_err(|e| LabError::system(what(path), e))?;
            Ok::<_, LabError>(entries.filter_map(|entry| Some(entry.ok()?.path())))
        };
        for interface in list(&interfaces)? {
            for queue in list(&interface.join("queues"))? {
                let file = queue.join("rps_cpus");
                if file.exists() {
                    fs::write(&file, &mask).map_err(|e| LabError::system(what(&file), e))?;
                }
            }
        }
        Ok(())
    }
}

/// Binds the calling thread to these CPUs.
pub(crate) fn pin(cpus: &[usize]) -> Result<(), LabError> {
    let mut set = CpuSet::new();
    for &cpu in cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|errno| LabError::system(format!("run on CPU {cpus:?}"), errno))
}

/// `0-3,5` and the like.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last >= CpuSet::MAX_CPU {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// CPUs as the kernel reads them: hexadecimal words of 32 bits, highest first.
fn mask(cpus: &[usize]) -> String {
    let words = cpus.iter().max().map_or(0, |most| most / 32) + 1;
    let word = |number: usize| {
        let bits =
            cpus.iter().filter(|cpu| **cpu / 32 == number).fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32));
        format!("{bits:08x}")
    };
    (0..words).rev().map(word).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_masks() {
        assert_eq!(parse_list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_list("0"), Some(vec![0]));
        for bad in ["", "a", "0-", "0-99999999"] {
            assert_eq!(parse_list(bad), None, "{bad}");
        }
        assert_eq!(mask(&[0]), "00000001");
        assert_eq!(mask(&[1, 31, 33]), "00000002,80000002");
    }

    #[test]
    fn plans_that_make_no_sense() {
        let plan = |front_end, others: &[usize]| CpuPlan { front_end, others: others.to_vec() };
        assert!(plan(1, &[0]).check().is_ok());
        assert!(plan(1, &[]).check().is_err() && plan(1, &[0, 1]).check().is_err());
        assert!(plan(100_000, &[0]).check().is_err());
        assert_eq!(plan(1, &[0, 2]).of(Node::FrontEnd), [1]);
        assert_eq!(plan(1, &[0, 2]).of(Node::Backend(0)), [0, 2]);
    }
}
