//! Events of something whose next due time moves: only when it gets earlier is a further event needed.

use plimsoll_policy::Time;

/// The times for which events are scheduled, the earliest last. An event that comes before anything is due does no more
/// than have the next one scheduled, if none is.
#[derive(Debug, Default)]
pub(super) struct Alarm(Vec<Time>);

impl Alarm {
    /// Something is due at this time, or later if that changes; true if an event has to be scheduled for it.
    #[inline]
    pub(super) fn set(&mut self, due: Time) -> bool {
        let needed = self.0.last().is_none_or(|&earliest| due < earliest);
        if needed {
            self.0.push(due);
        }
        needed
    }

    /// The earliest event has come.
    #[inline]
    pub(super) fn rang(&mut self) {
        self.0.pop();
    }

    /// The events that are scheduled are void.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
