//! The study of Shen, Yang and Chu, "Cluster load balancing for fine-grain network services" (IPDPS 2002): figures 2, 3 and 4 by
//! simulation, with what sections 2.4, 4 and 5 say of messages and slow answers; figure 6 and table 2 by measurements of a real cluster
//! that the caller passes in.
//!
//! The traces were never published; the workloads have the means and deviations of table 1. Claims are judged over several seeds.

mod calibration_prototype;
mod claims;
mod claims_broadcast;
mod claims_polling;
mod claims_prototype;
mod figures;
mod figures_prototype;
mod index_age;
mod plan;
mod prototype;
mod results;
mod rule;
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
pub use plan::{FIGURES, Grain, PROTOTYPE_FIGURE};
use plan::{FineGrainRun, cells};
pub use prototype::{FullLoad, ServiceChoice, ServicePoint, ServicePrototype, ServiceRuns};
use results::FineGrainResults;

/// The results of the study.
pub struct FineGrainStudy {
    /// Figures that theory gives, beside those of the simulator; and the profile of slow answers to which it is calibrated.
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
    /// Of the runs that are held to theory.
    theory_requests: u64,
    seeds: &'static [u64],
}

impl Extent {
    fn of(effort: Effort) -> Self {
        match effort {
            Effort::Quick => Self { requests: 60_000, theory_requests: 600_000, seeds: &[1, 2, 3] },
            Effort::Full => Self { requests: 600_000, theory_requests: 3_000_000, seeds: &[1, 2, 3, 4, 5] },
        }
    }

    fn requests(&self, run: &FineGrainRun) -> u64 {
        if run.exact_theory { self.theory_requests } else { self.requests }
    }
}

fn seeds(extent: &Extent, seed: Option<u64>) -> Vec<u64> {
    seed.map_or_else(|| extent.seeds.to_vec(), |seed| vec![seed])
}

/// The requests that the study will simulate: the length of its progress bar.
#[must_use]
pub fn requests(effort: Effort, figure: Option<u32>, seed: Option<u64>) -> u64 {
    let extent = Extent::of(effort);
    let of_seed: u64 = cells(figure).iter().map(|run| extent.requests(run)).sum();
    of_seed * seeds(&extent, seed).len() as u64
}

/// The workloads of one seed.
struct SeedWorkloads {
    seed: u64,
    grains: Vec<(Grain, Workload)>,
    /// A longer one, for what is held to theory.
    theory: Option<Workload>,
}

impl SeedWorkloads {
    fn new(seed: u64, extent: &Extent, with_theory: bool) -> Result<Self, WorkloadError> {
        let make = |grain: Grain, requests: u64| {
            let ((name, generator), requests) = (grain.workload(), requests.to_string());
            Workload::synthesize(name, &[("generator", generator), ("requests", &requests)], seed)
        };
        let of = |grain: Grain| Ok((grain, make(grain, extent.requests)?));
        let grains = Grain::ALL.into_iter().map(of).collect::<Result<_, WorkloadError>>()?;
        let theory = with_theory.then(|| make(Grain::PoissonExp, extent.theory_requests)).transpose()?;
        Ok(Self { seed, grains, theory })
    }

    fn of(&self, run: &FineGrainRun) -> Option<&Workload> {
        if run.exact_theory {
            return self.theory.as_ref();
        }
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
    let extent = Extent::of(effort);
    let planned = cells(figure);
    let simulated = figure.is_none_or(|figure| figure != PROTOTYPE_FIGURE);
    let with_theory = planned.iter().any(|run| run.exact_theory);
    let used_seeds = if simulated { seeds(&extent, seed) } else { Vec::new() };
    let workloads = used_seeds
        .into_par_iter()
        .map(|seed| SeedWorkloads::new(seed, &extent, with_theory))
        .collect::<Result<Vec<_>, WorkloadError>>()?;
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
    if figure.is_none_or(|figure| figure == 2) {
        measure_ages(&mut seeds, &workloads)?;
    }
    let mut calibration = claims::theory(&seeds);
    calibration.extend(claims::calibration(&seeds));
    calibration.extend(calibration_prototype::calibration(prototype));
    let specs = [claims::SPECS, claims_broadcast::SPECS, claims_polling::SPECS];
    let mut claims: Vec<Claim> =
        specs.iter().flat_map(|specs| rule::evaluate(specs, figure, &seeds)).collect();
    claims.extend(claims_prototype::claims(prototype));
    let report = figures::report(effort, figure, (&calibration, &claims), &seeds, prototype);
    let runs = seeds.into_iter().flat_map(|results| results.runs.into_values()).collect();
    Ok(FineGrainStudy { calibration, claims, runs, report })
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_every_figure_has_claims() {
        let all: Vec<_> =
            [claims::SPECS, claims_broadcast::SPECS, claims_polling::SPECS].into_iter().flatten().collect();
        let ids: Vec<_> = all.iter().map(|spec| spec.id).chain(claims_prototype::ids()).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
        for figure in FIGURES {
            assert!(all.iter().any(|spec| spec.place.figure() == Some(figure)), "figure {figure}");
        }
    }

    #[test]
    fn a_figure_is_reproduced_and_its_claims_are_judged() {
        let study = reproduce(Effort::Quick, Some(2), Some(4), &ServicePrototype::default(), &()).unwrap();
        assert!(study.runs.is_empty() && study.claims.len() > 3);
        assert!(study.report.to_html().contains("Figure 2"));
        let again = reproduce(Effort::Quick, Some(2), Some(4), &ServicePrototype::default(), &()).unwrap();
        assert_eq!(study.report.to_html(), again.report.to_html());
    }
}
