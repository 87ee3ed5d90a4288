//! The cluster and its load, in all experiments.

/// Back-ends in all experiments but that of figure 10.
pub(super) const BACKENDS: usize = 4;

/// The speed of back-ends, and the part of the day that is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DayLoad {
    /// The whole day.
    Day,
    /// 35,000 to 45,000 s of figure 11, light or heavy.
    Quiet { heavy: bool },
    /// 58,000 to 68,000 s.
    Peak { heavy: bool },
}
