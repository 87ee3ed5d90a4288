//! Settings as users write them, `policy.key=value`, `model.key=value` or `key=value`, and who takes them.

use plimsoll_policy::params::{GivenValue, ParamSpec};

/// A policy or a model, to which settings are given.
pub(crate) struct Owner {
    /// Names it goes by, its own first.
    pub(crate) names: Vec<&'static str>,
    /// What it declares.
    pub(crate) specs: &'static [ParamSpec],
}

impl Owner {
    /// The name of the parameter that a setting with this key sets here, if it does: the key has the owner's name before
    /// the dot or none, and the owner declares it. A policy and a model may share a name (`lard`), so what the one does
    /// not declare may still be the other's.
    pub(crate) fn takes(&self, key: &str) -> Option<&'static str> {
        let name = match key.split_once('.') {
            Some((owner, name)) if self.names.contains(&owner) => name,
            Some(_) => return None,
            None => key,
        };
        self.specs.iter().map(|spec| spec.name).find(|known| *known == name)
    }

    /// The keys of all that can be set here.
    pub(crate) fn keys(&self) -> impl Iterator<Item = String> {
        let name = self.names.first().copied().unwrap_or_default();
        self.specs.iter().flat_map(move |p| [format!("{name}.{}", p.name), p.name.to_owned()])
    }
}

/// Settings for one owner.
pub(crate) fn settings_of(
    settings: &[(String, GivenValue)],
    owner: &Owner,
) -> impl Iterator<Item = (&'static str, GivenValue)> {
    settings.iter().filter_map(|(key, value)| Some((owner.takes(key)?, value.clone())))
}
