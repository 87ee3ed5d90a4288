//! The part of a trace in which a target is requested.

/// Part of the trace (places from 0 to 1) in which a target is requested. A window that extends beyond the
/// end of the trace wraps around to its start, so that windows cover all parts alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ActiveWindow {
    /// Start of the window.
    pub(super) start: f64,
    /// Its end, or 1 if it runs over.
    pub(super) end: f64,
    /// End of the part that ran over, else 0.
    pub(super) early_end: f64,
    /// How many of the target's requests fall in the part that ran over.
    pub(super) early: u64,
}

impl ActiveWindow {
    /// The whole trace.
    pub(super) const WHOLE: Self = Self { start: 0.0, end: 1.0, early_end: 0.0, early: 0 };

    /// A window of a given start and length for a target with `count` requests. `dither`, uniform
    /// over (0, 1], decides how the fraction of a request at the division is rounded.
    pub(super) fn new(start: f64, length: f64, count: u64, dither: f64) -> Self {
        if length >= 1.0 {
            return Self::WHOLE;
        }
        let over = start + length - 1.0;
        if over <= 0.0 {
            return Self { start, end: start + length, ..Self::WHOLE };
        }
        let early = (count as f64 * over / length + dither).floor() as u64;
        Self { start, end: 1.0, early_end: over, early: early.min(count) }
    }
}
