//! How connections come to a socket that listens.

/// Connections accepted between two looks at how they come.
const LOOK_EVERY: u32 = 64;

/// How connections come: one at a time, or several before the first has been accepted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rush {
    pub(super) accepted: u32,
    /// How often there was none any more.
    pub(super) waits: u32,
    pub(super) on: bool,
}

impl Rush {
    /// Whether there is a rush, from now on, if that has changed.
    pub(super) fn look(&mut self) -> Option<bool> {
        if self.accepted < LOOK_EVERY {
            return None;
        }
        // Two for each wait begin it, and fewer than five for each four end it.
        let on = if self.on { 4 * self.accepted >= 5 * self.waits } else { self.accepted >= 2 * self.waits };
        let changed = on != self.on;
        *self = Self { on, ..Self::default() };
        changed.then_some(on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rush_begins_and_ends() {
        let mut rush = Rush::default();
        let mut after = |accepted, waits| {
            (rush.accepted, rush.waits) = (accepted, waits);
            rush.look()
        };
        assert_eq!(after(63, 1), None);
        assert_eq!(after(64, 64), None, "one at a time");
        assert_eq!(after(64, 33), None);
        assert_eq!(after(64, 32), Some(true));
        assert_eq!(after(64, 51), None);
        assert_eq!(after(64, 52), Some(false));
        assert_eq!(after(64, 0), Some(true));
    }
}
