//! Typed parameters from one declaration, which also feeds command line, configuration and documentation.

use std::fmt;

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
}

impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer { min, max } => write!(f, "a whole number from {min} to {max}"),
            Self::Number { min, max } => write!(f, "a number from {min} to {max}"),
        }
    }
}

/// One parameter as declared.
#[derive(Debug, Clone, Copy)]
pub struct ParamSpec {
    /// Configuration key, e.g. `t_low`.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Unit of the value, empty for a pure number.
    pub unit: &'static str,
    /// What is accepted.
    pub kind: ParamKind,
    /// The default, as a user would write it.
    pub default: fn() -> String,
}

/// Settings as written by the user: key and value, in order; a later one wins.
pub type Settings = [(String, String)];

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
    /// The value is not of the kind, or out of range.
    Value {
        /// The key.
        key: &'static str,
        /// As written.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// Values that do not go together.
    Conflict(String),
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
            Self::Conflict(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ParamError {}

/// The nearest of `known` to `given`, if it is near enough to be what was meant.
#[must_use]
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&given.to_lowercase(), name), name))
        .filter(|&(distance, name)| distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| name)
}

/// A type that a parameter can have.
pub trait ParamType: Sized + Copy {
    /// Reads a value within the kind's range.
    fn parse(text: &str, kind: ParamKind) -> Option<Self>;
    /// The value as a user would write it.
    fn show(self) -> String;
}

impl ParamType for u64 {
    fn parse(text: &str, kind: ParamKind) -> Option<Self> {
        let ParamKind::Integer { min, max } = kind else {
            return None;
        };
        text.parse().ok().filter(|v| (min..=max).contains(v))
    }
    fn show(self) -> String {
        self.to_string()
    }
}

impl ParamType for u32 {
    fn parse(text: &str, kind: ParamKind) -> Option<Self> {
        u64::parse(text, kind).and_then(|v| v.try_into().ok())
    }
    fn show(self) -> String {
        self.to_string()
    }
}

impl ParamType for f64 {
    fn parse(text: &str, kind: ParamKind) -> Option<Self> {
        let ParamKind::Number { min, max } = kind else {
            return None;
        };
        text.parse().ok().filter(|v| (min..=max).contains(v))
    }
    fn show(self) -> String {
        self.to_string()
    }
}

/// Written in seconds.
impl ParamType for Nanos {
    fn parse(text: &str, kind: ParamKind) -> Option<Self> {
        f64::parse(text, kind).and_then(Nanos::from_secs_f64)
    }
    fn show(self) -> String {
        self.as_secs_f64().to_string()
    }
}

/// Reads one setting into a field; used by the code that `params!` generates.
///
/// # Errors
/// When the value is not of the parameter's kind.
pub fn read<T: ParamType>(spec: &'static ParamSpec, value: &str) -> Result<T, ParamError> {
    T::parse(value.trim(), spec.kind).ok_or_else(|| ParamError::Value {
        key: spec.name,
        value: value.to_owned(),
        expected: match spec.unit {
            "" => spec.kind.to_string(),
            unit => format!("{} ({unit})", spec.kind),
        },
    })
}

/// The error for a key that is not declared; used by the code that `params!` generates.
#[must_use]
pub fn unknown(key: &str, specs: &'static [ParamSpec]) -> ParamError {
    ParamError::Unknown {
        key: key.to_owned(),
        nearest: nearest(key, specs.iter().map(|s| s.name)),
        known: specs.iter().map(|s| s.name).collect(),
    }
}

/// Parameters declared with [`params!`](crate::params!).
pub trait Params: Default {
    /// The declaration, for help, documentation and configuration.
    const SPECS: &'static [ParamSpec];

    /// Reads settings over the defaults.
    ///
    /// # Errors
    /// On an unknown key or a value out of range.
    fn from_settings(settings: &Settings) -> Result<Self, ParamError>;

    /// Every parameter with its value, as a user would write it.
    fn values(&self) -> Vec<(&'static str, String)>;
}

/// Declares a struct of parameters, each with type, default, range, unit and help, and implements
/// [`Params`](crate::params::Params) and `Default` for it.
#[macro_export]
macro_rules! params {
    (
        $(#[doc = $struct_doc:literal])*
        $vis:vis struct $name:ident {
            $( $(#[doc = $doc:literal])+ $field:ident: $ty:ident = $default:expr, $min:literal..=$max:literal, $unit:literal; )*
        }
    ) => {
        $(#[doc = $struct_doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        $vis struct $name { $( $(#[doc = $doc])+ pub $field: $ty, )* }

        impl Default for $name {
            fn default() -> Self { Self { $( $field: $default, )* } }
        }

        impl $crate::params::Params for $name {
            const SPECS: &'static [$crate::params::ParamSpec] = &[ $(
                $crate::params::ParamSpec {
                    name: stringify!($field),
                    help: concat!($($doc),+),
                    unit: $unit,
                    kind: $crate::param_kind!($ty, $min, $max),
                    default: || { let v: $ty = $default; $crate::params::ParamType::show(v) },
                },
            )* ];

            fn from_settings(settings: &$crate::params::Settings) -> Result<Self, $crate::params::ParamError> {
                let mut out = Self::default();
                for (key, value) in settings {
                    let Some(spec) = Self::SPECS.iter().find(|s| s.name == key) else {
                        return Err($crate::params::unknown(key, Self::SPECS));
                    };
                    $( if spec.name == stringify!($field) { out.$field = $crate::params::read(spec, value)?; } )*
                }
                Ok(out)
            }

            fn values(&self) -> Vec<(&'static str, String)> {
                vec![ $( (stringify!($field), $crate::params::ParamType::show(self.$field)), )* ]
            }
        }
    };
}

/// The kind of a parameter by its type, in constant context.
#[doc(hidden)]
#[macro_export]
macro_rules! param_kind {
    (u32, $min:literal, $max:literal) => {
        $crate::params::ParamKind::Integer { min: $min, max: $max }
    };
    (u64, $min:literal, $max:literal) => {
        $crate::params::ParamKind::Integer { min: $min, max: $max }
    };
    ($other:ident, $min:literal, $max:literal) => {
        $crate::params::ParamKind::Number { min: $min, max: $max }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    params! {
        /// For the tests.
        struct Sample {
            /// How many.
            count: u32 = 25, 1..=100, "requests";
            /// How long.
            k_s: Nanos = Nanos::from_secs(20), 0.0..=1e6, "s";
            /// How much.
            factor: f64 = 1.25, 1.0..=10.0, "";
        }
    }

    fn set(key: &str, value: &str) -> Result<Sample, ParamError> {
        Sample::from_settings(&[(key.to_owned(), value.to_owned())])
    }

    #[test]
    fn defaults_and_overrides() {
        assert_eq!(Sample::default().count, 25);
        assert_eq!(set("k_s", "1.5").unwrap().k_s, Nanos::from_millis(1500));
        assert_eq!(Sample::default().values()[1], ("k_s", "20".to_owned()));
        assert_eq!((Sample::SPECS[2].default)(), "1.25");
        assert_eq!(Sample::SPECS[0].help.trim(), "How many.");
    }

    #[test]
    fn errors_say_what_would_be_right() {
        let message = |key: &str, value: &str| set(key, value).unwrap_err().to_string();
        assert_eq!(message("cuont", "1"), "no parameter `cuont`; did you mean `count`?");
        assert_eq!(message("zzz", "1"), "no parameter `zzz`; there are count, k_s, factor");
        assert_eq!(message("count", "0"), "`count = 0`: expected a whole number from 1 to 100 (requests)");
        assert_eq!(message("factor", "NaN"), "`factor = NaN`: expected a number from 1 to 10");
    }
}
