//! The cluster and its load, in all experiments.

/// Back-ends in all experiments but that of figure 10.
pub(super) const BACKENDS: usize = 4;

/// How many of the back-ends are fast where speeds are unequal (section 4), and how fast. The paper gives no example.
pub(super) const FAST_BACKENDS: u16 = 2;
pub(super) const FAST_SPEED: f64 = 2.0;

/// What back-ends are like, where they are not as in the paper's experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BackendKind {
    /// As there.
    Usual,
    /// Connections cost network time, of which AdaptLoad is told (footnote 4).
    Connections,
    /// Some are faster than the others, with as much speed in all. Policies know it by weights, or do not.
    Unequal { weighted: bool },
}

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
