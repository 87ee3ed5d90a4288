//! Processes in nodes.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::commands;
use crate::error::LabError;

/// Time between looks at whether a process has ended.
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
    /// Starts a command, which need not be one of a node.
    ///
    /// # Errors
    /// When there is no such program, or no process to be had. What a command in a node cannot start shows as an exit
    /// status of 127 or 126.
    pub fn start(command: &mut Command) -> Result<Self, LabError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|e| commands::not_started(&program, e))?;
        Ok(Self { child, name: commands::line(command) })
    }

    /// Its number, that of the program itself.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The standard library's side of it, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, for at most this long; `None` if it runs on.
    pub fn wait_within(&mut self, time: Duration) -> Option<ExitStatus> {
        wait_within(&mut self.child, time)
    }

    /// Asks it to end, with `SIGTERM`, and waits for at most this long; then it is killed, and `None` returned.
    ///
    /// # Errors
    /// When it cannot be signalled.
    pub fn stop_within(mut self, time: Duration) -> Result<Option<ExitStatus>, LabError> {
        self.signal(Signal::TERM)?;
        Ok(self.wait_within(time))
    }

    /// Kills it, as a crash would end it, and waits for the end.
    pub fn kill(mut self) {
        self.end();
    }

    /// Stops it from running, so that it seems dead to the others while its sockets live; see [`Process::resume`].
    ///
    /// # Errors
    /// When it cannot be signalled.
    pub fn pause(&self) -> Result<(), LabError> {
        self.signal(Signal::STOP)
    }

    /// Lets it run on after [`Process::pause`].
    ///
    /// # Errors
    /// When it cannot be signalled.
    pub fn resume(&self) -> Result<(), LabError> {
        self.signal(Signal::CONT)
    }

    /// Has it read its configuration again, with `SIGHUP`, if it does that.
    ///
    /// # Errors
    /// When it cannot be signalled.
    pub fn reload(&self) -> Result<(), LabError> {
        self.signal(Signal::HUP)
    }

    fn signal(&self, signal: Signal) -> Result<(), LabError> {
        // Its number is not given away again while it is not waited for, which happens only through this.
        kill_process(Pid::from_child(&self.child), signal)
            .map_err(|errno| LabError::system(format!("signal `{}`", self.name), errno))
    }

    fn end(&mut self) {
        // Of one that has ended there is nothing to end.
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
        // Packets are captured once it says that it listens; it says some lines at most.
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
