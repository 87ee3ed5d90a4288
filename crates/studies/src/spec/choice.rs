//! A scenario's choice of policy and model, with parameters.

use plimsoll_policy::params::{Named, ParamSet};
use plimsoll_sim::{LoadInformationSpec, ModelSpec};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::scenario::{
    ScenarioError, Strategy, find_load_information, find_model, load_params, model_params,
};

/// A strategy with the parameters of its policy: in text `lard` or `lard:t_low=10,t_high=80`.
#[derive(Debug, Clone)]
pub struct StrategyChoice {
    /// The strategy.
    pub strategy: Strategy,
    /// Parameters of its policy.
    pub params: ParamSet,
}

impl StrategyChoice {
    /// The strategy with its policy's defaults.
    #[must_use]
    pub fn new(strategy: Strategy) -> Self {
        Self { strategy, params: ParamSet::defaults(strategy.policy.params) }
    }

    /// Parses several, separated by commas: `wrr,lard:t_low=10,t_high=80,lard_r` is three.
    ///
    /// # Errors
    /// When one of them does not exist or does not take its parameters.
    pub fn list(text: &str) -> Result<Vec<Self>, ScenarioError> {
        named_list(text)?.iter().map(Self::try_from).collect()
    }
}

/// Several names with parameters, separated by commas as parameters are.
fn named_list(text: &str) -> Result<Vec<Named>, ScenarioError> {
    let mut texts: Vec<String> = Vec::new();
    for part in text.split(',') {
        let continues = part.split(':').next().is_some_and(|start| start.contains('='));
        match texts.last_mut().filter(|before| continues && before.contains(':')) {
            Some(before) => *before += &format!(",{part}"),
            None => texts.push(part.to_owned()),
        }
    }
    texts.iter().map(|text| text.parse().map_err(|e| ScenarioError::Setting(format!("{e}")))).collect()
}

impl TryFrom<&Named> for StrategyChoice {
    type Error = ScenarioError;

    fn try_from(named: &Named) -> Result<Self, ScenarioError> {
        let strategy = Strategy::find(&named.name)?;
        let given = named.params.iter().map(|(key, value)| (key.as_str(), value.clone()));
        let params = ParamSet::read(strategy.policy.params, given);
        let params = params.map_err(|error| strategy.policy.failed(error))?;
        Ok(Self { strategy, params })
    }
}

/// Equal when strategy and given parameters are equal.
impl PartialEq for StrategyChoice {
    fn eq(&self, other: &Self) -> bool {
        self.strategy.name == other.strategy.name && self.params == other.params
    }
}

impl Serialize for StrategyChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Named::with(self.strategy.name, &self.params).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StrategyChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(&Named::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// A back-end model with its parameters: in text `lard` or `lard:disks=2`.
#[derive(Debug, Clone)]
pub struct ModelChoice {
    /// The model.
    pub spec: &'static ModelSpec,
    /// Its parameters.
    pub params: ParamSet,
}

impl ModelChoice {
    /// The model with its defaults.
    #[must_use]
    pub fn new(spec: &'static ModelSpec) -> Self {
        Self { spec, params: ParamSet::defaults(spec.params) }
    }

    /// Parses a model.
    ///
    /// # Errors
    /// When it does not exist or does not take its parameters.
    pub fn read(text: &str) -> Result<Self, ScenarioError> {
        let named: Named = text.parse().map_err(|e| ScenarioError::Setting(format!("{e}")))?;
        Self::try_from(&named)
    }
}

impl TryFrom<&Named> for ModelChoice {
    type Error = ScenarioError;

    fn try_from(named: &Named) -> Result<Self, ScenarioError> {
        let spec = find_model(&named.name)?;
        let given = named.params.iter().map(|(key, value)| (key.as_str(), value.clone()));
        Ok(Self { spec, params: model_params(spec, given)? })
    }
}

/// Equal when model and given parameters are equal.
impl PartialEq for ModelChoice {
    fn eq(&self, other: &Self) -> bool {
        self.spec.name == other.spec.name && self.params == other.params
    }
}

impl Serialize for ModelChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Named::with(self.spec.name, &self.params).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ModelChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(&Named::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// A kind of load information with its parameters: in text `poll` or `poll:size=3,discard_after_s=0.01`.
#[derive(Debug, Clone)]
pub struct LoadInformationChoice {
    /// The kind.
    pub spec: &'static LoadInformationSpec,
    /// Its parameters.
    pub params: ParamSet,
}

impl LoadInformationChoice {
    /// The kind with its defaults.
    #[must_use]
    pub fn new(spec: &'static LoadInformationSpec) -> Self {
        Self { spec, params: ParamSet::defaults(spec.params) }
    }

    /// Parses several, separated by commas; each kind once.
    ///
    /// # Errors
    /// When one of them does not exist, is there twice, or does not take its parameters.
    pub fn list(text: &str) -> Result<Vec<Self>, ScenarioError> {
        let all = named_list(text)?.iter().map(Self::try_from).collect::<Result<Vec<_>, _>>()?;
        for (place, choice) in all.iter().enumerate() {
            if all[..place].iter().any(|other| other.spec.name == choice.spec.name) {
                return Err(ScenarioError::Setting(format!(
                    "`{}` is there twice, which results could not tell apart; make two runs of it",
                    choice.spec.name
                )));
            }
        }
        Ok(all)
    }
}

impl TryFrom<&Named> for LoadInformationChoice {
    type Error = ScenarioError;

    fn try_from(named: &Named) -> Result<Self, ScenarioError> {
        let spec = find_load_information(&named.name)?;
        let given = named.params.iter().map(|(key, value)| (key.as_str(), value.clone()));
        Ok(Self { spec, params: load_params(spec, given)? })
    }
}

/// Equal when kind and given parameters are equal.
impl PartialEq for LoadInformationChoice {
    fn eq(&self, other: &Self) -> bool {
        self.spec.name == other.spec.name && self.params == other.params
    }
}

impl Serialize for LoadInformationChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Named::with(self.spec.name, &self.params))
    }
}
