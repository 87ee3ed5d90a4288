//! One run: policy, model, number of back-ends and everything else that decides its result.

use std::sync::Arc;

use plimsoll_cache::CacheSpec;
use plimsoll_policy::params::{ParamError, ParamSet, nearest};
use plimsoll_policy::policies::sita_e;
use plimsoll_policy::{
    AdmissionLimit, BuildContext, BuildError, Cluster, FrontEnd, PolicySpec, Thresholds, Time, find,
};
use plimsoll_report::Run;
use plimsoll_sim::models::{LARD, LARD_GMS, MODELS, ModelSpec};
use plimsoll_sim::{Arrivals, Config, Fault, Observer, Outcome, Recording};
use plimsoll_trace::TraceError;

use crate::run_model::{model_params, run_model};
use crate::run_result::{common_params, params_json, to_run};
use crate::settings::check_settings;
use crate::settings::settings_of;
use crate::workload::Workload;

/// A policy as studies name it: one of the registry, or the paper's WRR/GMS, which is WRR on back-ends with a global
/// memory.
#[derive(Clone, Copy)]
pub struct Strategy {
    /// Name in results.
    pub name: &'static str,
    /// The policy.
    pub policy: &'static PolicySpec,
    /// Whether the `lard` model is to become `lard_gms`.
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
                BuildError::UnknownPolicy { name, nearest: None } => {
                    let nearest = nearest(&name, [GMS]);
                    BuildError::UnknownPolicy { name, nearest: nearest.map(|_| GMS) }
                }
                error => error,
            }
        })
    }
}

/// The LARD paper's name of a strategy; its own where the paper has none.
#[must_use]
pub fn paper_name(strategy: &str) -> &str {
    match strategy {
        "weighted_round_robin" => "WRR",
        "uri_hash" => "LB",
        "lb_gc" => "LB/GC",
        "lard" => "LARD",
        "lard_r" => "LARD/R",
        "wrr_gms" => "WRR/GMS",
        other => other,
    }
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
    /// As many as come.
    Unlimited,
}

/// See the module's documentation.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Policy.
    pub strategy: Strategy,
    /// Settings `policy.key` or `model.key`, or just `key`, which goes to whoever has it.
    pub settings: Vec<(String, String)>,
    /// Back-end model.
    pub model: &'static ModelSpec,
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
    /// Share of the requests that are candidates for being dynamic, 0 to 1; those below 100 KB become it (`AdaptLoad`,
    /// section 7.1).
    pub dynamic_share: f64,
    /// What happens to back-ends.
    pub faults: Vec<Fault>,
    /// Requests answered before the measurement starts.
    pub warmup: u64,
}

impl Scenario {
    /// The LARD study's setting: saturated, 32 MiB of Greedy-Dual-Size cache, one disk.
    #[must_use]
    pub fn lard(strategy: Strategy, backends: usize, seed: u64) -> Self {
        Self {
            strategy,
            settings: Vec::new(),
            model: &LARD,
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

    /// The model that runs: `lard_gms` for WRR/GMS.
    pub(crate) fn effective_model(&self) -> &'static ModelSpec {
        if self.strategy.global_memory && self.model.name == LARD.name { &LARD_GMS } else { self.model }
    }
}

/// A scenario that cannot be run.
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
    /// A setting that nobody takes.
    #[error("{0}")]
    Setting(String),
    /// No back-ends, or too many.
    #[error("a cluster has 1 to 65,534 back-ends, not {0}")]
    Backends(usize),
    /// A fault names a back-end that is not there.
    #[error("a fault names back-end {backend}, but there are only {backends} (numbered from 0)")]
    Fault {
        /// As named.
        backend: u16,
        /// How many there are.
        backends: usize,
    },
    /// A share of dynamic requests that is none.
    #[error("the share of dynamic requests is from 0 to 1, not {0}")]
    DynamicShare(f64),
    /// Global memory asked for on a model that has no memory.
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

/// Refuses what cannot be run, before a long trace is read: settings that nobody takes or that are out of range,
/// numbers of back-ends, faults of back-ends that are not there.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(scenarios: &[Scenario]) -> Result<(), ScenarioError> {
    check_settings(scenarios)?;
    for scenario in scenarios {
        check_backends(scenario)?;
        if !(0.0..=1.0).contains(&scenario.dynamic_share) {
            return Err(ScenarioError::DynamicShare(scenario.dynamic_share));
        }
        if scenario.strategy.global_memory && scenario.effective_model().name != LARD_GMS.name {
            return Err(ScenarioError::NoMemory(scenario.model.name));
        }
        policy_params(scenario)?;
        model_params(scenario)?;
    }
    Ok(())
}

fn check_backends(s: &Scenario) -> Result<(), ScenarioError> {
    if s.backends == 0 || s.backends >= usize::from(u16::MAX) {
        return Err(ScenarioError::Backends(s.backends));
    }
    match s.faults.iter().find(|f| f.backend.index() >= s.backends) {
        Some(fault) => Err(ScenarioError::Fault { backend: fault.backend.0, backends: s.backends }),
        None => Ok(()),
    }
}

/// See [`BuildContext::workload`].
type StaticSizes = Arc<[(u64, u64)]>;

fn policy_params(s: &Scenario) -> Result<ParamSet, BuildError> {
    let spec = s.strategy.policy;
    let mut owners = vec![spec.name];
    owners.extend(spec.aliases);
    spec.read(&settings_of(&s.settings, &owners, spec.params))
}

fn build_context(s: &Scenario, static_sizes: Option<StaticSizes>) -> BuildContext {
    BuildContext {
        seed: s.seed,
        cache_bytes: s.cache_bytes,
        cache: s.cache,
        cache_object_limit_bytes: s.cache_object_limit_bytes,
        workload: static_sizes,
    }
}

/// What the policy is told of the requests to come: only the off-line one needs it, and for that the trace is read once
/// more.
fn known_beforehand(s: &Scenario, workload: &Workload) -> Result<Option<StaticSizes>, ScenarioError> {
    let needed = s.strategy.policy.name == sita_e::SPEC.name;
    Ok(needed.then(|| workload.static_sizes(s.dynamic_share, s.seed)).transpose()?.map(Into::into))
}

/// Runs a scenario on a workload.
///
/// # Errors
/// When it cannot be run, or the trace cannot be read.
pub fn execute(
    scenario: &Scenario,
    workload: &Workload,
    observer: &mut dyn Observer,
) -> Result<Run, ScenarioError> {
    execute_recording(scenario, workload, Extent::default(), observer).map(|(run, _)| run)
}

/// How much of a trace is run, and what is recorded on the way.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extent {
    /// Requests from this time of the trace on are left out.
    pub until: Option<Time>,
    /// What is recorded beside the totals.
    pub recording: Recording,
}

/// Runs a scenario on a workload, or its beginning, and gives what was recorded beside the totals.
///
/// # Errors
/// Like [`execute`].
pub fn execute_recording(
    s: &Scenario,
    workload: &Workload,
    extent: Extent,
    observer: &mut dyn Observer,
) -> Result<(Run, Outcome), ScenarioError> {
    check_backends(s)?;
    let policy_params = policy_params(s)?;
    let context = build_context(s, known_beforehand(s, workload)?);
    let policy = s.strategy.policy.build(&context, &policy_params)?;
    let thresholds = Thresholds::of(&policy_params);
    let limit = match s.admission {
        Admission::Lard => AdmissionLimit::Lard(thresholds),
        Admission::Fixed(n) => AdmissionLimit::Fixed(n),
        Admission::Unlimited => AdmissionLimit::Unlimited,
    };
    let front_end = FrontEnd::new(policy, Cluster::new(s.backends), limit);
    let config = Config {
        seed: s.seed,
        arrivals: s.arrivals,
        warmup: s.warmup,
        idle_below: IDLE_SHARE * f64::from(thresholds.t_low),
        max_waiting: MAX_WAITING,
        faults: &s.faults,
        targets: &workload.targets,
    };
    let model_params = model_params(s)?;
    let outcome = run_model(s, workload, &model_params, extent, &config, front_end, observer)?;
    let model = s.effective_model();
    let mut params = params_json(s.strategy.policy.name, &policy_params);
    params.extend(params_json(model.name, &model_params));
    params.extend(common_params(s, model));
    Ok((to_run(s, model.name, params, &outcome, workload.info.clone()), outcome))
}

/// A back-end is idle below this share of `t_low` (LARD section 3.3).
const IDLE_SHARE: f64 = 0.4;

/// Requests that may wait at the front-end before further ones are refused.
const MAX_WAITING: usize = 1_000_000;
