//! The CPU time that a server has used, from `/proc`.

use std::fs;
use std::io;

use crate::error::CliError;

/// A process and its descendants, whose threads are counted.
pub(super) struct ServerCpu {
    processes: Vec<u32>,
}

impl ServerCpu {
    /// The process `pid` and all that it has started.
    ///
    /// # Errors
    /// When there is no such process, or its times cannot be read.
    pub(super) fn of(pid: u32) -> Result<Self, CliError> {
        let mut processes = vec![pid];
        let parents = parents()
            .map_err(|e| CliError::Failed(format!("cannot list processes in /proc: {e}; leave out --pid")))?;
        let mut at = 0;
        while let Some(&parent) = processes.get(at) {
            processes.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
            at += 1;
        }
        if processes.contains(&std::process::id()) {
            return Err(CliError::Failed(format!(
                "process {pid} has started this command, whose own CPU time would count; name the server's process with --pid"
            )));
        }
        let out = Self { processes };
        out.used_ns().map_err(|e| {
            CliError::Failed(format!(
                "cannot read the CPU time of process {pid} (/proc/{pid}/task/*/schedstat): {e}; name a process that runs here \
                 with --pid, or leave it out"
            ))
        })?;
        Ok(out)
    }

    /// How many processes are counted.
    pub(super) fn processes(&self) -> usize {
        self.processes.len()
    }

    /// CPU time of all threads up to now, in user and kernel mode.
    ///
    /// # Errors
    /// When a process has ended, or the kernel does not keep these times.
    pub(super) fn used_ns(&self) -> io::Result<u64> {
        let mut sum = 0;
        for process in &self.processes {
            for task in fs::read_dir(format!("/proc/{process}/task"))? {
                // A thread that has ended meanwhile is left out.
                if let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) {
                    sum += first_number(&text)?;
                }
            }
        }
        Ok(sum)
    }
}

fn first_number(schedstat: &str) -> io::Result<u64> {
    let number = schedstat.split_whitespace().next().and_then(|word| word.parse().ok());
    number.ok_or_else(|| io::Error::other("not in the form of Linux"))
}

/// Every process with its parent.
fn parents() -> io::Result<Vec<(u32, u32)>> {
    let mut out = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that has ended meanwhile is left out.
        let parent = fs::read_to_string(format!("/proc/{process}/stat")).ok().and_then(|stat| parent(&stat));
        out.extend(parent.map(|parent| (process, parent)));
    }
    Ok(out)
}

/// The second field after the name, which may hold anything, even parentheses.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_stands_after_any_name() {
        assert_eq!(parent("12 (a) b (c) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (cut"), None);
    }

    #[test]
    fn a_process_and_those_that_it_has_started_are_counted() {
        let Err(error) = ServerCpu::of(std::process::id()) else { panic!("it would measure itself") };
        assert!(error.to_string().contains("has started this command"), "{error}");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = ServerCpu::of(child.id()).map(|server| (server.processes(), server.used_ns().unwrap()));
        child.kill().unwrap();
        child.wait().unwrap();
        let (processes, used_ns) = found.unwrap();
        assert!(processes == 1 && used_ns > 0);
        let Err(error) = ServerCpu::of(u32::MAX) else { panic!("there is no such process") };
        assert!(error.to_string().contains("leave it out"), "{error}");
    }
}
