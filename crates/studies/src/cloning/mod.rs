//! The study of Sit, Wang and Lau, "Socket Cloning for cluster-based web servers" (IEEE CLUSTER 2002): figures 8 and 9.
//!
//! Figure 8 is computed from published costs, figure 9 simulated on workloads that meet what is published of its log. Beside them stands what was
//! measured live.

mod calibration;
mod cells;
mod claims_micro;
mod claims_trace;
mod controls;
mod execution;
mod explain;
mod explain_micro;
mod figures;
mod live;
mod micro;
mod perfect_lfu;
mod plan;
mod published;
mod results;
mod rule;
mod sites;
mod startup;
mod summary;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use plimsoll_report::{Claim, Report, Run};

pub use crate::lard::Effort;
use crate::matrix::Progress;
pub use crate::study_error::StudyError;
use crate::workload::{Workload, WorkloadError};
pub use cells::CloningPart;
use cells::{cells, sites};
use execution::run_all;
use figures::{CloningRuns, JudgedCloning};
use live::results::{LiveMicro, LiveSeed};
pub use live::scaled::{live_cache_bytes, scaled_berkeley};
pub use live::{LiveCloning, LiveRound, LiveRun, LiveSetting, LiveStartup, SCALE};
pub use micro::MicroMechanism;
use micro::{MicroRun, SIZES_BYTES};
pub use plan::NodeStrategy;
use plan::{NodeRun, NodesExtent};
use results::{MicroResults, SiteFacts, SiteResults};
use sites::Site;

/// The results of the study.
pub struct CloningStudy {
    /// The workloads beside what is published of the log.
    pub calibration: Vec<Claim>,
    /// Every claim of the paper with its measurements.
    pub claims: Vec<Claim>,
    /// Readings that are changed one at a time, what the paper expects, and what goes beyond it.
    pub controls: Vec<Claim>,
    /// Why the verdicts of these runs say little, if so.
    pub caution: Option<String>,
    /// Every run.
    pub runs: Vec<Run>,
    /// Tables, figures and claims as a report.
    pub report: Report,
}

/// What of the study to run, and how much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CloningSetting {
    /// Full or quick.
    pub effort: Effort,
    /// Which part.
    pub part: CloningPart,
    /// Only this seed.
    pub seed: Option<u64>,
    /// So many seeds, from 1 on.
    pub seeds: Option<u64>,
}

impl CloningSetting {
    fn seeds(&self) -> Vec<u64> {
        let count = self.seeds.unwrap_or(if self.effort == Effort::Full { 3 } else { 1 });
        self.seed.map_or_else(|| (1..=count).collect(), |seed| vec![seed])
    }

    fn extent(&self) -> NodesExtent {
        match self.effort {
            Effort::Full => NodesExtent { warmup: 300_000, requests: 1_500_000 },
            Effort::Quick => NodesExtent { warmup: 200_000, requests: 500_000 },
        }
    }
}

/// The requests that the study will simulate, also beside what was measured live: the length of its progress bar.
#[must_use]
pub fn requests(setting: &CloningSetting, live: &LiveCloning) -> u64 {
    let of_site = |&site: &Site| cells(setting.effort, setting.part, site).len() as u64;
    let runs: u64 = sites(setting.effort).iter().map(of_site).sum();
    let micro = if setting.part.wants(CloningPart::Micro) { SIZES_BYTES.len() } else { 0 };
    let of_micro = (micro * MicroRun::of_size(0).len()) as u64 * u64::from(MicroRun::requests());
    runs * setting.seeds().len() as u64 * setting.extent().requests + of_micro + live::scaled::requests(live)
}

/// Runs the study or a part of it. `live` is what was measured beforehand.
///
/// # Errors
/// When a workload cannot be made, or a run fails.
pub fn reproduce(
    setting: &CloningSetting,
    live: &LiveCloning,
    progress: &dyn Progress,
) -> Result<CloningStudy, StudyError> {
    let (extent, part) = (setting.extent(), setting.part);
    let micro = if part.wants(CloningPart::Micro) { vec![run_micro(progress)?] } else { Vec::new() };
    let mut trace = Vec::new();
    // One workload after the other: they take memory.
    for &site in sites(setting.effort) {
        let planned = cells(setting.effort, part, site);
        for seed in if planned.is_empty() { Vec::new() } else { setting.seeds() } {
            trace.push(run_site(&planned, &extent, (site, seed), progress)?);
        }
    }
    let live_seeds = live::results::by_seed(live, &live::scaled::simulate(live, progress)?);
    let live_micro = live::results::micro(live);
    let judged = judge(&micro, &trace, live_micro.as_slice(), &live_seeds);
    let runs = CloningRuns {
        micro: &micro,
        trace: &trace,
        live,
        live_micro: live_micro.as_ref(),
        live_seeds: &live_seeds,
    };
    let report = figures::report((setting.effort, part), &extent, &judged, runs);
    let caution = (!trace.is_empty()).then(|| extent.caution(setting.seeds().len())).flatten();
    let report = caution.iter().fold(report, |report, caution| report.conclusion(caution.clone()));
    let of_micro = micro.into_iter().flat_map(|of| of.runs.into_values());
    let runs = of_micro.chain(trace.into_iter().flat_map(|of| of.runs.into_values())).collect();
    let JudgedCloning { calibration, claims, controls } = judged;
    Ok(CloningStudy { calibration, claims, controls, caution, runs, report })
}

/// All verdicts.
fn judge(
    micro: &[MicroResults],
    trace: &[SiteResults],
    live_micro: &[LiveMicro],
    live_seeds: &[LiveSeed],
) -> JudgedCloning {
    let mut claims = rule::evaluate(claims_micro::SPECS, micro);
    claims.extend(rule::evaluate(live::claims::MICRO, live_micro));
    claims.extend(rule::evaluate(claims_trace::SPECS, trace));
    claims.extend(rule::evaluate(live::claims::NODES, live_seeds));
    let mut controls = rule::evaluate(claims_micro::CONTROLS, micro);
    controls.extend(rule::evaluate(controls::CONTROLS, trace));
    controls.extend(rule::evaluate(live::claims::CONTROLS, live_seeds));
    JudgedCloning { calibration: rule::evaluate(calibration::SPECS, trace), claims, controls }
}

/// The runs of figure 8.
fn run_micro(progress: &dyn Progress) -> Result<MicroResults, StudyError> {
    let mut runs = BTreeMap::new();
    for size_bytes in SIZES_BYTES {
        let planned = MicroRun::of_size(size_bytes);
        let requests = MicroRun::requests();
        let workload = Workload::of_one_document(size_bytes, requests).map_err(WorkloadError::from)?;
        let scenarios = planned.iter().map(MicroRun::scenario).collect::<Result<Vec<_>, _>>()?;
        let done = run_all(&scenarios, &workload, requests.into(), progress)?;
        runs.extend(planned.into_iter().zip(done));
    }
    Ok(MicroResults { runs })
}

/// The runs of figure 9 on a workload.
fn run_site(
    planned: &[NodeRun],
    extent: &NodesExtent,
    (site, seed): (Site, u64),
    progress: &dyn Progress,
) -> Result<SiteResults, StudyError> {
    let workload = Workload::synthesize_first("berkeley", site.parameters(), seed, Some(extent.requests))?;
    let scenarios = planned.iter().map(|run| run.scenario(extent, seed)).collect::<Result<Vec<_>, _>>()?;
    let mut done = run_all(&scenarios, &workload, extent.requests, progress)?;
    for run in &mut done {
        run.params.insert("workload".to_owned(), site.title().into());
    }
    let asked = done.first().map_or(0.0, |run| run.sent_bytes as f64 / run.completed.max(1) as f64);
    let facts = SiteFacts {
        targets: workload.targets.len(),
        total_bytes: workload.working_set_bytes(),
        request_mean_bytes: asked,
    };
    Ok(SiteResults { site, seed, facts, runs: planned.iter().copied().zip(done).collect() })
}
