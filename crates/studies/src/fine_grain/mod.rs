//! The study of Shen, Yang and Chu, "Cluster load balancing for fine-grain network services" (IPDPS 2002): figures 2, 3 and 4 by
//! simulation, with what sections 2.4, 4 and 5 say of messages and slow answers; figure 6 and table 2 by measurements of a real cluster
//! that the caller passes in.
//!
//! The traces were never published; the workloads have the means and deviations of table 1. Claims are judged over several seeds.

mod calibration_prototype;
mod claims;
mod claims_beyond;
mod claims_broadcast;
mod claims_polling;
mod claims_prototype;
mod claims_scaling;
mod exact;
mod figure_parts;
mod figures;
mod figures_beyond;
mod figures_prototype;
mod figures_sweeps;
mod improvement;
mod index_age;
mod plan;
mod prototype;
mod results;
mod rule;
#[cfg(test)]
mod tests;
mod theory;

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_report::{Claim, Report, Run};
use plimsoll_sim::{RunObserver, SimRequest};
use rayon::prelude::*;

use crate::execute::execute;
pub use crate::lard::Effort;
use crate::matrix::Progress;
use crate::scenario::ScenarioError;
pub use crate::study_error::StudyError;
use crate::workload::{Workload, WorkloadError};
use exact::ExactExtent;
pub use exact::{Anchor, EXACT_LEVEL_PERCENT, ExactCheck, exact_conclusion, exact_table};
pub use plan::{FIGURES, Grain, PROTOTYPE_FIGURE};
use plan::{FineGrainRun, cells};
pub use prototype::{FullLoad, ServiceChoice, ServicePoint, ServicePrototype, ServiceRuns};
use results::FineGrainResults;

/// The results of the study.
pub struct FineGrainStudy {
    /// The simulator beside theory; empty where only one figure was asked for.
    pub exact: Vec<ExactCheck>,
    /// The profile of slow answers to which it is calibrated.
    pub calibration: Vec<Claim>,
    /// Every claim with its measurements.
    pub claims: Vec<Claim>,
    /// Every run.
    pub runs: Vec<Run>,
    /// Figures and claims as a report.
    pub report: Report,
}

/// How much is simulated.
struct Extent {
    requests: u64,
    seeds: &'static [u64],
    exact: ExactExtent,
}

impl Extent {
    fn of(effort: Effort) -> Self {
        match effort {
            Effort::Quick => Self {
                requests: 60_000,
                seeds: &[1, 2, 3],
                exact: ExactExtent { runs: 32, requests: 500_000 },
            },
            Effort::Full => Self {
                requests: 600_000,
                seeds: &[1, 2, 3, 4, 5],
                exact: ExactExtent { runs: 32, requests: 1_000_000 },
            },
        }
    }
}

fn seeds(extent: &Extent, seed: Option<u64>) -> Vec<u64> {
    seed.map_or_else(|| extent.seeds.to_vec(), |seed| vec![seed])
}

/// The requests that the study will simulate: the length of its progress bar.
#[must_use]
pub fn requests(effort: Effort, figure: Option<u32>, seed: Option<u64>) -> u64 {
    let extent = Extent::of(effort);
    let of_claims = (cells(figure).len() * seeds(&extent, seed).len()) as u64 * extent.requests;
    of_claims + if figure.is_none() { extent.exact.all_requests() } else { 0 }
}

/// The workloads of one seed.
struct SeedWorkloads {
    seed: u64,
    grains: Vec<(Grain, Workload)>,
}

impl SeedWorkloads {
    fn new(seed: u64, requests: u64) -> Result<Self, WorkloadError> {
        let of = |grain: Grain| {
            let ((name, generator), requests) = (grain.workload(), requests.to_string());
            let made = Workload::synthesize(name, &[("generator", generator), ("requests", &requests)], seed);
            Ok((grain, made?))
        };
        Ok(Self { seed, grains: Grain::ALL.into_iter().map(of).collect::<Result<_, WorkloadError>>()? })
    }

    fn of(&self, run: &FineGrainRun) -> Option<&Workload> {
        self.grains.iter().find(|(grain, _)| *grain == run.grain).map(|(_, workload)| workload)
    }
}

/// Passes progress on, and stops when another run has failed.
struct SeedObserver<'a> {
    progress: &'a dyn Progress,
    failed: &'a AtomicBool,
    reported: u64,
}

impl RunObserver for SeedObserver<'_> {
    fn progress(&mut self, arrived: u64) -> bool {
        self.progress.advance(arrived - self.reported);
        self.reported = arrived;
        !self.failed.load(Ordering::Relaxed)
    }
}

/// Runs the study, or the runs for one figure. `prototype` is what was measured of a real cluster.
///
/// # Errors
/// When a workload cannot be made, or a run fails.
pub fn reproduce(
    effort: Effort,
    figure: Option<u32>,
    seed: Option<u64>,
    prototype: &ServicePrototype,
    progress: &dyn Progress,
) -> Result<FineGrainStudy, StudyError> {
    reproduce_some(&Extent::of(effort), (effort, figure), seed, prototype, progress)
}

fn reproduce_some(
    extent: &Extent,
    (effort, figure): (Effort, Option<u32>),
    seed: Option<u64>,
    prototype: &ServicePrototype,
    progress: &dyn Progress,
) -> Result<FineGrainStudy, StudyError> {
    let simulated = figure.is_none_or(|figure| figure != PROTOTYPE_FIGURE);
    let used_seeds = if simulated { seeds(extent, seed) } else { Vec::new() };
    let first_seed = used_seeds.first().copied().unwrap_or(1);
    let workloads = used_seeds
        .into_par_iter()
        .map(|seed| SeedWorkloads::new(seed, extent.requests))
        .collect::<Result<Vec<_>, WorkloadError>>()?;
    let mut seeds = run_cells(&cells(figure), &workloads, progress)?;
    if figure.is_none_or(|figure| figure == 2) {
        measure_ages(&mut seeds, &workloads)?;
    }
    let (exact, exact_runs) = if figure.is_none() {
        exact::checks(extent.exact, first_seed, progress)?
    } else {
        Default::default()
    };
    let mut calibration = claims::calibration(&seeds);
    calibration.extend(calibration_prototype::calibration(prototype));
    let mut claims: Vec<Claim> =
        SPECS.iter().flat_map(|specs| rule::evaluate(specs, figure, &seeds)).collect();
    claims.extend(claims_prototype::claims(prototype));
    let judged = figures::Judged { exact: &exact, calibration: &calibration, claims: &claims };
    let report = figures::report((effort, figure), judged, &seeds, prototype);
    let runs = seeds.into_iter().flat_map(|results| results.runs.into_values()).chain(exact_runs).collect();
    Ok(FineGrainStudy { exact, calibration, claims, runs, report })
}

/// The claims on what is simulated.
const SPECS: [&[rule::FineGrainClaimSpec]; 5] = [
    claims::SPECS,
    claims_broadcast::SPECS,
    claims_scaling::SPECS,
    claims_polling::SPECS,
    claims_beyond::SPECS,
];

/// Runs all cells with each seed.
fn run_cells(
    planned: &[FineGrainRun],
    workloads: &[SeedWorkloads],
    progress: &dyn Progress,
) -> Result<Vec<FineGrainResults>, StudyError> {
    let failed = AtomicBool::new(false);
    let every: Vec<(usize, FineGrainRun)> =
        (0..workloads.len()).flat_map(|of| planned.iter().map(move |run| (of, *run))).collect();
    let execute = |&(of, run): &(usize, FineGrainRun)| {
        let done = execute_run(&run, &workloads[of], progress, &failed);
        failed.fetch_or(done.is_err(), Ordering::Relaxed);
        done
    };
    let done: Vec<Result<Run, ScenarioError>> = every.par_iter().with_max_len(1).map(execute).collect();
    let mut seeds: Vec<FineGrainResults> = workloads
        .iter()
        .map(|of| FineGrainResults {
            seed: of.seed,
            runs: Default::default(),
            inaccuracy: Default::default(),
        })
        .collect();
    let mut stopped = false;
    for ((of, planned), done) in every.into_iter().zip(done) {
        match done {
            Ok(run) => drop(seeds[of].runs.insert(planned, run)),
            Err(ScenarioError::Stopped) => stopped = true,
            Err(error) => return Err(error.into()),
        }
    }
    if stopped {
        return Err(ScenarioError::Stopped.into());
    }
    Ok(seeds)
}

fn measure_ages(seeds: &mut [FineGrainResults], workloads: &[SeedWorkloads]) -> Result<(), StudyError> {
    for (results, of) in seeds.iter_mut().zip(workloads) {
        for (grain, workload) in of.grains.iter().filter(|(grain, _)| Grain::PAPER.contains(grain)) {
            let requests: Vec<SimRequest> = workload
                .requests::<WorkloadError>()
                .map_err(WorkloadError::from)?
                .collect::<Result<_, WorkloadError>>()?;
            results.measure_ages(*grain, &requests);
        }
    }
    Ok(())
}

fn execute_run(
    run: &FineGrainRun,
    workloads: &SeedWorkloads,
    progress: &dyn Progress,
    failed: &AtomicBool,
) -> Result<Run, ScenarioError> {
    let Some(workload) = workloads.of(run) else { return Err(ScenarioError::Stopped) };
    let length = workload.trace.len();
    let mut watch = SeedObserver { progress, failed, reported: 0 };
    let mut done = execute(&run.scenario(length, workloads.seed)?, workload, &mut watch)?;
    progress.advance(length.saturating_sub(watch.reported));
    // Nothing of the study reads it, and it is most of a result.
    done.load_series = Default::default();
    Ok(done)
}
