//! The study of Sit, Wang and Lau, "Socket Cloning for cluster-based web servers" (IEEE CLUSTER 2002): figures 8 and 9.
//!
//! Figure 8 is computed from published costs, figure 9 simulated on workloads that meet what is published of its log.

mod calibration;
mod cells;
mod claims_micro;
mod claims_trace;
mod controls;
mod explain;
mod explain_micro;
mod figures;
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
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_report::{Claim, Report, Run};
use rayon::prelude::*;

use crate::execute::{Extent, execute_recording};
pub use crate::lard::Effort;
use crate::matrix::{Progress, StudyObserver};
use crate::scenario::{Scenario, ScenarioError};
pub use crate::study_error::StudyError;
use crate::workload::{Workload, WorkloadError};
pub use cells::CloningPart;
use cells::{cells, sites};
use figures::{CloningRuns, JudgedCloning};
use micro::{MicroRun, SIZES_BYTES};
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

/// The requests that the study will simulate: the length of its progress bar.
#[must_use]
pub fn requests(setting: &CloningSetting) -> u64 {
    let of_site = |&site: &Site| cells(setting.effort, setting.part, site).len() as u64;
    let runs: u64 = sites(setting.effort).iter().map(of_site).sum();
    let micro = if setting.part.wants(CloningPart::Micro) { SIZES_BYTES.len() } else { 0 };
    let of_micro = (micro * MicroRun::of_size(0).len()) as u64 * u64::from(MicroRun::requests());
    runs * setting.seeds().len() as u64 * setting.extent().requests + of_micro
}

/// Runs the study or a part of it.
///
/// # Errors
/// When a workload cannot be made, or a run fails.
pub fn reproduce(setting: &CloningSetting, progress: &dyn Progress) -> Result<CloningStudy, StudyError> {
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
    let judge = |micro_specs, trace_specs| -> Vec<Claim> {
        let of_micro = rule::evaluate(micro_specs, &micro);
        of_micro.into_iter().chain(rule::evaluate(trace_specs, &trace)).collect()
    };
    let claims = judge(claims_micro::SPECS, claims_trace::SPECS);
    let controls = judge(claims_micro::CONTROLS, controls::CONTROLS);
    let calibration = rule::evaluate(calibration::SPECS, &trace);
    let judged = JudgedCloning { calibration: &calibration, claims: &claims, controls: &controls };
    let runs = CloningRuns { micro: &micro, trace: &trace };
    let report = figures::report((setting.effort, part), &extent, judged, runs);
    let caution = (!trace.is_empty()).then(|| extent.caution(setting.seeds().len())).flatten();
    let report = caution.iter().fold(report, |report, caution| report.conclusion(caution.clone()));
    let of_micro = micro.into_iter().flat_map(|of| of.runs.into_values());
    let runs = of_micro.chain(trace.into_iter().flat_map(|of| of.runs.into_values())).collect();
    Ok(CloningStudy { calibration, claims, controls, caution, runs, report })
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

/// Runs in the order of their scenarios.
fn run_all(
    scenarios: &[Scenario],
    workload: &Workload,
    requests: u64,
    progress: &dyn Progress,
) -> Result<Vec<Run>, StudyError> {
    let failed = AtomicBool::new(false);
    let execute = |scenario: &Scenario| {
        let mut watch = StudyObserver::new(progress, &failed);
        let done = execute_recording(scenario, workload, Extent::default(), &mut watch);
        failed.fetch_or(done.is_err(), Ordering::Relaxed);
        watch.ended(requests);
        done.map(|(mut run, _)| {
            // Nothing of the study reads it, and it is most of a result.
            run.load_series = Default::default();
            run.policy_tables.clear();
            run
        })
    };
    let done: Vec<Result<Run, ScenarioError>> = scenarios.par_iter().with_max_len(1).map(execute).collect();
    // Another's failure is the reason why a run was stopped.
    let is_reason = |done: &&Result<Run, ScenarioError>| matches!(done, Err(error) if !matches!(error, ScenarioError::Stopped));
    let reason = done.iter().position(|done| is_reason(&done));
    let mut runs = Vec::with_capacity(done.len());
    for (at, done) in done.into_iter().enumerate() {
        match done {
            Ok(run) => runs.push(run),
            Err(_) if reason.is_some_and(|reason| reason != at) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(runs)
}
