//! Settings as users write them (`policy.key=value`, `model.key=value` or `key=value`), and which policy or
//! model each belongs to.

use plimsoll_policy::params::{GivenValue, ParamSpec};

/// A policy or a model that has parameters.
pub(crate) struct ParamOwner {
    /// Its name, then its aliases.
    pub(crate) names: Vec<&'static str>,
    /// Its declared parameters.
    pub(crate) specs: &'static [ParamSpec],
}

impl ParamOwner {
    /// The parameter that a setting with this key sets here, if any: the key has the owner's name before the
    /// dot, or no dot, and the owner declares the rest. A policy and a model may share a name (`lard`), so a
    /// key that one does not declare may belong to the other.
    pub(crate) fn takes(&self, key: &str) -> Option<&'static str> {
        let name = match key.split_once('.') {
            Some((owner, name)) if self.names.contains(&owner) => name,
            Some(_) => return None,
            None => key,
        };
        self.specs.iter().map(|spec| spec.name).find(|known| *known == name)
    }

    /// The keys of all its parameters.
    pub(crate) fn keys(&self) -> impl Iterator<Item = String> {
        let name = self.names.first().copied().unwrap_or_default();
        self.specs.iter().flat_map(move |p| [format!("{name}.{}", p.name), p.name.to_owned()])
    }
}

/// Settings for one owner.
pub(crate) fn settings_of(
    settings: &[(String, GivenValue)],
    owner: &ParamOwner,
) -> impl Iterator<Item = (&'static str, GivenValue)> {
    settings.iter().filter_map(|(key, value)| Some((owner.takes(key)?, value.clone())))
}
