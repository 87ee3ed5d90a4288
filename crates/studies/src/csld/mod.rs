//! The study of Hyun, Jung, Lee and Maeng, "Content sniffer based load distribution in a web server cluster" (IEICE Transactions 2003):
//! tables 4 and 5, figures 6 to 11, and what sections 4.2.2 and 4.3 say beside them.
//!
//! Its trace, the World Cup's peak day, is too large to be carried; the workload `worldcup66` has what table 1 says of it, and its
//! arrivals. Claims are judged over several seeds; means have confidence intervals.

mod cells;
mod claims_figures;
mod claims_robust;
mod claims_tables;
mod day;
mod explain;
mod figures;
mod handoff;
mod handoff_tables;
mod mixes;
mod plan;
mod predictions;
mod published;
mod results;
mod rule;
mod tables;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_report::{Claim, Report, Run};
use rayon::prelude::*;

use crate::execute::{Extent, execute_recording};
pub use crate::lard::Effort;
use crate::matrix::{Progress, StudyObserver};
use crate::scenario::ScenarioError;
pub use crate::study_error::StudyError;
use crate::workload::{Workload, WorkloadError};
pub use cells::CsldPart;
use cells::cells;
use day::{PAPER_WINDOW_S, PeakWindow};
use plan::{WebArrivals, WebExtent, WebRun, WebSite};
use results::{CsldResults, WebMeasures};

/// The results of the study.
pub struct CsldStudy {
    /// Every claim of the paper with its measurements.
    pub claims: Vec<Claim>,
    /// Readings that are changed one at a time, and the paper's future work.
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
pub struct CsldSetting {
    /// Full or quick.
    pub effort: Effort,
    /// Which part.
    pub part: CsldPart,
    /// Only this seed.
    pub seed: Option<u64>,
    /// So many seeds, from 1 on.
    pub seeds: Option<u64>,
    /// Minutes that a run of the tables is measured; the other times in proportion. The paper's are 30.
    pub minutes: Option<f64>,
}

impl CsldSetting {
    fn seeds(&self) -> Vec<u64> {
        let count = self.seeds.unwrap_or(if self.effort == Effort::Full { 3 } else { 2 });
        self.seed.map_or_else(|| (1..=count).collect(), |seed| vec![seed])
    }

    fn extent(&self) -> WebExtent {
        let (warmup_s, minutes) = match (self.minutes, self.effort) {
            (Some(minutes), _) => (30.0 * minutes, minutes),
            (None, Effort::Full) => (15.0 * 60.0, 30.0),
            // Long enough to fill the caches.
            (None, Effort::Quick) => (60.0, 1.0),
        };
        let window = PeakWindow { length_s: PAPER_WINDOW_S * minutes / 30.0 };
        WebExtent { warmup_s, measured_s: 60.0 * minutes, window }
    }
}

/// The requests that the study will simulate: the length of its progress bar.
#[must_use]
pub fn requests(setting: &CsldSetting) -> u64 {
    let extent = setting.extent();
    let of_seed: u64 = cells(setting.effort, setting.part).iter().map(|run| run.requests(&extent).0).sum();
    of_seed * setting.seeds().len() as u64
}

/// The workloads of one seed: the site and whether arrivals are those of the peak day.
struct SeedWorkloads {
    seed: u64,
    workloads: Vec<((WebSite, bool), Workload)>,
}

fn key(run: &WebRun) -> (WebSite, bool) {
    (run.site, run.arrivals == WebArrivals::PeakDay)
}

impl SeedWorkloads {
    fn new(planned: &[WebRun], extent: &WebExtent, seed: u64) -> Result<Self, WorkloadError> {
        let every = WebSite::ALL.into_iter().flat_map(|site| [(site, false), (site, true)]);
        let wanted = every.filter_map(|of| {
            let such = planned.iter().filter(|run| key(run) == of);
            such.map(|run| run.requests(extent).0).max().map(|requests| (of, requests))
        });
        let made = wanted.collect::<Vec<_>>().into_par_iter().map(|(of, requests)| {
            let (count, minute_s) = (requests.to_string(), extent.window.minute_s().to_string());
            let given = [("requests", count.as_str()), ("minute_s", minute_s.as_str())];
            let overrides = [of.0.parameters(), &given].concat();
            let mut made = plimsoll_synth::build("worldcup66", &overrides, seed)?;
            if of.1 {
                made = made.with_requests_per_minute(&extent.window.requests_per_minute())?;
            }
            Ok((of, Workload::of_synthetic(&made, None)?))
        });
        Ok(Self { seed, workloads: made.collect::<Result<_, WorkloadError>>()? })
    }

    fn of(&self, run: &WebRun) -> Option<&Workload> {
        self.workloads.iter().find(|(of, _)| *of == key(run)).map(|(_, workload)| workload)
    }
}

/// Runs the study or a part of it.
///
/// # Errors
/// When a workload cannot be made, or a run fails.
pub fn reproduce(setting: &CsldSetting, progress: &dyn Progress) -> Result<CsldStudy, StudyError> {
    let (extent, part) = (setting.extent(), setting.part);
    let planned = cells(setting.effort, part);
    let mut seeds = Vec::new();
    // One seed after the other: their workloads take much memory.
    for seed in setting.seeds() {
        let workloads = SeedWorkloads::new(&planned, &extent, seed)?;
        seeds.push(run_cells(&planned, &extent, &workloads, progress)?);
    }
    let claims: Vec<Claim> = SPECS.iter().flat_map(|specs| rule::evaluate(specs, part, &seeds)).collect();
    let controls = rule::evaluate(claims_robust::CONTROLS, part, &seeds);
    let judged = figures::JudgedCsld { claims: &claims, controls: &controls };
    let report = figures::report((setting.effort, part), &extent, judged, &seeds);
    let caution = extent.caution(seeds.len());
    let report = caution.iter().fold(report, |report, caution| report.conclusion(caution.clone()));
    let runs = seeds.into_iter().flat_map(|of| of.runs.into_values()).map(|(run, _)| run).collect();
    Ok(CsldStudy { claims, controls, caution, runs, report })
}

/// The claims of the paper.
const SPECS: [&[rule::CsldClaimSpec]; 3] =
    [claims_tables::SPECS, claims_figures::SPECS, claims_robust::SPECS];

fn run_cells(
    planned: &[WebRun],
    extent: &WebExtent,
    workloads: &SeedWorkloads,
    progress: &dyn Progress,
) -> Result<CsldResults, StudyError> {
    let failed = AtomicBool::new(false);
    let execute = |run: &WebRun| {
        let done = execute_run(run, extent, workloads, (progress, &failed));
        failed.fetch_or(done.is_err(), Ordering::Relaxed);
        done
    };
    let done: Vec<Result<_, ScenarioError>> = planned.par_iter().with_max_len(1).map(execute).collect();
    let mut results = CsldResults { seed: workloads.seed, runs: Default::default() };
    let mut stopped = false;
    for (planned, done) in planned.iter().zip(done) {
        match done {
            Ok(run) => drop(results.runs.insert(*planned, run)),
            Err(ScenarioError::Stopped) => stopped = true,
            Err(error) => return Err(error.into()),
        }
    }
    if stopped { Err(ScenarioError::Stopped.into()) } else { Ok(results) }
}

fn execute_run(
    run: &WebRun,
    extent: &WebExtent,
    workloads: &SeedWorkloads,
    (progress, failed): (&dyn Progress, &AtomicBool),
) -> Result<(Run, WebMeasures), ScenarioError> {
    let Some(workload) = workloads.of(run) else { return Err(ScenarioError::Stopped) };
    let length = run.requests(extent).0;
    let mut watch = StudyObserver::new(progress, failed);
    let part = Extent { requests: Some(length), ..Extent::default() };
    let scenario = run.scenario(extent, workloads.seed)?;
    let (mut done, _) = execute_recording(&scenario, workload, part, &mut watch)?;
    watch.ended(length);
    // Nothing of the study reads it, and it is most of a result.
    done.load_series = Default::default();
    done.policy_tables.clear();
    let measures = WebMeasures::of(&done).unwrap_or_default();
    Ok((done, measures))
}
