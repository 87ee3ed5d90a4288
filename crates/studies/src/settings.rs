//! Settings as users write them, `policy.key=value`, `model.key=value` or `key=value`, and who takes them.

use plimsoll_policy::params::{ParamSpec, nearest};

use crate::scenario::{Scenario, ScenarioError};

/// Settings for one owner: those with its name before the dot or without one, as far as it declares the key. A policy
/// and a model may share a name (`lard`), so what the one does not declare may still be the other's.
pub(crate) fn settings_of(
    settings: &[(String, String)],
    owner: &[&str],
    keys: &[ParamSpec],
) -> Vec<(String, String)> {
    settings
        .iter()
        .filter_map(|(key, value)| match key.split_once('.') {
            Some((prefix, key)) if owner.contains(&prefix) => Some((key, value)),
            None => Some((key.as_str(), value)),
            Some(_) => None,
        })
        .filter(|(key, _)| keys.iter().any(|spec| spec.name == *key))
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect()
}

/// Refuses settings that no policy and no model of these scenarios would take, so that a slip is not ignored.
///
/// # Errors
/// Names the setting and what is nearest.
pub(crate) fn check_settings(scenarios: &[Scenario]) -> Result<(), ScenarioError> {
    for (key, _) in scenarios.iter().flat_map(|s| &s.settings) {
        let taken = |s: &Scenario| {
            let model = s.effective_model();
            let (prefix, key) = key.split_once('.').map_or((None, key.as_str()), |(p, k)| (Some(p), k));
            let policy = s.strategy.policy;
            let of_policy = prefix.is_none_or(|p| p == policy.name || policy.aliases.contains(&p));
            let of_model = prefix.is_none_or(|p| p == model.name || p == s.model.name);
            (of_policy && policy.params.iter().any(|p| p.name == key))
                || (of_model && model.params.iter().any(|p| p.name == key))
        };
        if !scenarios.iter().any(taken) {
            let known: Vec<String> = scenarios.iter().flat_map(known_settings).collect();
            let near = nearest(key, known.iter().map(String::as_str));
            let hint = near.map_or_else(
                || "see `plimsoll policies` and `plimsoll models` for what can be set".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(ScenarioError::Setting(format!(
                "no policy or model of this run takes `{key}`; {hint}"
            )));
        }
    }
    Ok(())
}

fn known_settings(s: &Scenario) -> Vec<String> {
    let (policy, model) = (s.strategy.policy, s.effective_model());
    let of = |owner: &'static str, params: &'static [ParamSpec]| {
        params.iter().flat_map(move |p| [format!("{owner}.{}", p.name), p.name.to_owned()])
    };
    of(policy.name, policy.params).chain(of(model.name, model.params)).collect()
}
