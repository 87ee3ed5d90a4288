//! Rates and delays of links.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::LabError;

/// Longest delay of a link.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// A rate of a link, in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// A rate from 8 kbit/s to 1 Tbit/s.
    ///
    /// # Errors
    /// When the rate is out of range.
    pub fn from_bits_per_s(bits_per_s: u64) -> Result<Self, LabError> {
        if (8_000..=1_000_000_000_000).contains(&bits_per_s) {
            return Ok(Self(bits_per_s));
        }
        Err(LabError::Invalid(format!("a rate is from 8kbit to 1000gbit per second, not {bits_per_s}bit")))
    }

    /// Bits per second.
    #[must_use]
    pub fn bits_per_s(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, size) in UNITS {
            if self.0.is_multiple_of(size) {
                return write!(f, "{}{unit}", self.0 / size);
            }
        }
        write!(f, "{}bit", self.0)
    }
}

/// Largest first.
const UNITS: [(&str, u64); 3] = [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000)];

impl FromStr for Rate {
    type Err = LabError;

    /// `1gbit`, `2.5gbit`, `100mbit`, `64kbit`, as for `tc`.
    fn from_str(text: &str) -> Result<Self, LabError> {
        let wrong = || LabError::Invalid(format!("expected a rate such as 1gbit or 100mbit, not `{text}`"));
        let lower = text.to_ascii_lowercase();
        let (number, size) = UNITS
            .iter()
            .find_map(|(unit, size)| Some((lower.strip_suffix(unit)?, *size)))
            .ok_or_else(wrong)?;
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        if !number.is_finite() || number < 0.0 {
            return Err(wrong());
        }
        // The conversion saturates, so that out-of-range values stay out of range.
        Self::from_bits_per_s((number * size as f64).round() as u64)
    }
}

/// Refuses absurd delays.
pub(crate) fn check_delay(delay: Duration) -> Result<(), LabError> {
    if delay <= LONGEST_DELAY {
        return Ok(());
    }
    Err(LabError::Invalid(format!("a link delays by at most {LONGEST_DELAY:?}, not {delay:?}")))
}
