//! The priority of the thread that answers: front-ends wait for it while this machine is busy.

use rustix::process::{Resource, Rlimit, getpriority_process, getrlimit, setpriority_process, setrlimit};

/// The highest of the ordinary priorities ("nice" -20). A real-time one would let a flood of datagrams stop the machine.
const HIGHEST: i32 = -20;
/// The limit that allows it: 20 minus the priority.
const LIMIT: u64 = 40;

/// Lets threads of this process raise their priority later, when it has given its privileges away. Without `CAP_SYS_RESOURCE`
/// it has no effect.
pub fn allow_priority() {
    let now = getrlimit(Resource::Nice);
    if now.maximum.is_none_or(|most| most >= LIMIT) && now.current.is_none_or(|current| current >= LIMIT) {
        return;
    }
    let wanted =
        Rlimit { current: Some(LIMIT), maximum: Some(now.maximum.map_or(LIMIT, |most| most.max(LIMIT))) };
    if let Err(error) = setrlimit(Resource::Nice, wanted) {
        tracing::debug!(%error, "threads may not raise their priority");
    }
}

/// The high priority of the thread that made it, for the threads that it starts: those have it, whatever privileges are given away meanwhile.
/// Once dropped, the thread has its own again.
#[derive(Debug)]
pub(super) struct InheritedPriority {
    thread: rustix::process::Pid,
    before: i32,
}

impl InheritedPriority {
    /// `None` where this process may not.
    pub(super) fn raise() -> Option<Self> {
        let thread = rustix::thread::gettid();
        let before = getpriority_process(Some(thread)).ok()?;
        setpriority_process(Some(thread), HIGHEST).ok()?;
        Some(Self { thread, before })
    }
}

impl Drop for InheritedPriority {
    fn drop(&mut self) {
        if let Err(error) = setpriority_process(Some(self.thread), self.before) {
            tracing::warn!(%error, "a thread keeps a high priority that it needs no more");
        }
    }
}

/// Gives this thread the ordinary priority, if it can have the high one again. Whether it has the ordinary one.
pub(super) fn lower() -> bool {
    let again = getrlimit(Resource::Nice).current.is_none_or(|current| current >= LIMIT);
    again && setpriority_process(Some(rustix::thread::gettid()), 0).is_ok()
}

/// Raises the priority of this thread. False, with a line in the log, where this process may not.
pub(super) fn raise() -> bool {
    match setpriority_process(Some(rustix::thread::gettid()), HIGHEST) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(
                %error,
                "the thread that answers inquiries has no higher priority: on a busy machine answers may come late; start as \
                 root, with CAP_SYS_NICE, or with LimitNICE=-20 in the systemd unit"
            );
            false
        }
    }
}
