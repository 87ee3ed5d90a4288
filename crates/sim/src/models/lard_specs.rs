//! The registry entries of the model `lard`, without and with global memory.

use plimsoll_policy::params::{ParamSet, Params as _};

use super::lard::{LardModel, LardModelParams};
use crate::model_spec::{ModelSpec, RunResult, Simulation};

fn run(params: &ParamSet, simulation: Simulation<'_>, global_memory: bool) -> RunResult {
    let (backends, cache, targets) = (simulation.backends(), simulation.cache, simulation.config.targets);
    simulation.run(LardModel::new(LardModelParams::of(params), backends, cache, targets, global_memory))
}

/// Registry entry.
pub static SPEC: ModelSpec = ModelSpec {
    name: "lard",
    summary: "CPU and disks with a queue each, memory cache of whole files",
    source: "Pai et al., ASPLOS 1998, section 3.1",
    has_cache: true,
    spends_on_messages: false,
    params: LardModelParams::SPECS,
    run: |params, simulation| run(params, simulation, false),
};

/// Registry entry of the model with global memory.
pub static GLOBAL_MEMORY_SPEC: ModelSpec = ModelSpec {
    name: "lard_gms",
    summary: "the lard model with the back-ends' memories joined to one global memory",
    source: "Pai et al., ASPLOS 1998, section 4 (WRR/GMS); Feeley et al., SOSP 1995",
    has_cache: true,
    spends_on_messages: false,
    params: LardModelParams::SPECS,
    run: |params, simulation| run(params, simulation, true),
};
