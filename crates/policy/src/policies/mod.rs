//! The policies, one file each, and the registry that command line, configuration, documentation, metrics and
//! property tests read. A new policy is one file and one line in [`REGISTRY`].

use crate::policy_spec::PolicySpec;

pub mod adaptload;
pub mod adaptload_queue;
pub mod bounded_load_hash;
pub mod broadcast_least_loaded;
pub mod csld;
pub mod join_shortest_queue;
pub mod join_shortest_weighted_queue;
pub mod lard;
pub mod lard_auto;
pub mod lard_r;
pub mod lb_gc;
pub mod least_connections;
pub mod least_time;
pub mod maglev;
pub mod peak_ewma;
pub mod power_of_two;
pub mod prequal;
pub mod random;
pub mod random_polling;
pub mod round_robin;
pub mod sita_e;
pub mod sticky;
pub mod uri_hash;
pub mod weighted_least_connections;
pub mod weighted_round_robin;
pub mod weighted_round_robin_host;

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
    &lard_auto::SPEC,
    &join_shortest_queue::SPEC,
    &join_shortest_weighted_queue::SPEC,
    &sita_e::SPEC,
    &adaptload::SPEC,
    &adaptload_queue::SPEC,
    &random_polling::SPEC,
    &broadcast_least_loaded::SPEC,
    &prequal::SPEC,
    &peak_ewma::SPEC,
    &least_time::SPEC,
    &maglev::SPEC,
    &csld::SPEC,
    &weighted_round_robin_host::SPEC,
    &sticky::SPEC,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ParamSet;
    use crate::policy_spec::BuildContext;

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
