//! A chosen policy with its parameters.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::params::{GivenValue, Named, NotNamed, ParamSet};
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, BuildError, PolicySpec};
use crate::registry::find;

/// A policy with its parameters.
///
/// In text it is `lard` or `lard:t_low=10,t_high=80`, in a file that text or a table
/// `{ name = "lard", params = { t_low = 10 } }`.
#[derive(Debug, Clone)]
pub struct PolicyChoice {
    /// The policy.
    pub spec: &'static PolicySpec,
    /// Its parameters.
    pub params: ParamSet,
}

impl PolicyChoice {
    /// The policy with its defaults.
    #[must_use]
    pub fn new(spec: &'static PolicySpec) -> Self {
        Self { spec, params: ParamSet::defaults(spec.params) }
    }

    /// The policy with these values; its defaults for the rest.
    ///
    /// # Errors
    /// On a value that it does not take.
    pub fn with<'k>(
        spec: &'static PolicySpec,
        given: impl IntoIterator<Item = (&'k str, GivenValue)>,
    ) -> Result<Self, BuildError> {
        let params = ParamSet::read(spec.params, given).map_err(|error| spec.failed(error))?;
        Ok(Self { spec, params })
    }

    /// Builds the policy.
    ///
    /// # Errors
    /// When the policy refuses the parameters. No registered policy refuses a set made for it.
    pub fn build(&self, context: &BuildContext) -> Result<Box<dyn Policy>, BuildError> {
        self.spec.build(context, &self.params)
    }
}

/// Equal when policy and given parameters are equal.
impl PartialEq for PolicyChoice {
    fn eq(&self, other: &Self) -> bool {
        self.spec.name == other.spec.name && self.params == other.params
    }
}

/// A choice that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChoiceError {
    /// The text or table does not have the required form.
    Form(NotNamed),
    /// There is no such policy, or it does not take the parameters.
    Policy(BuildError),
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(error) => error.fmt(f),
            Self::Policy(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChoiceError {}

impl TryFrom<&Named> for PolicyChoice {
    type Error = BuildError;

    fn try_from(named: &Named) -> Result<Self, BuildError> {
        let given = named.params.iter().map(|(key, value)| (key.as_str(), value.clone()));
        Self::with(find(&named.name)?, given)
    }
}

impl FromStr for PolicyChoice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let named: Named = text.parse().map_err(ChoiceError::Form)?;
        Self::try_from(&named).map_err(ChoiceError::Policy)
    }
}

impl fmt::Display for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Named::with(self.spec.name, &self.params).fmt(f)
    }
}

impl Serialize for PolicyChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Named::with(self.spec.name, &self.params).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PolicyChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let named = Named::deserialize(deserializer)?;
        Self::try_from(&named).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_file_are_the_same_choice() {
        let text: PolicyChoice = "LARD/R:k_s=2.5,t_low=10".parse().unwrap();
        assert_eq!(text.to_string(), "lard_r:t_low=10,k_s=2.5");
        let json = r#"{"name": "lard_r", "params": {"t_low": 10, "k_s": 2.5}}"#;
        assert_eq!(serde_json::from_str::<PolicyChoice>(json).unwrap(), text);
        let written = serde_json::to_string(&text).unwrap();
        assert_eq!(serde_json::from_str::<PolicyChoice>(&written).unwrap(), text);
        assert_eq!(
            serde_json::to_string(&"wrr".parse::<PolicyChoice>().unwrap()).unwrap(),
            r#""weighted_round_robin""#
        );
        assert!(text.build(&BuildContext::default()).is_ok());
    }

    #[test]
    fn what_cannot_be_used_is_refused_when_it_is_read() {
        let error = |text: &str| text.parse::<PolicyChoice>().unwrap_err().to_string();
        assert_eq!(error("lrad"), "no policy `lrad`; did you mean `lard`?");
        assert_eq!(error("lard:t_lwo=1"), "policy `lard`: no parameter `t_lwo`; did you mean `t_low`?");
        assert!(error("lard:t_low=70").contains("`t_high = 65` must be above `t_low = 70`"));
        assert!(error("lard:t_low").contains("NAME:KEY=VALUE"));
    }
}
