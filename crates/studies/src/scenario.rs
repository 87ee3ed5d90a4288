//! A scenario, the definition of one run: policy, model, number of back-ends and everything else that
//! determines its result.

use plimsoll_cache::CacheSpec;
use plimsoll_policy::params::{GivenValue, ParamError, ParamSet, ParamSpec, nearest};
use plimsoll_policy::{BuildError, PolicySpec, REGISTRY, find, registered};
use plimsoll_report::SeriesLook;
use plimsoll_sim::hardware::{HardwareSpec, PAPER};
use plimsoll_sim::models::{MODELS, lard};
use plimsoll_sim::{Arrivals, Fault, ModelSpec, SourceError};
use plimsoll_trace::TraceError;

/// A strategy, as studies compare them: a registered policy, or the paper's WRR/GMS, which is WRR on
/// back-ends with a global memory.
#[derive(Clone, Copy)]
pub struct Strategy {
    /// Name in results.
    pub name: &'static str,
    /// The policy.
    pub policy: &'static PolicySpec,
    /// Whether `lard_gms` replaces the model `lard`.
    pub global_memory: bool,
}

impl std::fmt::Debug for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// WRR on back-ends with a global memory.
const GMS: &str = "wrr_gms";

impl Strategy {
    /// The strategy of this name or alias.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(name: &str) -> Result<Self, BuildError> {
        if name.to_lowercase().replace(['/', '-'], "_") == GMS {
            let policy = find("weighted_round_robin")?;
            return Ok(Self { name: GMS, policy, global_memory: true });
        }
        find(name).map(|policy| Self { name: policy.name, policy, global_memory: false }).map_err(|error| {
            match error {
                BuildError::UnknownPolicy { name, nearest: None, known } => {
                    let nearest = nearest(&name, [GMS]);
                    BuildError::UnknownPolicy { name, nearest: nearest.map(|_| GMS), known }
                }
                error => error,
            }
        })
    }

    /// The model to run when `model` is asked for: `lard_gms` for WRR/GMS on `lard`.
    pub(crate) fn model_on(&self, model: &'static ModelSpec) -> &'static ModelSpec {
        if self.global_memory && model.name == lard::SPEC.name { &lard::GLOBAL_MEMORY_SPEC } else { model }
    }
}

/// The names of all strategies. Their places in this order give their colours and markers in every report: first the policies of
/// this project and WRR/GMS, then those of other crates.
#[must_use]
pub fn strategy_names() -> Vec<String> {
    let own = registered().skip(REGISTRY.len()).map(|spec| spec.name);
    REGISTRY.iter().map(|spec| spec.name).chain([GMS]).chain(own).map(str::to_owned).collect()
}

/// The look of a strategy in plots, by its name in results.
pub(crate) fn strategy_look(name: &str) -> SeriesLook {
    let names = strategy_names();
    SeriesLook::of_place(names.iter().position(|known| known == name).unwrap_or(names.len()))
}

/// The model of this name.
///
/// # Errors
/// When there is none; the message names the nearest.
pub fn find_model(name: &str) -> Result<&'static ModelSpec, ScenarioError> {
    MODELS.iter().copied().find(|m| m.name == name).ok_or_else(|| {
        let known = MODELS.iter().map(|m| m.name);
        ScenarioError::UnknownModel { name: name.to_owned(), nearest: nearest(name, known) }
    })
}

/// Requests that the front-end lets in at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// LARD's S from the policy's `t_low` and `t_high` (25 and 65 where it has none).
    Lard,
    /// This many.
    Fixed(u64),
    /// No limit.
    Unlimited,
}

/// See the module's documentation.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Policy.
    pub strategy: Strategy,
    /// Parameters of the policy.
    pub policy_params: ParamSet,
    /// Back-end model.
    pub model: &'static ModelSpec,
    /// Parameters of the effective model, which differs for WRR/GMS.
    pub model_params: ParamSet,
    /// What the parameters' values come from where nothing else was given.
    pub hardware: &'static HardwareSpec,
    /// Number of back-ends, at least 1.
    pub backends: usize,
    /// Seed of every random choice.
    pub seed: u64,
    /// How requests arrive.
    pub arrivals: Arrivals,
    /// Admission limit.
    pub admission: Admission,
    /// Replacement policy of the back-ends' caches.
    pub cache: &'static CacheSpec,
    /// Memory cache of one back-end in bytes.
    pub cache_bytes: u64,
    /// Files above this size in bytes are never cached.
    pub cache_object_limit_bytes: Option<u64>,
    /// Share of the requests, 0 to 1, that are candidates for becoming dynamic; those below 100 KB do
    /// (`AdaptLoad`, section 7.1).
    pub dynamic_share: f64,
    /// Faults of back-ends.
    pub faults: Vec<Fault>,
    /// Requests answered before the measurement starts.
    pub warmup: u64,
}

impl Scenario {
    /// The LARD study's setting: saturated, hardware of 1998, 32 MiB of Greedy-Dual-Size cache.
    #[must_use]
    pub fn lard(strategy: Strategy, backends: usize, seed: u64) -> Self {
        Self {
            strategy,
            policy_params: ParamSet::defaults(strategy.policy.params),
            model: &lard::SPEC,
            model_params: ParamSet::defaults(strategy.model_on(&lard::SPEC).params),
            hardware: &PAPER,
            backends,
            seed,
            arrivals: Arrivals::Closed,
            admission: Admission::Lard,
            cache: &plimsoll_cache::caches::gds::SPEC,
            cache_bytes: 32 << 20,
            cache_object_limit_bytes: None,
            dynamic_share: 0.0,
            faults: Vec::new(),
            warmup: 0,
        }
    }

    /// The effective model: `lard_gms` for WRR/GMS.
    pub(crate) fn effective_model(&self) -> &'static ModelSpec {
        self.strategy.model_on(self.model)
    }

    /// The hardware's values for these parameters of a model or policy.
    pub(crate) fn hardware_of(
        &self,
        owner: &'static str,
        params: &'static [ParamSpec],
    ) -> impl Iterator<Item = (&'static str, GivenValue)> + use<> {
        self.hardware.costs_of(owner, params).map(|cost| (cost.key, cost.value.into()))
    }

    /// Sets the policy's parameters to these values, and defaults for the rest.
    ///
    /// # Errors
    /// When it does not take them.
    pub fn set_policy<'k>(
        &mut self,
        given: impl IntoIterator<Item = (&'k str, GivenValue)>,
    ) -> Result<(), ScenarioError> {
        let policy = self.strategy.policy;
        self.policy_params = ParamSet::read(policy.params, given).map_err(|error| policy.failed(error))?;
        Ok(())
    }

    /// Sets the model's parameters to these values, and defaults for the rest.
    ///
    /// # Errors
    /// When it does not take them.
    pub fn set_model<'k>(
        &mut self,
        given: impl IntoIterator<Item = (&'k str, GivenValue)>,
    ) -> Result<(), ScenarioError> {
        self.model_params = model_params(self.effective_model(), given)?;
        Ok(())
    }
}

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// No such model.
    #[error("no model `{name}`; {}", suggestion(*nearest))]
    UnknownModel {
        /// As written.
        name: String,
        /// The nearest known name, when one is near.
        nearest: Option<&'static str>,
    },
    /// The policy cannot be built.
    #[error(transparent)]
    Policy(#[from] BuildError),
    /// The model's parameters are wrong.
    #[error("model `{model}`: {error}")]
    Model {
        /// The model.
        model: &'static str,
        /// What is wrong.
        error: ParamError,
    },
    /// A setting that neither policy nor model has.
    #[error("{0}")]
    Setting(String),
    /// A speed although requests do not arrive at the times of the trace.
    #[error("--speed goes with --arrivals trace")]
    Speed,
    /// No back-ends, or too many.
    #[error("a cluster has 1 to 65,534 back-ends, not {0}")]
    Backends(usize),
    /// A fault names a back-end that does not exist.
    #[error("a fault names back-end {backend}, but there are only {backends} (numbered from 0)")]
    Fault {
        /// As named.
        backend: u16,
        /// How many there are.
        backends: usize,
    },
    /// Dynamic share outside [0, 1].
    #[error("the share of dynamic requests is from 0 to 1, not {0}")]
    DynamicShare(f64),
    /// Global memory on a model without memory.
    #[error("`wrr_gms` needs back-ends with a memory cache: the model `lard`, not `{0}`")]
    NoMemory(&'static str),
    /// Simulated time ran over.
    #[error(
        "simulated time went beyond 584 years: give a higher arrival rate or `--speed`, or shorter service times"
    )]
    TimeOverflow,
    /// Nothing was measured.
    #[error("the trace ended within the warm-up of {0} requests, so there is nothing to report; give fewer")]
    OnlyWarmUp(u64),
    /// The trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Another source of requests failed.
    #[error(transparent)]
    Source(SourceError),
    /// Stopped by the user.
    #[error("stopped")]
    Stopped,
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(
        || format!("there are {}", MODELS.iter().map(|m| m.name).collect::<Vec<_>>().join(", ")),
        |name| format!("did you mean `{name}`?"),
    )
}

/// Refuses scenarios that cannot be run, before a long trace is read: wrong numbers of back-ends, faults of
/// back-ends that do not exist, global memory on models without memory.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(scenarios: &[Scenario]) -> Result<(), ScenarioError> {
    for scenario in scenarios {
        check_backends(scenario)?;
        if !(0.0..=1.0).contains(&scenario.dynamic_share) {
            return Err(ScenarioError::DynamicShare(scenario.dynamic_share));
        }
        if scenario.strategy.global_memory && scenario.effective_model().name != lard::GLOBAL_MEMORY_SPEC.name
        {
            return Err(ScenarioError::NoMemory(scenario.model.name));
        }
    }
    Ok(())
}

pub(crate) fn check_backends(s: &Scenario) -> Result<(), ScenarioError> {
    if s.backends == 0 || s.backends >= usize::from(u16::MAX) {
        return Err(ScenarioError::Backends(s.backends));
    }
    match s.faults.iter().find(|f| f.backend.index() >= s.backends) {
        Some(fault) => Err(ScenarioError::Fault { backend: fault.backend.0, backends: s.backends }),
        None => Ok(()),
    }
}

/// The parameters of a model with these values, and defaults for the rest.
pub(crate) fn model_params<'k>(
    spec: &'static ModelSpec,
    given: impl IntoIterator<Item = (&'k str, GivenValue)>,
) -> Result<ParamSet, ScenarioError> {
    ParamSet::read(spec.params, given).map_err(|error| ScenarioError::Model { model: spec.name, error })
}
