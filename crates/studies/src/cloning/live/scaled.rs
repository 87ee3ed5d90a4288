//! The workload and the simulation at the scale of live runs.

use plimsoll_policy::params::GivenValue;

use super::super::execution::run_all;
use super::super::plan::{CACHE_BYTES, NodeReading, NodeRun, NodesExtent};
use super::{LiveCloning, LiveSetting, SCALE};
use crate::matrix::Progress;
use crate::scenario::Scenario;
use crate::study_error::StudyError;
use crate::workload::Workload;

/// Memory of a node in live runs.
#[must_use]
pub const fn live_cache_bytes() -> u64 {
    CACHE_BYTES / SCALE as u64
}

/// Parameters of `berkeley` at the scale of live runs: documents, bytes and requests are fewer, a document is as large.
#[must_use]
pub fn scaled_berkeley() -> Vec<(&'static str, String)> {
    let scale = f64::from(SCALE);
    vec![
        ("targets", format!("{:.0}", 87_425.0 / scale)),
        ("total_mib", format!("{:.1}", 6_294.3 / scale)),
        ("requests", format!("{:.0}", 3_940_707.0 / scale)),
    ]
}

/// A run simulated: with interfaces that send or receive, and with what is read from the file server beside what is sent.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct SimulatedRun {
    pub(super) as_read_rps: f64,
    pub(super) reads_beside_rps: f64,
}

/// Whether reads take time of the interface in these.
const INTERFACES: [u32; 2] = [1, 0];

/// Requests of a simulated run that are measured.
const MEASURED: u64 = 30_000;

/// Requests of the simulation beside these measurements.
pub(in super::super) fn requests(live: &LiveCloning) -> u64 {
    live.nodes.len() as u64 * INTERFACES.len() as u64 * (live.warmup_requests + MEASURED)
}

/// Simulates what was measured, with the same sequences of requests, in the order of the measurements.
pub(in super::super) fn simulate(
    live: &LiveCloning,
    progress: &dyn Progress,
) -> Result<Vec<SimulatedRun>, StudyError> {
    let extent = NodesExtent { warmup: live.warmup_requests, requests: live.warmup_requests + MEASURED };
    let parameters = scaled_berkeley();
    let parameters: Vec<(&str, &str)> =
        parameters.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let mut seeds: Vec<u64> = live.nodes.iter().map(|run| run.seed).collect();
    seeds.dedup();
    seeds.sort_unstable();
    seeds.dedup();
    let unknown = SimulatedRun { as_read_rps: f64::NAN, reads_beside_rps: f64::NAN };
    let mut simulated = vec![unknown; live.nodes.len()];
    for seed in seeds {
        let workload = Workload::synthesize_first("berkeley", &parameters, seed, Some(extent.requests))?;
        let of_seed = || (0..live.nodes.len()).filter(|&at| live.nodes[at].seed == seed);
        let both = of_seed().flat_map(|at| INTERFACES.map(|used| (live.nodes[at].setting, used)));
        let scenarios: Vec<Scenario> =
            both.map(|(setting, used)| scenario(setting, used, &extent, seed)).collect::<Result<_, _>>()?;
        let done = run_all(&scenarios, &workload, extent.requests, progress)?;
        for (at, pair) in of_seed().zip(done.chunks(INTERFACES.len())) {
            let [as_read, beside] = pair else { continue };
            simulated[at] =
                SimulatedRun { as_read_rps: as_read.throughput_rps, reads_beside_rps: beside.throughput_rps };
        }
    }
    Ok(simulated)
}

/// The origins' `lfu` forgets the uses of a document that it evicts.
fn scenario(
    setting: LiveSetting,
    reads_use_nic: u32,
    extent: &NodesExtent,
    seed: u64,
) -> Result<Scenario, crate::scenario::ScenarioError> {
    let run = NodeRun::new(setting.strategy, setting.nodes).with(NodeReading::CountsForgotten);
    let mut scenario = Scenario { cache_bytes: live_cache_bytes(), ..run.scenario(extent, seed)? };
    scenario.set_model([("reads_use_nic", GivenValue::from(reads_use_nic))])?;
    Ok(scenario)
}
