//! The parameters of one policy or model, each with a value.

use std::fmt;

use super::spec::{ParamError, ParamSpec};
use super::value::{GivenValue, ParamType, ParamValue};

/// Settings in text: key and value, in order; a later one wins.
pub type Settings = [(String, String)];

/// Parameters in the order of their declaration, each with the value that was given, or else its default.
///
/// Every value has its parameter's kind and is within its range, and the values are consistent.
#[derive(Clone)]
pub struct ParamSet {
    specs: &'static [ParamSpec],
    /// What was given, in the order of `specs`.
    given: Vec<Option<ParamValue>>,
}

impl ParamSet {
    /// Every parameter at its default.
    #[must_use]
    pub fn defaults(specs: &'static [ParamSpec]) -> Self {
        Self { specs, given: vec![None; specs.len()] }
    }

    /// These values, and defaults for the rest; the last value for a key holds.
    ///
    /// # Errors
    /// On an unknown key, a value of the wrong kind or out of range, and on inconsistent values.
    pub fn read<'k>(
        specs: &'static [ParamSpec],
        given: impl IntoIterator<Item = (&'k str, GivenValue)>,
    ) -> Result<Self, ParamError> {
        let mut out = Self::defaults(specs);
        for (key, value) in given {
            let Some(at) = specs.iter().position(|s| s.name == key) else {
                return Err(ParamError::unknown(key, specs));
            };
            out.given[at] = Some(specs[at].read(&value)?);
        }
        out.check()?;
        Ok(out)
    }

    /// The values of settings in text, and defaults for the rest.
    ///
    /// # Errors
    /// Like [`read`](Self::read).
    pub fn from_settings(specs: &'static [ParamSpec], settings: &Settings) -> Result<Self, ParamError> {
        Self::read(specs, settings.iter().map(|(key, value)| (key.as_str(), value.as_str().into())))
    }

    /// The declarations.
    #[must_use]
    pub fn specs(&self) -> &'static [ParamSpec] {
        self.specs
    }

    /// The value of a declared parameter: as given, or the default.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<ParamValue> {
        self.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The value of a declared parameter, if it has type `T`.
    #[must_use]
    pub fn get<T: ParamType>(&self, name: &str) -> Option<T> {
        self.value(name).and_then(T::of)
    }

    /// Every parameter with its value, defaults included, in the order of declaration.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, ParamValue)> {
        self.specs.iter().zip(&self.given).map(|(spec, given)| (spec.name, given.unwrap_or(spec.default)))
    }

    /// The parameters that were given, with their values, in the order of declaration.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, ParamValue)> {
        self.specs.iter().zip(&self.given).filter_map(|(spec, given)| given.map(|value| (spec.name, value)))
    }

    /// The given parameters in text, which [`from_settings`](Self::from_settings) reads back as an equal set.
    #[must_use]
    pub fn settings(&self) -> Vec<(String, String)> {
        self.given().map(|(key, value)| (key.to_owned(), value.to_string())).collect()
    }

    /// Checks that the values are consistent.
    fn check(&self) -> Result<(), ParamError> {
        for spec in self.specs {
            let Some(above) = spec.above else { continue };
            let (Some(value), Some(other)) = (self.value(spec.name), self.value(above.other)) else {
                continue;
            };
            let fits = match (value, other) {
                (ParamValue::Integer(value), ParamValue::Integer(other)) => value > other,
                (ParamValue::Number(value), ParamValue::Number(other)) => value > other,
                (ParamValue::Seconds(value), ParamValue::Seconds(other)) => value > other,
                _ => true,
            };
            if !fits {
                let why = format!(
                    "`{} = {value}` must be above `{} = {other}` ({})",
                    spec.name, above.other, above.source
                );
                return Err(ParamError::Conflict { keys: [spec.name, above.other], why });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ParamSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.given()).finish()
    }
}

/// Equal when declarations and given values are equal. A default that the user wrote counts as given.
impl PartialEq for ParamSet {
    fn eq(&self, other: &Self) -> bool {
        let names = |set: &Self| set.specs.iter().map(|s| s.name);
        self.given == other.given && names(self).eq(names(other))
    }
}
