//! The declaration of a parameter, and the check of values against it.

use std::fmt;

use super::value::{GivenValue, ParamValue, exact_seconds, whole};
use crate::time::Nanos;

/// What a parameter accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ParamKind {
    /// A whole number in this range, both ends included.
    Integer {
        /// Least value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A number in this range, both ends included.
    Number {
        /// Least value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// A number of seconds in this range, both ends included.
    Seconds {
        /// Least value in seconds.
        min: f64,
        /// Largest value in seconds.
        max: f64,
    },
}

impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer { min, max } => write!(f, "a whole number from {min} to {max}"),
            Self::Number { min, max } | Self::Seconds { min, max } => {
                write!(f, "a number from {min} to {max}")
            }
        }
    }
}

impl ParamKind {
    fn parse(self, text: &str) -> Option<ParamValue> {
        match self {
            Self::Integer { .. } => self.integer(text.parse().ok()?),
            Self::Number { .. } => self.number(text.parse().ok()?),
            // The range applies to the number as written; rounding to nanoseconds may change it.
            Self::Seconds { .. } => {
                let rounded = self.number(text.parse().ok()?)?;
                Some(exact_seconds(text).map_or(rounded, ParamValue::Seconds))
            }
        }
    }

    fn integer(self, n: u64) -> Option<ParamValue> {
        match self {
            Self::Integer { min, max } => (min..=max).contains(&n).then_some(ParamValue::Integer(n)),
            Self::Number { .. } | Self::Seconds { .. } => self.number(n as f64),
        }
    }

    fn number(self, x: f64) -> Option<ParamValue> {
        match self {
            // A number without a fraction is whole, even if written `25.0`.
            Self::Integer { .. } => self.integer(whole(x)?),
            Self::Number { min, max } => (min..=max).contains(&x).then_some(ParamValue::Number(x)),
            Self::Seconds { min, max } => {
                let span = (min..=max).contains(&x).then(|| Nanos::from_secs_f64(x))?;
                span.map(ParamValue::Seconds)
            }
        }
    }
}

/// Requires a parameter to be larger than another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Above {
    /// The name of the other one.
    pub other: &'static str,
    /// The source of the rule.
    pub source: &'static str,
}

/// One parameter as declared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParamSpec {
    /// Configuration key, e.g. `t_low`.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Unit of the value, empty for a pure number.
    pub unit: &'static str,
    /// What is accepted.
    pub kind: ParamKind,
    /// The value when none is given.
    pub default: ParamValue,
    /// The parameter that this one must exceed.
    pub above: Option<Above>,
}

impl ParamSpec {
    /// The typed value of what a user gave.
    ///
    /// # Errors
    /// When it is of another kind or out of range.
    pub fn read(&self, given: &GivenValue) -> Result<ParamValue, ParamError> {
        let value = match given {
            GivenValue::Integer(n) => self.kind.integer(*n),
            GivenValue::Number(x) => self.kind.number(*x),
            GivenValue::Text(text) => self.kind.parse(text.trim()),
        };
        value.ok_or_else(|| ParamError::Value {
            key: self.name,
            value: given.to_string(),
            expected: self.accepts(),
        })
    }

    /// What is accepted, with the unit.
    #[must_use]
    pub fn accepts(&self) -> String {
        match self.unit {
            "" => self.kind.to_string(),
            unit => format!("{} ({unit})", self.kind),
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParamError {
    /// No such parameter; holds the key, the nearest known one and all known ones.
    Unknown {
        /// As written.
        key: String,
        /// The nearest known name, when one is near.
        nearest: Option<&'static str>,
        /// All names.
        known: Vec<&'static str>,
    },
    /// The value is of the wrong kind or out of range.
    Value {
        /// The key.
        key: &'static str,
        /// As written.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// Inconsistent values.
    Conflict {
        /// The parameters.
        keys: [&'static str; 2],
        /// What is wrong with them, in a sentence.
        why: String,
    },
}

impl ParamError {
    /// The error for a key that is not declared.
    #[must_use]
    pub fn unknown(key: &str, specs: &'static [ParamSpec]) -> Self {
        Self::Unknown {
            key: key.to_owned(),
            nearest: nearest(key, specs.iter().map(|s| s.name)),
            known: specs.iter().map(|s| s.name).collect(),
        }
    }
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { key, nearest, known } => {
                write!(f, "no parameter `{key}`")?;
                match nearest {
                    Some(name) => write!(f, "; did you mean `{name}`?"),
                    None if known.is_empty() => write!(f, "; there are no parameters here"),
                    None => write!(f, "; there are {}", known.join(", ")),
                }
            }
            Self::Value { key, value, expected } => write!(f, "`{key} = {value}`: expected {expected}"),
            Self::Conflict { why, .. } => f.write_str(why),
        }
    }
}

impl std::error::Error for ParamError {}

/// The member of `known` nearest to `given`, if near enough to be a likely typing error.
#[must_use]
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&given.to_lowercase(), name), name))
        .filter(|&(distance, name)| distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| name)
}
