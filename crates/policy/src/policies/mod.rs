//! The policies, one file each, and the registry that command line, configuration, documentation, metrics and
//! property tests read. A new policy is one file and one line in [`REGISTRY`].

use std::fmt;
use std::sync::Arc;

use plimsoll_cache::CacheSpec;

use crate::capability::Capabilities;
use crate::params::{ParamError, ParamSet, ParamSpec, Settings, nearest};
use crate::policy::Policy;

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

/// What a policy may know when it is built.
#[derive(Debug, Clone)]
pub struct BuildContext {
    /// Seed of the run; each policy derives its own stream.
    pub seed: u64,
    /// Memory cache of one back-end in bytes, for policies that model the back-ends' caches.
    pub cache_bytes: u64,
    /// Replacement policy of the back-ends' caches.
    pub cache: &'static CacheSpec,
    /// Size in bytes above which back-ends never cache an object.
    pub cache_object_limit_bytes: Option<u64>,
    /// Sizes in bytes of the static requests to come and how many there are of each, where that is known beforehand.
    pub workload: Option<Arc<[(u64, u64)]>>,
}

impl Default for BuildContext {
    /// Seed 1, and the cache of LARD's simulations: 32 MiB, Greedy-Dual-Size.
    fn default() -> Self {
        Self {
            seed: 1,
            cache_bytes: 32 << 20,
            cache: &plimsoll_cache::caches::gds::SPEC,
            cache_object_limit_bytes: None,
            workload: None,
        }
    }
}

/// A new policy, or why it refuses its parameters.
pub type Built = Result<Box<dyn Policy>, ParamError>;

/// One policy as registered.
pub struct PolicySpec {
    /// Its name: also of its file, in configuration, and as metric label.
    pub name: &'static str,
    /// Other names under which users know it.
    pub aliases: &'static [&'static str],
    /// One line for lists.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its capabilities; the policy that it builds returns the same static.
    pub capabilities: &'static Capabilities,
    /// Whether weights of back-ends shift load.
    pub weighted: bool,
    /// Declared parameters.
    pub params: &'static [ParamSpec],
    /// Builds it with a set of those parameters.
    pub build: fn(&BuildContext, &ParamSet) -> Built,
}

impl PolicySpec {
    /// Reads its parameters from settings in text; defaults for the rest.
    ///
    /// # Errors
    /// On a setting that cannot be used.
    pub fn read(&self, settings: &Settings) -> Result<ParamSet, BuildError> {
        ParamSet::from_settings(self.params, settings).map_err(|error| self.failed(error))
    }

    /// Builds the policy with a set of its parameters.
    ///
    /// # Errors
    /// When the policy refuses them.
    pub fn build(&self, context: &BuildContext, params: &ParamSet) -> Result<Box<dyn Policy>, BuildError> {
        (self.build)(context, params).map_err(|error| self.failed(error))
    }

    /// Attributes a parameter error to this policy.
    #[must_use]
    pub fn failed(&self, error: ParamError) -> BuildError {
        BuildError::Param { policy: self.name, error }
    }
}

impl fmt::Debug for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicySpec").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A policy that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildError {
    /// No such policy.
    UnknownPolicy {
        /// As written.
        name: String,
        /// The nearest known name, when one is near.
        nearest: Option<&'static str>,
    },
    /// A parameter is wrong.
    Param {
        /// The policy.
        policy: &'static str,
        /// What is wrong.
        error: ParamError,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownPolicy { name, nearest: Some(near) } => {
                write!(f, "no policy `{name}`; did you mean `{near}`?")
            }
            Self::UnknownPolicy { name, nearest: None } => {
                let names: Vec<_> = REGISTRY.iter().map(|s| s.name).collect();
                write!(f, "no policy `{name}`; there are {}", names.join(", "))
            }
            Self::Param { policy, error } => write!(f, "policy `{policy}`: {error}"),
        }
    }
}

impl std::error::Error for BuildError {}

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
            BuildError::UnknownPolicy { name: name.to_owned(), nearest: nearest(&wanted, known) }
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
