//! The thread that takes what a packet program reports.

use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_datapath::{FromRecord, HeldRing};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::config::AgentError;
use super::spawn::system;

/// Interval of looks at whether to end.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// Starts a thread that gives `take` what comes, until `has_ended`.
///
/// # Errors
/// When the system provides no thread.
pub(super) fn take_reports<T: FromRecord + Send>(
    name: &str,
    mut ring: HeldRing<T>,
    has_ended: impl Fn() -> bool + Send + 'static,
    mut take: impl FnMut(T) + Send + 'static,
) -> Result<JoinHandle<()>, AgentError> {
    let run = move || {
        while !has_ended() {
            let mut fds = [PollFd::new(&ring, PollFlags::IN)];
            match poll(&mut fds, Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return tracing::error!(%error, "held packets cannot be read"),
            }
            loop {
                match ring.poll_held(&mut take) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) => {
                        tracing::error!(%error, "held packets could not be read");
                        std::thread::sleep(AFTER_FAILURE);
                        break;
                    }
                }
            }
        }
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    thread.map_err(system("cannot start a thread"))
}
