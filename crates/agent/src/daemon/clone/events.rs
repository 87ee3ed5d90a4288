//! The thread that takes what the packet router reports.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_datapath::{HeldRing, RouterEvent};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::config::AgentError;
use super::shared::CloneShared;

/// Pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

pub(super) fn start_events(
    shared: Arc<CloneShared>,
    mut ring: HeldRing<RouterEvent>,
) -> Result<JoinHandle<()>, AgentError> {
    /// Interval of checks whether the node has ended.
    const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let run = move || {
        while !shared.has_ended() {
            let mut fds = [PollFd::new(&ring, PollFlags::IN)];
            match poll(&mut fds, Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return tracing::error!(%error, "the packet router's reports cannot be read"),
            }
            loop {
                match ring.poll_held(|event| take(&shared, event)) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) => {
                        tracing::error!(%error, "the packet router's reports could not be read");
                        std::thread::sleep(AFTER_FAILURE);
                        break;
                    }
                }
            }
        }
    };
    let thread = std::thread::Builder::new().name("clone-events".to_owned()).spawn(run);
    thread.map_err(|error| AgentError::System { what: "cannot start a thread", error })
}

fn take(shared: &CloneShared, event: RouterEvent) {
    match event {
        RouterEvent::Packet(packet) => shared.originals.held(&shared.router, packet),
        RouterEvent::Acknowledged(flow) | RouterEvent::Reset(flow) | RouterEvent::Forged(flow) => {
            shared.originals.told(&flow);
        }
    }
}
