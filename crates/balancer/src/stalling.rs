//! Whether only the client of a request is waited for: meanwhile it is no load of its back-end.

use std::time::Duration;

use crate::dispatch::Assignment;

/// A client that has been waited for this long is slow: until then its request counts as load.
pub(crate) const SLOW: Duration = Duration::from_millis(100);

/// Tells dispatch when a request begins and ceases to wait for its client alone.
pub(crate) struct Stalling<'a> {
    assignment: Option<&'a mut Assignment>,
    stalled: bool,
}

impl<'a> Stalling<'a> {
    /// Of the request that is assigned so; `None` for one that nobody counts.
    pub(crate) fn new(assignment: Option<&'a mut Assignment>) -> Self {
        Self { assignment, stalled: false }
    }

    /// Whether it is no load now.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// How long to wait for the client, which may be waited for `wait` longer and has been for `waited_ms`: until it is
    /// known to be slow at most.
    pub(crate) fn next(&self, wait: Duration, waited_ms: u64) -> Duration {
        if self.stalled { wait } else { wait.min(SLOW.saturating_sub(Duration::from_millis(waited_ms))) }
    }

    /// Only the client is waited for.
    pub(crate) fn stall(&mut self) {
        if !std::mem::replace(&mut self.stalled, true)
            && let Some(assignment) = &mut self.assignment
        {
            assignment.stalled();
        }
    }

    /// The back-end works on it.
    pub(crate) fn resume(&mut self) {
        if std::mem::replace(&mut self.stalled, false)
            && let Some(assignment) = &mut self.assignment
        {
            assignment.resumed();
        }
    }
}
