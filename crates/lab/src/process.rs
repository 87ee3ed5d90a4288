//! Processes in nodes.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::commands;
use crate::error::LabError;

/// Interval of checks whether a process has ended.
const POLL: Duration = Duration::from_millis(2);

/// Waits for the end of a process for at most this long.
pub(crate) fn wait_within(child: &mut Child, time: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + time;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < end => std::thread::sleep(POLL),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// A running process, which is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
}

impl Process {
    /// Starts a command, in a node or not.
    ///
    /// # Errors
    /// When the program does not exist or no process can be created. A command in a node that cannot start
    /// its program exits with 127 or 126.
    pub fn start(command: &mut Command) -> Result<Self, LabError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|e| commands::not_started(&program, e))?;
        Ok(Self { child, name: commands::line(command) })
    }

    /// Its process id, the program's own.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The standard library's handle, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Whether it is still running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, for at most this long; `None` if it still runs.
    pub fn wait_within(&mut self, time: Duration) -> Option<ExitStatus> {
        wait_within(&mut self.child, time)
    }

    /// Sends `SIGTERM` and waits for at most this long; then kills it and returns `None`.
    ///
    /// # Errors
    /// When it cannot be signalled.
    pub fn stop_within(mut self, time: Duration) -> Result<Option<ExitStatus>, LabError> {
        self.signal(Signal::TERM)?;
        Ok(self.wait_within(time))
    }

    /// Kills it, like a crash, and waits for its end.
    pub fn kill(mut self) {
        self.end();
    }

    /// Suspends it, so that it seems dead to others while its sockets live; see [`Process::resume`].
    ///
    /// # Errors
    /// When it cannot be signalled.
    pub fn pause(&self) -> Result<(), LabError> {
        self.signal(Signal::STOP)
    }

    /// Resumes it after [`Process::pause`].
    ///
    /// # Errors
    /// When it cannot be signalled.
    pub fn resume(&self) -> Result<(), LabError> {
        self.signal(Signal::CONT)
    }

    /// Sends `SIGHUP`, on which programs reload their configuration.
    ///
    /// # Errors
    /// When it cannot be signalled.
    pub fn reload(&self) -> Result<(), LabError> {
        self.signal(Signal::HUP)
    }

    fn signal(&self, signal: Signal) -> Result<(), LabError> {
        // The kernel does not reuse its id before it is waited for, which only this handle does.
        kill_process(Pid::from_child(&self.child), signal)
            .map_err(|errno| LabError::system(format!("signal `{}`", self.name), errno))
    }

    fn end(&mut self) {
        // Fails only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// A running capture of packets, by `tcpdump`; see [`NodeHandle::capture`](crate::NodeHandle::capture).
#[derive(Debug)]
pub struct Capture {
    process: Process,
    /// Kept open, as `tcpdump` prints its counts at the end.
    messages: BufReader<ChildStderr>,
}

impl Capture {
    pub(crate) fn start(command: &mut Command, filter: &str, file: &Path) -> Result<Self, LabError> {
        commands::need("tcpdump")?;
        command.args(["-i", "eth0", "-n", "-U", "-Z", "root", "-w"]).arg(file).arg("--").arg(filter);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = Process::start(command)?;
        let Some(stderr) = process.child.stderr.take() else {
            return Err(LabError::Invalid("a capture without standard error".to_owned()));
        };
        let mut messages = BufReader::new(stderr);
        let mut printed = String::new();
        // It captures once it prints that it listens, which is among its first lines.
        while messages.read_line(&mut printed).is_ok_and(|bytes| bytes > 0) {
            if printed.contains("listening on") {
                return Ok(Self { process, messages });
            }
        }
        let status = process.wait_within(Duration::from_secs(1));
        Err(LabError::Command {
            command: process.name.clone(),
            status: status.map_or_else(|| "it runs on".to_owned(), |status| status.to_string()),
            printed: printed.trim().to_owned(),
        })
    }

    /// Ends the capture; all packets so far are in the file. Returns what `tcpdump` printed of their numbers.
    ///
    /// # Errors
    /// When it does not end well within five seconds.
    pub fn stop(mut self) -> Result<String, LabError> {
        self.process.signal(Signal::INT)?;
        let status = self.process.wait_within(Duration::from_secs(5));
        let mut printed = String::new();
        if status.is_some() {
            // The other end is closed.
            while self.messages.read_line(&mut printed).is_ok_and(|bytes| bytes > 0) {}
        }
        match status {
            Some(status) if status.success() => Ok(printed),
            _ => Err(LabError::Command {
                command: self.process.name.clone(),
                status: status.map_or_else(|| "it runs on".to_owned(), |status| status.to_string()),
                printed: printed.trim().to_owned(),
            }),
        }
    }
}
