//! Values of parameters: as a user gives them, and typed.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::time::Nanos;

/// The value of a parameter, of the type that its declaration asks for.
///
/// It is written as a user would write it. What is written reads back as the same value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ParamValue {
    /// A whole number.
    Integer(u64),
    /// A number.
    Number(f64),
    /// A span of time, written in seconds.
    Seconds(Nanos),
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

impl ParamValue {
    /// The value as a number; of a span of time, its seconds.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Integer(n) => n as f64,
            Self::Number(x) => x,
            Self::Seconds(span) => span.as_secs_f64(),
        }
    }

    /// The value as a whole number, if it is one.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        if let Self::Integer(n) = self { Some(n) } else { whole(self.as_f64()) }
    }
}

/// The number as `u64`, if it is whole and fits.
pub(super) fn whole(x: f64) -> Option<u64> {
    (x.fract() == 0.0 && x.is_sign_positive() && x < 2f64.powi(64)).then_some(x as u64)
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(n) => n.fmt(f),
            Self::Number(x) => x.fmt(f),
            Self::Seconds(span) => {
                let (seconds, rest) =
                    (span.as_nanos() / NANOS_PER_SECOND, span.as_nanos() % NANOS_PER_SECOND);
                let decimals = format!("{rest:09}");
                match decimals.trim_end_matches('0') {
                    "" => seconds.fmt(f),
                    decimals => write!(f, "{seconds}.{decimals}"),
                }
            }
        }
    }
}

/// Parses a decimal number of seconds without exponent and with at most nine decimals. Exact, whereas a
/// floating-point number would lose nanoseconds of a span of months.
pub(super) fn exact_seconds(text: &str) -> Option<Nanos> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 9 || !digits(whole) || !digits(decimals) {
        return None;
    }
    let seconds: u64 = whole.parse().ok()?;
    let nanos: u64 = format!("{decimals:0<9}").parse().ok()?;
    seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos).map(Nanos::new)
}

/// Writes a whole value as an integer, so that `1.0` and `1` give the same bytes.
impl Serialize for ParamValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.as_u64() {
            Some(whole) => serializer.serialize_u64(whole),
            None => serializer.serialize_f64(self.as_f64()),
        }
    }
}

/// A value as a user gave it, before a declaration says what it has to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number, or a text that holds one")]
pub enum GivenValue {
    /// A whole number that is not negative.
    Integer(u64),
    /// Any other number.
    Number(f64),
    /// A text, as on a command line.
    Text(String),
}

impl GivenValue {
    /// The value as a whole number, if it is one.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Integer(n) => Some(*n),
            Self::Number(x) => whole(*x),
            Self::Text(text) => text.parse().ok(),
        }
    }

    /// The value as a number, if it is one.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(n) => Some(*n as f64),
            Self::Number(x) => Some(*x),
            Self::Text(text) => text.parse().ok(),
        }
    }
}

impl fmt::Display for GivenValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(n) => n.fmt(f),
            // Hundreds of digits help nobody.
            Self::Number(x) if x.abs() >= 1e15 => write!(f, "{x:e}"),
            Self::Number(x) => x.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl From<u64> for GivenValue {
    fn from(n: u64) -> Self {
        Self::Integer(n)
    }
}

impl From<u32> for GivenValue {
    fn from(n: u32) -> Self {
        Self::Integer(n.into())
    }
}

impl From<f64> for GivenValue {
    fn from(x: f64) -> Self {
        Self::Number(x)
    }
}

impl From<&str> for GivenValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Written values read back as the same value.
impl From<ParamValue> for GivenValue {
    fn from(value: ParamValue) -> Self {
        match value {
            ParamValue::Integer(n) => Self::Integer(n),
            ParamValue::Number(x) => Self::Number(x),
            ParamValue::Seconds(span) => match value.as_f64() {
                seconds if Nanos::from_secs_f64(seconds) == Some(span) => Self::Number(seconds),
                _ => Self::Text(value.to_string()),
            },
        }
    }
}

/// A type that a parameter can have.
pub trait ParamType: Sized + Copy {
    /// The value, if it is of this type.
    fn of(value: ParamValue) -> Option<Self>;
    /// This as a value.
    fn into_value(self) -> ParamValue;
}

impl ParamType for u64 {
    fn of(value: ParamValue) -> Option<Self> {
        if let ParamValue::Integer(n) = value { Some(n) } else { None }
    }
    fn into_value(self) -> ParamValue {
        ParamValue::Integer(self)
    }
}

impl ParamType for u32 {
    fn of(value: ParamValue) -> Option<Self> {
        u64::of(value)?.try_into().ok()
    }
    fn into_value(self) -> ParamValue {
        ParamValue::Integer(self.into())
    }
}

impl ParamType for f64 {
    fn of(value: ParamValue) -> Option<Self> {
        if let ParamValue::Number(x) = value { Some(x) } else { None }
    }
    fn into_value(self) -> ParamValue {
        ParamValue::Number(self)
    }
}

impl ParamType for Nanos {
    fn of(value: ParamValue) -> Option<Self> {
        if let ParamValue::Seconds(span) = value { Some(span) } else { None }
    }
    fn into_value(self) -> ParamValue {
        ParamValue::Seconds(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_written_and_read_exactly() {
        for ns in [0, 1, 10, 2_500_000_000, 20_000_000_000, 9_007_199_254_740_993_001, u64::MAX] {
            let span = Nanos::new(ns);
            assert_eq!(exact_seconds(&ParamValue::Seconds(span).to_string()), Some(span));
        }
        assert_eq!(ParamValue::Seconds(Nanos::from_millis(2500)).to_string(), "2.5");
        for other in ["", ".5", "1e3", "-1", "1.0000000001", "99999999999", "x"] {
            assert_eq!(exact_seconds(other), None, "{other}");
        }
    }
}
