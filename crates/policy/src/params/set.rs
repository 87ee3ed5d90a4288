//! The parameters of one policy or model, each with a value.

use std::fmt;

use super::spec::{ParamError, ParamSpec};
use super::value::{GivenValue, ParamType, ParamValue};

/// Settings in text: key and value, in order; a later one wins.
pub type Settings = [(String, String)];

/// Parameters in the order of their declaration, each with the value that was given, or else its default.
///
/// Every value is of its parameter's kind and within its range, and all of them go together: what cannot be used does not
/// become a set.
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

    /// These values over the defaults; of several for one key the last holds.
    ///
    /// # Errors
    /// On an unknown key, a value that is not of its parameter's kind or out of range, and on values that do not go together.
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

    /// Settings in text over the defaults.
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

    /// The value of the parameter of this name, if it is declared: as given, or the default.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<ParamValue> {
        self.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The same as the type `T`, if it is of that type.
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

    /// The parameters that were given, in text: what [`from_settings`](Self::from_settings) reads back as the same set.
    #[must_use]
    pub fn settings(&self) -> Vec<(String, String)> {
        self.given().map(|(key, value)| (key.to_owned(), value.to_string())).collect()
    }

    /// Whether the values go together.
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

/// Of the same declarations, and the same is given. A default that is written out is given.
impl PartialEq for ParamSet {
    fn eq(&self, other: &Self) -> bool {
        let names = |set: &Self| set.specs.iter().map(|s| s.name);
        self.given == other.given && names(self).eq(names(other))
    }
}
