//! Typed parameters from one declaration, which also feeds command line, configuration and documentation.
//!
//! A value is read once, at the edge where a user gives it ([`GivenValue`]), into a [`ParamValue`] of the
//! type that the declaration ([`ParamSpec`]) asks for. A [`ParamSet`] holds the values of one policy or
//! model; its values have been checked.

mod named;
mod set;
mod spec;
mod value;

pub use named::{Named, NotNamed};
pub use set::{ParamSet, Settings};
pub use spec::{Above, ParamError, ParamKind, ParamSpec, nearest};
pub use value::{GivenValue, ParamType, ParamValue};

/// Parameters declared with [`params!`](crate::params!).
pub trait Params: Default {
    /// The declaration, for help, documentation and configuration.
    const SPECS: &'static [ParamSpec];

    /// Reads the parameters from a set; defaults for those that it lacks.
    fn of(set: &ParamSet) -> Self;

    /// Every parameter with its value.
    fn values(&self) -> Vec<(&'static str, ParamValue)>;

    /// The values as a set in which all are given.
    ///
    /// # Errors
    /// On a value out of range and on inconsistent values.
    fn to_set(&self) -> Result<ParamSet, ParamError> {
        ParamSet::read(Self::SPECS, self.values().into_iter().map(|(key, value)| (key, value.into())))
    }

    /// Reads settings over the defaults.
    ///
    /// # Errors
    /// On an unknown key, a value out of range, or inconsistent values.
    fn from_settings(settings: &Settings) -> Result<Self, ParamError> {
        ParamSet::from_settings(Self::SPECS, settings).map(|set| Self::of(&set))
    }
}

/// Declares a struct of parameters, each with type, default, range, unit and help, and implements
/// [`Params`](crate::params::Params) and `Default` for it. `above OTHER "SOURCE"` at the end requires the
/// parameter to be larger than another one of the same type.
#[macro_export]
macro_rules! params {
    (
        $(#[doc = $struct_doc:literal])*
        $vis:vis struct $name:ident {
            $( $(#[doc = $doc:literal])+ $field:ident: $ty:ident = $default:expr, $min:literal..=$max:literal, $unit:literal
                $(, above $other:ident $source:literal)?; )*
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
                    default: $crate::param_default!($ty, $default),
                    above: $crate::param_above!($($other $source)?),
                },
            )* ];

            fn of(set: &$crate::params::ParamSet) -> Self {
                Self { $( $field: set.get(stringify!($field)).unwrap_or($default), )* }
            }

            fn values(&self) -> Vec<(&'static str, $crate::params::ParamValue)> {
                vec![ $( (stringify!($field), $crate::params::ParamType::into_value(self.$field)), )* ]
            }
        }
    };
}

/// The kind of a parameter by its type, in constant context. A range beyond the type does not compile.
#[doc(hidden)]
#[macro_export]
macro_rules! param_kind {
    (u32, $min:literal, $max:literal) => {{
        const RANGE: (u32, u32) = ($min, $max);
        $crate::params::ParamKind::Integer { min: RANGE.0 as u64, max: RANGE.1 as u64 }
    }};
    (u64, $min:literal, $max:literal) => {
        $crate::params::ParamKind::Integer { min: $min, max: $max }
    };
    (f64, $min:literal, $max:literal) => {
        $crate::params::ParamKind::Number { min: $min, max: $max }
    };
    (Nanos, $min:literal, $max:literal) => {
        $crate::params::ParamKind::Seconds { min: $min, max: $max }
    };
}

/// The default of a parameter by its type, in constant context.
#[doc(hidden)]
#[macro_export]
macro_rules! param_default {
    (u32, $default:expr) => {{
        const DEFAULT: u32 = $default;
        $crate::params::ParamValue::Integer(DEFAULT as u64)
    }};
    (u64, $default:expr) => {
        $crate::params::ParamValue::Integer($default)
    };
    (f64, $default:expr) => {
        $crate::params::ParamValue::Number($default)
    };
    (Nanos, $default:expr) => {
        $crate::params::ParamValue::Seconds($default)
    };
}

/// The parameter that this one must exceed.
#[doc(hidden)]
#[macro_export]
macro_rules! param_above {
    () => {
        None
    };
    ($other:ident $source:literal) => {
        Some($crate::params::Above { other: stringify!($other), source: $source })
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;

    params! {
        /// For the tests.
        struct Sample {
            /// How many.
            count: u32 = 25, 1..=100, "requests";
            /// How long.
            k_s: Nanos = Nanos::from_secs(20), 0.0..=1e6, "s";
            /// How much.
            factor: f64 = 1.25, 1.0..=10.0, "";
            /// How many at most.
            most: u32 = 30, 1..=100, "requests", above count "section 1";
        }
    }

    fn set(key: &str, value: &str) -> Result<Sample, ParamError> {
        Sample::from_settings(&[(key.to_owned(), value.to_owned())])
    }

    #[test]
    fn defaults_and_overrides() {
        assert_eq!(Sample::default().count, 25);
        assert_eq!(set("k_s", "1.5").unwrap().k_s, Nanos::from_millis(1500));
        assert_eq!(Sample::default().values()[1], ("k_s", ParamValue::Seconds(Nanos::from_secs(20))));
        assert_eq!(Sample::SPECS[1].default.to_string(), "20");
        assert_eq!(Sample::SPECS[2].default.to_string(), "1.25");
        assert_eq!(Sample::SPECS[0].help.trim(), "How many.");
    }

    #[test]
    fn errors_say_what_would_be_right() {
        let message = |key: &str, value: &str| set(key, value).unwrap_err().to_string();
        assert_eq!(message("cuont", "1"), "no parameter `cuont`; did you mean `count`?");
        assert_eq!(message("zzz", "1"), "no parameter `zzz`; there are count, k_s, factor, most");
        assert_eq!(message("count", "0"), "`count = 0`: expected a whole number from 1 to 100 (requests)");
        assert_eq!(message("factor", "NaN"), "`factor = NaN`: expected a number from 1 to 10");
    }

    #[test]
    fn values_have_to_go_together() {
        assert_eq!(set("count", "29").unwrap().count, 29);
        let error = set("count", "30").unwrap_err();
        assert_eq!(error.to_string(), "`most = 30` must be above `count = 30` (section 1)");
        assert!(matches!(error, ParamError::Conflict { keys: ["most", "count"], .. }));
        let both = [("count", "50"), ("most", "60")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(Sample::from_settings(&both).unwrap().most, 60, "only what holds in the end counts");
    }

    #[test]
    fn numbers_are_taken_as_the_declaration_asks() {
        let read = |at: usize, given: GivenValue| Sample::SPECS[at].read(&given).ok();
        assert_eq!(read(0, 25_u64.into()), Some(ParamValue::Integer(25)));
        assert_eq!(read(0, 25.0.into()), Some(ParamValue::Integer(25)));
        assert_eq!(read(1, 2_u64.into()), Some(ParamValue::Seconds(Nanos::from_secs(2))));
        assert_eq!(read(1, 0.1.into()), Some(ParamValue::Seconds(Nanos::from_millis(100))));
        assert_eq!(read(2, 2_u64.into()), Some(ParamValue::Number(2.0)));
        assert_eq!(read(2, " 2.5 ".into()), Some(ParamValue::Number(2.5)));
        for (at, bad) in [(0, 25.5), (0, -1.0), (0, 1e30), (1, -0.5), (1, f64::NAN), (2, f64::INFINITY)] {
            assert_eq!(read(at, bad.into()), None, "{bad}");
        }
    }

    #[test]
    fn a_set_gives_back_what_it_was_given() {
        let given = [("k_s", 2.5.into()), ("count", 7_u64.into())];
        let params = ParamSet::read(Sample::SPECS, given).unwrap();
        let settings = params.settings();
        assert_eq!(settings, [("count".to_owned(), "7".to_owned()), ("k_s".to_owned(), "2.5".to_owned())]);
        assert_eq!(ParamSet::from_settings(Sample::SPECS, &settings), Ok(params.clone()));
        assert_eq!((params.get::<u32>("count"), params.get::<f64>("factor")), (Some(7), Some(1.25)));
        assert_eq!((params.get::<f64>("count"), params.get::<u32>("x")), (None, None));
        assert_eq!(params.iter().count(), 4);
        assert_ne!(params, ParamSet::defaults(Sample::SPECS));
        assert_eq!(Sample::of(&params).to_set().unwrap().given().count(), 4);
    }
}
