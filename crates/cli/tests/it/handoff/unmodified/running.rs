//! A server that runs beside a back-end.

use std::fs::File;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;

use plimsoll_lab::{Lab, Node, Process};
use plimsoll_testkit::{PATIENCE, eventually};

use super::programs::Place;
use super::{Unmodified, Way};
use crate::handoff::bed::Bed;

pub(super) struct Running {
    index: usize,
    processes: Vec<Process>,
}

impl Running {
    /// None yet.
    pub(super) fn new(index: usize) -> Self {
        Self { index, processes: Vec::new() }
    }

    /// Starts the programs of a server one after the other, once the one before listens on its Unix socket.
    pub(super) fn start(&mut self, server: &Unmodified, lab: &Lab, directory: &Path) {
        let node = lab.node(Node::Backend(self.index)).unwrap();
        let place = Place { node, directory, index: self.index };
        let mut commands = (server.commands)(&place);
        let last = commands.len() - 1;
        for (number, command) in commands.iter_mut().enumerate() {
            let socket = if number == last { place.socket() } else { place.inner() };
            let is_shimmed = number == last && server.by == Way::Shim;
            if is_shimmed {
                command.env("LD_PRELOAD", directory.join("shim.so"));
            }
            let log =
                File::options().create(true).append(true).open(place.path(&format!("out{number}."))).unwrap();
            command.stdout(log.try_clone().unwrap()).stderr(log);
            self.processes.push(node.spawn(command).unwrap());
            if number < last || is_shimmed {
                eventually(server.name, || UnixStream::connect(&socket).is_ok());
            }
        }
    }

    /// Stops all of it.
    pub(super) fn stop(&mut self) {
        for process in self.processes.drain(..).rev() {
            process.stop_within(PATIENCE).unwrap().expect("a server that stops when it is told to");
        }
    }

    /// How many descriptors its processes have open.
    pub(super) fn descriptors(&self) -> usize {
        let mut of: Vec<u32> = self.processes.iter().map(Process::id).collect();
        let all = parents();
        let mut at = 0;
        while at < of.len() {
            let parent = of[at];
            of.extend(all.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
            at += 1;
        }
        let count = |pid| std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        of.into_iter().map(count).sum()
    }

    /// How many connections it has that an agent handed in, or their Unix connections to the agent.
    pub(super) fn handed_in(&self, bed: &Bed) -> usize {
        let node = bed.lab.node(Node::Backend(self.index)).unwrap();
        let list = |arguments: &[&str]| {
            let output = node.command("ss").args(arguments).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let vips: [IpAddr; 2] = [bed.vip().ip(), bed.vip_v6().ip()];
        let is_handed = |line: &&str| {
            !line.starts_with("TIME-WAIT") && vips.iter().any(|vip| line.contains(&vip.to_string()))
        };
        let socket = format!("/b{}.sock", self.index);
        list(&["-tanH"]).lines().filter(is_handed).count()
            + list(&["-xanH", "state", "connected"]).lines().filter(|line| line.contains(&socket)).count()
    }
}

/// All processes, each with its parent.
fn parents() -> Vec<(u32, u32)> {
    let of = |entry: std::io::Result<std::fs::DirEntry>| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Behind the name, which may hold anything: the state, and the parent.
        let parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
        Some((pid, parent))
    };
    std::fs::read_dir("/proc").unwrap().filter_map(of).collect()
}
