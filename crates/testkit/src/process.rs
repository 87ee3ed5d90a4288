//! Processes that are not children, and their end.

use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A process that somebody else started. The kernel gives the number of a process that has ended to another one; this
/// goes on naming the first.
#[derive(Debug)]
pub struct ProcessWatch(OwnedFd);

impl ProcessWatch {
    /// The process that has this number now. To be called while it surely runs.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let opened = number.map(|number| pidfd_open(number, PidfdFlags::empty()));
        match opened {
            Some(Ok(fd)) => Self(fd),
            other => panic!("no process {pid}: {other:?}"),
        }
    }

    /// Whether it has ended, be it that nobody has waited for it yet.
    ///
    /// # Panics
    /// When the kernel does not tell.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = poll(&mut fds, Some(&at_once)).unwrap_or_else(|error| panic!("poll: {error}"));
        ready > 0
    }

    /// Whether it has ended and been waited for, so that nothing of it is left.
    ///
    /// # Panics
    /// When the kernel does not tell.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        let file = format!("/proc/self/fdinfo/{}", self.0.as_raw_fd());
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        text.lines().any(|line| line == "Pid:\t-1")
    }
}

/// Whether every thread of the process with this number has been stopped by a signal, as `SIGSTOP` does some time after it
/// was sent.
///
/// # Panics
/// When there is no such process.
#[must_use]
pub fn is_stopped(pid: u32) -> bool {
    let directory = format!("/proc/{pid}/task");
    let threads = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{directory}: {error}"));
    threads.flatten().all(|thread| {
        // A thread that has ended meanwhile runs no more either.
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn tells_when_a_process_has_ended() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let watch = ProcessWatch::new(child.id());
        assert!(!watch.has_ended());
        drop(child.stdin.take());
        crate::eventually("the end", || watch.has_ended());
        assert!(!watch.is_gone());
        child.wait().unwrap();
        assert!(watch.has_ended() && watch.is_gone());
    }

    #[test]
    fn tells_when_a_process_is_stopped() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(!is_stopped(child.id()));
        rustix::process::kill_process(Pid::from_child(&child), rustix::process::Signal::STOP).unwrap();
        crate::eventually("the stop", || is_stopped(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
