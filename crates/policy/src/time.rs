//! Integer-nanosecond time, handed in by the runtime: the policies never read a clock.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// An instant: nanoseconds since an origin that the runtime chooses (start of the simulation, start of the process).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A span of time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(u64);

const PER_SECOND: u64 = 1_000_000_000;

impl Time {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// The latest instant; sorts after every event.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the origin.
    #[must_use]
    #[inline]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the origin, for output only: decisions compare integers.
    #[must_use]
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PER_SECOND as f64
    }

    /// The time since `earlier`, or zero when `earlier` lies in the future.
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ns` nanoseconds.
    #[must_use]
    #[inline]
    pub const fn new(ns: u64) -> Self {
        Self(ns)
    }

    /// A span of `us` microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// A span of `ms` milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// A span of whole seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(PER_SECOND))
    }

    /// The span nearest to `s` seconds; `None` when `s` is negative, not finite or beyond 584 years.
    #[must_use]
    #[inline]
    pub fn from_secs_f64(s: f64) -> Option<Self> {
        let ns = (s * PER_SECOND as f64).round();
        (ns >= 0.0 && ns < u64::MAX as f64).then_some(Self(ns as u64))
    }

    /// Nanoseconds.
    #[must_use]
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds, for output only.
    #[must_use]
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PER_SECOND as f64
    }

    /// Whether it is no time at all.
    #[must_use]
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `factor` times this span, rounded; no time for a negative factor.
    #[must_use]
    #[inline]
    pub fn scaled(self, factor: f64) -> Self {
        // Adding a half and truncating rounds; a call to `round` is not inlined.
        Self((self.0 as f64 * factor + 0.5) as u64)
    }
}

impl Add<Nanos> for Time {
    type Output = Time;
    /// Saturates at [`Time::MAX`], which sorts after every event.
    fn add(self, span: Nanos) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Nanos> for Time {
    fn add_assign(&mut self, span: Nanos) {
        *self = *self + span;
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / PER_SECOND, self.0 % PER_SECOND)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Time(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_to_the_nearest_nanosecond() {
        assert_eq!(Nanos::from_secs_f64(0.000_145), Some(Nanos::from_micros(145)));
        assert_eq!(Nanos::from_secs_f64(20.0), Some(Nanos::from_secs(20)));
        assert_eq!(Nanos::from_secs_f64(-1.0), None);
        assert_eq!(Nanos::from_secs_f64(f64::NAN), None);
        assert_eq!(Nanos::from_secs_f64(1e300), None);
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::MAX + Nanos::new(1), Time::MAX);
        assert_eq!(Time::ZERO.since(Time::from_nanos(5)), Nanos::ZERO);
        assert_eq!(Nanos::new(3) - Nanos::new(5), Nanos::ZERO);
    }

    #[test]
    fn display_shows_every_nanosecond() {
        assert_eq!(Time::from_nanos(1_500_000_001).to_string(), "1.500000001");
    }
}
