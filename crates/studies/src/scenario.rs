//! One run: policy, model, number of back-ends and everything else that decides its result.

use std::collections::BTreeMap;

use plimsoll_cache::CacheSpec;
use plimsoll_policy::params::{ParamError, Params as _, nearest};
use plimsoll_policy::{
    AdmissionLimit, BuildContext, BuildError, Cluster, FrontEnd, PolicySpec, REGISTRY, Thresholds, find,
};
use plimsoll_report::{LoadSeries, PerBackend, Run, Summary, TraceInfo, Utilization};
use plimsoll_sim::models::fifo::{Fifo, FifoParams};
use plimsoll_sim::models::lard::{CacheConfig, Lard, LardModelParams};
use plimsoll_sim::models::{LARD, LARD_GMS, MODELS, ModelSpec};
use plimsoll_sim::{Arrivals, Config, Distribution, Fault, Observer, Outcome, RunError, run};
use plimsoll_trace::TraceError;

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

impl Strategy {
    /// The strategy of this name or alias.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(name: &str) -> Result<Self, BuildError> {
        if matches!(name.to_lowercase().replace(['/', '-'], "_").as_str(), "wrr_gms") {
            let policy = find("weighted_round_robin")?;
            return Ok(Self {
                name: "wrr_gms",
                policy,
                global_memory: true,
            });
        }
        find(name).map(|policy| Self {
            name: policy.name,
            policy,
            global_memory: false,
        })
    }
}

/// The model of this name.
///
/// # Errors
/// When there is none; the message names the nearest.
pub fn find_model(name: &str) -> Result<&'static ModelSpec, ScenarioError> {
    MODELS.iter().copied().find(|m| m.name == name).ok_or_else(|| {
        let known = MODELS.iter().map(|m| m.name);
        ScenarioError::UnknownModel {
            name: name.to_owned(),
            nearest: nearest(name, known),
        }
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
            faults: Vec::new(),
            warmup: 0,
        }
    }

    /// The model that runs: `lard_gms` for WRR/GMS.
    fn effective_model(&self) -> &'static ModelSpec {
        if self.strategy.global_memory && self.model.name == LARD.name {
            &LARD_GMS
        } else {
            self.model
        }
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
    #[error("a cluster has 1 to 65,535 back-ends, not {0}")]
    Backends(usize),
    /// A fault names a back-end that is not there.
    #[error("a fault names back-end {backend}, but there are only {backends} (numbered from 0)")]
    Fault {
        /// As named.
        backend: u16,
        /// How many there are.
        backends: usize,
    },
    /// The trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Stopped by the user.
    #[error("stopped")]
    Stopped,
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(
        || {
            format!(
                "there are {}",
                MODELS.iter().map(|m| m.name).collect::<Vec<_>>().join(", ")
            )
        },
        |name| format!("did you mean `{name}`?"),
    )
}

/// Settings for one owner: its own, and those without an owner that it declares.
fn settings_of(
    settings: &[(String, String)],
    owner: &[&str],
    keys: &[plimsoll_policy::params::ParamSpec],
) -> Vec<(String, String)> {
    settings
        .iter()
        .filter_map(|(key, value)| match key.split_once('.') {
            Some((prefix, key)) if owner.contains(&prefix) => Some((key.to_owned(), value.clone())),
            None if keys.iter().any(|spec| spec.name == key) => Some((key.clone(), value.clone())),
            _ => None,
        })
        .collect()
}

/// Refuses settings that no policy and no model of these scenarios would take, so that a slip is not ignored.
///
/// # Errors
/// Names the setting and what is nearest.
pub fn check_settings(scenarios: &[Scenario]) -> Result<(), ScenarioError> {
    let Some(first) = scenarios.first() else {
        return Ok(());
    };
    for (key, _) in &first.settings {
        let taken = |s: &Scenario| {
            let model = s.effective_model();
            match key.split_once('.') {
                Some((prefix, _)) => {
                    prefix == model.name
                        || prefix == s.strategy.policy.name
                        || s.strategy.policy.aliases.contains(&prefix)
                }
                None => s
                    .strategy
                    .policy
                    .params
                    .iter()
                    .chain(model.params)
                    .any(|p| p.name == key),
            }
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
    let of = |owner: &'static str, params: &'static [plimsoll_policy::params::ParamSpec]| {
        params
            .iter()
            .flat_map(move |p| [format!("{owner}.{}", p.name), p.name.to_owned()])
    };
    of(policy.name, policy.params)
        .chain(of(model.name, model.params))
        .collect()
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
    let s = scenario;
    if s.backends == 0 || s.backends >= usize::from(u16::MAX) {
        return Err(ScenarioError::Backends(s.backends));
    }
    if let Some(fault) = s.faults.iter().find(|f| f.backend.index() >= s.backends) {
        return Err(ScenarioError::Fault {
            backend: fault.backend.0,
            backends: s.backends,
        });
    }
    let spec = s.strategy.policy;
    let context = BuildContext {
        seed: s.seed,
        cache_bytes: s.cache_bytes,
        cache: s.cache,
        cache_object_limit_bytes: s.cache_object_limit_bytes,
    };
    let mut owners = vec![spec.name];
    owners.extend(spec.aliases);
    let settings = settings_of(&s.settings, &owners, spec.params);
    let (policy, values) = (spec.build)(&context, &settings).map_err(|error| BuildError::Param {
        policy: spec.name,
        error,
    })?;
    let thresholds = thresholds(&values);
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
        idle_below: 0.4 * f64::from(thresholds.t_low),
        max_waiting: 1_000_000,
        faults: &s.faults,
        targets: &workload.targets,
    };
    let (outcome, model_values) = run_model(s, workload, &config, front_end, observer)?;
    let model = s.effective_model();
    let mut params = params_json(spec.name, &values);
    params.extend(params_json(model.name, &model_values));
    params.extend(common_params(s, model));
    Ok(to_run(s, model.name, params, &outcome, workload.info.clone()))
}

fn thresholds(values: &[(&'static str, String)]) -> Thresholds {
    let get = |name| {
        values
            .iter()
            .find(|(key, _)| *key == name)
            .and_then(|(_, v)| v.parse().ok())
    };
    let default = Thresholds::default();
    Thresholds {
        t_low: get("t_low").unwrap_or(default.t_low),
        t_high: get("t_high").unwrap_or(default.t_high),
    }
}

type Values = Vec<(&'static str, String)>;

fn run_model(
    s: &Scenario,
    workload: &Workload,
    config: &Config<'_>,
    front_end: FrontEnd,
    observer: &mut dyn Observer,
) -> Result<(Outcome, Values), ScenarioError> {
    let spec = s.effective_model();
    let settings = settings_of(&s.settings, &[spec.name, s.model.name], spec.params);
    let wrong = |error| ScenarioError::Model {
        model: spec.name,
        error,
    };
    let source = workload.requests()?;
    let (result, values) = if spec.name == "fifo" {
        let params = FifoParams::from_settings(&settings).map_err(wrong)?;
        let model = Fifo::new(params, s.backends, s.seed);
        (run(config, front_end, model, source, observer), params.values())
    } else {
        let params = LardModelParams::from_settings(&settings).map_err(wrong)?;
        let cache = CacheConfig {
            spec: s.cache,
            capacity_bytes: s.cache_bytes,
            object_limit_bytes: s.cache_object_limit_bytes,
        };
        let global_memory = spec.name == LARD_GMS.name;
        let model = Lard::new(params, s.backends, cache, &workload.targets, global_memory);
        (run(config, front_end, model, source, observer), params.values())
    };
    match result {
        Ok(outcome) => Ok((outcome, values)),
        Err(RunError::Source(error)) => Err(error.into()),
        Err(RunError::Stopped) => Err(ScenarioError::Stopped),
    }
}

type Json = BTreeMap<String, serde_json::Value>;

/// A number as a number, everything else as text.
fn json(value: &str) -> serde_json::Value {
    if let Ok(whole) = value.parse::<u64>() {
        return whole.into();
    }
    value.parse::<f64>().map_or_else(|_| value.into(), Into::into)
}

fn params_json(owner: &str, values: &[(&'static str, String)]) -> Json {
    values
        .iter()
        .map(|(key, value)| (format!("{owner}.{key}"), json(value)))
        .collect()
}

fn common_params(s: &Scenario, model: &ModelSpec) -> Json {
    let arrivals = match s.arrivals {
        Arrivals::Closed => "closed".to_owned(),
        Arrivals::Trace { speed } => format!("trace, speed {speed}"),
        Arrivals::Poisson { rate_rps } => format!("poisson:{rate_rps}"),
    };
    let admission = match s.admission {
        Admission::Lard => "lard".into(),
        Admission::Fixed(n) => n.into(),
        Admission::Unlimited => "none".into(),
    };
    let mut out = Json::from([
        ("arrivals".to_owned(), arrivals.into()),
        ("admission".to_owned(), admission),
        ("warmup".to_owned(), s.warmup.into()),
    ]);
    if model.name != "fifo" {
        out.insert("cache".to_owned(), s.cache.name.into());
        out.insert("cache_bytes".to_owned(), s.cache_bytes.into());
        if let Some(limit) = s.cache_object_limit_bytes {
            out.insert("cache_object_limit_bytes".to_owned(), limit.into());
        }
    }
    out
}

fn summary(distribution: &Distribution, scale: f64) -> Option<Summary> {
    let at = |q| distribution.quantile(q).map(|v| v as f64 / scale);
    Some(Summary {
        mean: distribution.mean()? / scale,
        p50: at(0.5)?,
        p90: at(0.9)?,
        p99: at(0.99)?,
        p999: at(0.999)?,
        max: distribution.max()? as f64 / scale,
    })
}

fn to_run(s: &Scenario, model: &str, params: Json, outcome: &Outcome, trace: TraceInfo) -> Run {
    let per_backend = outcome
        .backends
        .iter()
        .map(|b| PerBackend {
            requests: b.requests,
            miss_ratio: (outcome.disks > 0 && b.requests > 0)
                .then(|| b.usage.reads as f64 / b.requests as f64),
            idle_ratio: b.idle_ratio,
            cpu: outcome.busy(b.usage.cpu, 1),
            disk: (outcome.disks > 0).then(|| outcome.busy(b.usage.disk, outcome.disks)),
            mean_load: b.mean_load,
        })
        .collect();
    Run {
        policy: s.strategy.name.to_owned(),
        model: model.to_owned(),
        backends: s.backends,
        seed: s.seed,
        params,
        requests: outcome.requests,
        completed: outcome.completed,
        rejected: outcome.rejected + outcome.lost,
        simulated_s: outcome.simulated.as_secs_f64(),
        throughput_rps: outcome.throughput_rps(),
        miss_ratio: outcome.miss_ratio(),
        joined_ratio: outcome.joined_ratio(),
        idle_ratio: outcome.idle_ratio(),
        response_time_s: summary(&outcome.response_ns, 1e9),
        slowdown: summary(&outcome.slowdown_permille, 1e3),
        utilization: Utilization {
            cpu: outcome.cpu_utilization(),
            disk: outcome.disk_utilization(),
        },
        per_backend,
        policy_stats: outcome
            .policy_stats
            .iter()
            .map(|(k, v)| ((*k).to_owned(), *v))
            .collect(),
        wall_s: None,
        requests_per_wall_s: None,
        trace,
        load_series: LoadSeries {
            bucket_s: outcome.load_series.bucket_s,
            load: outcome.load_series.load.clone(),
        },
    }
}

/// Every strategy's name: the registry, and WRR/GMS.
pub fn strategy_names() -> impl Iterator<Item = &'static str> {
    REGISTRY
        .iter()
        .map(|spec| spec.name)
        .chain(std::iter::once("wrr_gms"))
}
