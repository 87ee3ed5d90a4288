//! Events for a due time that moves: a further event is needed only when it gets earlier.

use plimsoll_policy::Time;

/// The times of scheduled events, the earliest last. An event that comes too early only makes sure that
/// another one is scheduled.
#[derive(Debug, Default)]
pub(super) struct Alarm(Vec<Time>);

impl Alarm {
    /// Sets the due time. Returns whether an event must be scheduled for it.
    #[inline]
    pub(super) fn set(&mut self, due: Time) -> bool {
        let needed = self.0.last().is_none_or(|&earliest| due < earliest);
        if needed {
            self.0.push(due);
        }
        needed
    }

    /// Removes the earliest event, which has come.
    #[inline]
    pub(super) fn rang(&mut self) {
        self.0.pop();
    }

    /// Forgets all scheduled events.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
