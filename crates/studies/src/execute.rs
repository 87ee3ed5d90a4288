//! Runs a scenario on a workload.

use std::sync::Arc;

use plimsoll_policy::policies::sita_e;
use plimsoll_policy::{
    AdmissionControl, AdmissionLimit, BuildContext, BuildError, Cluster, Core, Inquiries, Nanos, Policy,
    Thresholds, Time, mix,
};
use plimsoll_report::Run;
use plimsoll_sim::{
    CacheConfig, LoadInformation, Recording, RunConfig, RunError, RunObserver, RunOutcome, SharedPolicy,
    Simulation, SourceError,
};
use plimsoll_trace::TraceError;

use crate::run_result::{common_params, params_json, to_run};
use crate::scenario::{Admission, Scenario, ScenarioError, Tables, check_one};
use crate::workload::Workload;

/// See [`BuildContext::workload`].
type StaticSizes = Arc<[(u64, u64)]>;

fn build_context(s: &Scenario, workload: &Workload, static_sizes: Option<StaticSizes>) -> BuildContext {
    let classes = workload.classes.as_ref();
    BuildContext {
        seed: s.seed,
        cache_bytes: s.cache_bytes,
        cache: s.cache,
        cache_object_limit_bytes: s.cache_object_limit_bytes,
        workload: static_sizes,
        class_costs: classes.map_or_else(Arc::default, |classes| Arc::clone(&classes.costs)),
        ..BuildContext::default()
    }
}

/// The request sizes that the policy knows beforehand. Only the off-line policy needs them, at the cost of
/// another pass over the trace.
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
    observer: &mut dyn RunObserver,
) -> Result<Run, ScenarioError> {
    execute_recording(scenario, workload, Extent::default(), observer).map(|(run, _)| run)
}

/// The part of a trace to run, and the recordings to make.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extent {
    /// Leaves out requests from this time of the trace on.
    pub until: Option<Time>,
    /// Leaves out requests after so many.
    pub requests: Option<u64>,
    /// Recordings beside the totals.
    pub recording: Recording,
}

/// Runs a scenario on a workload, or its beginning, and also returns the recordings.
///
/// # Errors
/// Like [`execute`].
pub fn execute_recording(
    s: &Scenario,
    workload: &Workload,
    extent: Extent,
    observer: &mut dyn RunObserver,
) -> Result<(Run, RunOutcome), ScenarioError> {
    check_one(s)?;
    let context = build_context(s, workload, known_beforehand(s, workload)?);
    let thresholds = Thresholds::of(&s.policy_params);
    let limit = match s.effective_admission() {
        Admission::Lard => AdmissionLimit::Lard(thresholds),
        Admission::Fixed(n) => AdmissionLimit::Fixed(n),
        Admission::Unlimited => AdmissionLimit::Unlimited,
    };
    let setup = s.front_ends_setup()?;
    let partitions = setup.as_ref().map_or(1, |setup| setup.partitions.count() as u16);
    let count = match setup.as_ref().map(|setup| setup.load_information) {
        // A load index manager chooses for all of them.
        None | Some(LoadInformation::Central(_)) => partitions,
        Some(_) => s.front_ends * partitions,
    };
    let mut cores = policies(s, &context, count, partitions)?
        .into_iter()
        .enumerate()
        .map(|(number, policy)| front_end_core(s, policy, limit, core_seed(s.seed, number as u16)));
    let core = cores.next().expect("there is a front-end, and a partition");
    let others = cores.collect();
    let front_ends = setup.map(|setup| (setup, others));
    let config = RunConfig {
        seed: s.seed,
        arrivals: s.arrivals,
        warmup: s.warmup,
        settles: s.settles,
        idle_below: IDLE_SHARE * f64::from(thresholds.t_low),
        poll_time: Nanos::ZERO,
        faults: &s.faults,
        hot_spots: &s.hot_spots,
        targets: &workload.targets,
    };
    let until = extent.until.unwrap_or(Time::MAX);
    let requests = workload.requests::<SourceError>()?;
    let limit = usize::try_from(extent.requests.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let mut source = requests
        .until(until)
        .with_dynamic(s.dynamic_share, s.seed)
        .with_class_service(workload.classes.as_ref().map_or(&[][..], |classes| &classes.service), s.seed)
        .with_service(s.service, s.seed)
        .take(limit);
    let model = s.effective_model();
    let simulation = Simulation {
        config: &config,
        recording: extent.recording,
        core,
        front_ends,
        cache: CacheConfig {
            spec: s.cache,
            capacity_bytes: s.cache_bytes,
            object_limit_bytes: s.cache_object_limit_bytes,
        },
        source: &mut source,
        observer,
    };
    let outcome = (model.run)(&s.model_params, simulation).map_err(failed)?;
    let mut params = params_json(s.strategy.policy.name, &s.policy_params);
    params.extend(params_json(model.name, &s.model_params));
    params.extend(common_params(s, model));
    Ok((to_run(s, model.name, params, &outcome, workload.info.clone()), outcome))
}

/// The seed of a core. Each draws its own random numbers, the first one those of a single front-end.
fn core_seed(seed: u64, core: u16) -> u64 {
    if core == 0 { seed } else { mix(seed ^ mix(u64::from(core))) }
}

/// The policies of so many cores, those of the first front-end first: each its own, or a handle of its partition's.
fn policies(
    s: &Scenario,
    context: &BuildContext,
    cores: u16,
    partitions: u16,
) -> Result<Vec<Box<dyn Policy>>, BuildError> {
    let build = |core| {
        let context = BuildContext { seed: core_seed(s.seed, core), ..context.clone() };
        s.strategy.policy.build(&context, &s.policy_params)
    };
    if s.tables == Tables::Separate {
        return (0..cores).map(build).collect();
    }
    let mut handles: Vec<SharedPolicy> = Vec::new();
    for core in 0..cores {
        let handle = match core.checked_sub(partitions) {
            None => SharedPolicy::new(build(core)?),
            Some(of_other) => handles[usize::from(of_other)].another(),
        };
        handles.push(handle);
    }
    Ok(handles.into_iter().map(|handle| Box::new(handle) as Box<dyn Policy>).collect())
}

/// The core of a front-end for a partition.
fn front_end_core(s: &Scenario, policy: Box<dyn Policy>, limit: AdmissionLimit, seed: u64) -> Core {
    let admission = AdmissionControl { limit, queue: MAX_WAITING };
    let mut core = Core::new(policy, Cluster::new(s.backends), admission);
    match (s.load_information.build)(&s.load_params) {
        LoadInformation::Poll(how) if s.strategy.policy.load_use.is_asked_for() => {
            core.set_inquiries(Some(Inquiries { size: how.size as u8, seed }));
        }
        LoadInformation::Broadcast(how) if how.counts_own == 0 => core.count_reports_only(),
        _ => {}
    }
    core
}

/// A back-end is idle below this share of `t_low` (LARD section 3.3).
const IDLE_SHARE: f64 = 0.4;

/// The most requests that wait at the front-end; further ones are rejected.
const MAX_WAITING: usize = 1_000_000;

fn failed(error: RunError<SourceError>) -> ScenarioError {
    match error {
        RunError::Source(error) => match error.downcast::<TraceError>() {
            Ok(error) => (*error).into(),
            Err(error) => ScenarioError::Source(error),
        },
        RunError::Stopped => ScenarioError::Stopped,
        RunError::TimeOverflow => ScenarioError::TimeOverflow,
        RunError::OnlyWarmUp { warmup } => ScenarioError::OnlyWarmUp(warmup),
    }
}

#[cfg(test)]
mod tests;
