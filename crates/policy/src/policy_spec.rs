//! What the registry knows of a policy, and what a policy is built from.

use std::fmt;
use std::sync::Arc;

use plimsoll_cache::CacheSpec;

use crate::estimator::ClassCost;
use crate::load_use::LoadUse;
use crate::params::{ParamError, ParamSet, ParamSpec, Settings};
use crate::policy::{Capabilities, Policy};

/// What a policy may know when it is built.
#[derive(Debug, Clone)]
pub struct BuildContext {
    /// Seed of the run; each policy derives its own stream.
    pub seed: u64,
    /// Seed of hash tables, a secret in a live system. No decision depends on it.
    pub table_seed: u64,
    /// Memory cache of one back-end in bytes, for policies that model the back-ends' caches.
    pub cache_bytes: u64,
    /// Replacement policy of the back-ends' caches.
    pub cache: &'static CacheSpec,
    /// Size in bytes above which back-ends never cache an object.
    pub cache_object_limit_bytes: Option<u64>,
    /// What the classes of dynamic requests cost, by class from 1 on; empty where that is not known.
    pub class_costs: Arc<[ClassCost]>,
    /// Sizes in bytes of the static requests to come and how many there are of each, where that is known beforehand.
    pub workload: Option<Arc<[(u64, u64)]>>,
}

impl Default for BuildContext {
    /// Seed 1, and the cache of LARD's simulations: 32 MiB, Greedy-Dual-Size.
    fn default() -> Self {
        Self {
            seed: 1,
            table_seed: 1,
            cache_bytes: 32 << 20,
            cache: &plimsoll_cache::caches::gds::SPEC,
            cache_object_limit_bytes: None,
            class_costs: Arc::new([]),
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
    /// Which load information it can use.
    pub load_use: LoadUse,
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
        /// Every name, separated by commas.
        known: String,
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
            Self::UnknownPolicy { name, nearest: Some(near), .. } => {
                write!(f, "no policy `{name}`; did you mean `{near}`?")
            }
            Self::UnknownPolicy { name, nearest: None, known } => {
                write!(f, "no policy `{name}`; there are {known}")
            }
            Self::Param { policy, error } => write!(f, "policy `{policy}`: {error}"),
        }
    }
}

impl std::error::Error for BuildError {}
