//! The policies, one file each, and the registry that command line, configuration, documentation, metrics and
//! property tests read. A new policy is one file and one line in [`REGISTRY`].

use crate::params::{Settings, nearest};
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, BuildError, PolicySpec};

pub mod adaptload;
pub mod adaptload_queue;
pub mod bounded_load_hash;
pub mod join_shortest_queue;
pub mod join_shortest_weighted_queue;
pub mod lard;
pub mod lard_r;
pub mod lb_gc;
pub mod least_connections;
pub mod power_of_two;
pub mod random;
pub mod round_robin;
pub mod sita_e;
pub mod uri_hash;
pub mod weighted_least_connections;
pub mod weighted_round_robin;

/// Every policy, in the order in which help and documentation list them.
pub static REGISTRY: &[&PolicySpec] = &[
    &random::SPEC,
    &round_robin::SPEC,
    &weighted_round_robin::SPEC,
    &least_connections::SPEC,
    &weighted_least_connections::SPEC,
    &power_of_two::SPEC,
    &uri_hash::SPEC,
    &bounded_load_hash::SPEC,
    &lb_gc::SPEC,
    &lard::SPEC,
    &lard_r::SPEC,
    &join_shortest_queue::SPEC,
    &join_shortest_weighted_queue::SPEC,
    &sita_e::SPEC,
    &adaptload::SPEC,
    &adaptload_queue::SPEC,
];

/// The policy of this name or alias. Case, and `-` or `/` for `_`, do not matter.
///
/// # Errors
/// When there is none; the error names the nearest.
pub fn find(name: &str) -> Result<&'static PolicySpec, BuildError> {
    let wanted = name.to_lowercase().replace(['-', '/', ' '], "_");
    REGISTRY.iter().copied().find(|s| s.name == wanted || s.aliases.contains(&wanted.as_str())).ok_or_else(
        || {
            let known =
                REGISTRY.iter().flat_map(|s| std::iter::once(s.name).chain(s.aliases.iter().copied()));
            BuildError::UnknownPolicy {
                name: name.to_owned(),
                nearest: nearest(&wanted, known),
                known: REGISTRY.iter().map(|s| s.name).collect::<Vec<_>>().join(", "),
            }
        },
    )
}

/// Builds the policy of this name or alias from settings in text.
///
/// # Errors
/// On an unknown name, or a setting that cannot be used.
pub fn build(name: &str, context: &BuildContext, settings: &Settings) -> Result<Box<dyn Policy>, BuildError> {
    let spec = find(name)?;
    spec.build(context, &spec.read(settings)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ParamSet;

    #[test]
    fn names_and_aliases_are_unique() {
        let mut all: Vec<&str> =
            REGISTRY.iter().flat_map(|s| std::iter::once(s.name).chain(s.aliases.iter().copied())).collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn finds_by_alias_and_suggests_the_nearest() {
        assert_eq!(find("wrr").unwrap().name, "weighted_round_robin");
        assert_eq!(find("LARD/R").unwrap().name, "lard_r");
        assert_eq!(find("least-connections").unwrap().name, "least_connections");
        let error = find("lrad").err().unwrap().to_string();
        assert_eq!(error, "no policy `lrad`; did you mean `lard`?");
        assert!(find("banana").err().unwrap().to_string().contains("there are random, round_robin"));
    }

    #[test]
    fn every_default_is_accepted() {
        for spec in REGISTRY {
            let settings: Vec<_> =
                spec.params.iter().map(|p| (p.name.to_owned(), p.default.to_string())).collect();
            let params = spec.read(&settings).unwrap_or_else(|error| panic!("{error}"));
            assert!(params.iter().eq(params.given()), "{}", spec.name);
            assert!(params.iter().eq(ParamSet::defaults(spec.params).iter()), "{}", spec.name);
            let built = spec.build(&BuildContext::default(), &params);
            assert!(built.is_ok(), "{}: {:?}", spec.name, built.err());
        }
    }
}
