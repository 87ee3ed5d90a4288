//! The back-end models as a scenario names them, and a run on one of them.

use plimsoll_policy::params::{ParamSet, Params as _};
use plimsoll_policy::{FrontEnd, Time};
use plimsoll_sim::models::adaptload::{AdaptLoad, AdaptLoadModelParams};
use plimsoll_sim::models::fifo::{Fifo, FifoParams};
use plimsoll_sim::models::lard::{CacheConfig, Lard, LardModelParams};
use plimsoll_sim::models::{ADAPTLOAD, FIFO, LARD_GMS};
use plimsoll_sim::{Config, Observer, Outcome, RunError, run_recording, with_dynamic};

use crate::scenario::{Extent, Scenario, ScenarioError};
use crate::settings::settings_of;
use crate::workload::Workload;

pub(crate) fn model_params(s: &Scenario) -> Result<ParamSet, ScenarioError> {
    let spec = s.effective_model();
    let settings = settings_of(&s.settings, &[spec.name, s.model.name], spec.params);
    let params = ParamSet::from_settings(spec.params, &settings);
    params.map_err(|error| ScenarioError::Model { model: spec.name, error })
}

pub(crate) fn run_model(
    s: &Scenario,
    workload: &Workload,
    params: &ParamSet,
    extent: Extent,
    config: &Config<'_>,
    front_end: FrontEnd,
    observer: &mut dyn Observer,
) -> Result<Outcome, ScenarioError> {
    let until = extent.until.unwrap_or(Time::MAX);
    let requests = workload.requests()?.take_while(|r| r.as_ref().map_or(true, |r| r.time < until));
    let source = with_dynamic(requests, s.dynamic_share, s.seed);
    let recording = extent.recording;
    let cache = CacheConfig {
        spec: s.cache,
        capacity_bytes: s.cache_bytes,
        object_limit_bytes: s.cache_object_limit_bytes,
    };
    let result = match s.effective_model().name {
        name if name == ADAPTLOAD.name => {
            let params = AdaptLoadModelParams::of(params);
            let model = AdaptLoad::new(&params, s.backends, cache, &workload.targets, s.seed);
            run_recording(config, recording, front_end, model, source, observer)
        }
        name if name == FIFO.name => {
            let model = Fifo::new(FifoParams::of(params), s.backends, s.seed);
            run_recording(config, recording, front_end, model, source, observer)
        }
        name => {
            let params = LardModelParams::of(params);
            let model = Lard::new(params, s.backends, cache, &workload.targets, name == LARD_GMS.name);
            run_recording(config, recording, front_end, model, source, observer)
        }
    };
    result.map_err(|error| match error {
        RunError::Source(error) => error.into(),
        RunError::Stopped => ScenarioError::Stopped,
        RunError::TimeOverflow => ScenarioError::TimeOverflow,
        RunError::OnlyWarmUp { warmup } => ScenarioError::OnlyWarmUp(warmup),
    })
}
