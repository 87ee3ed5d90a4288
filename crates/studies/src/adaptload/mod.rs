//! The simulation study of Zhang, Riska, Sun, Smirni and Ciardo, "Workload-aware load balancing for clustered web
//! servers" (AdaptLoad): figures 1, 2, 5 to 12 and 14.
//!
//! The study ran on the World Cup trace of 24 June 1998. Here it runs on a synthetic day that meets the
//! published statistics and varies over its hours as in figure 2, or on the user's own trace. How long files stay
//! in use is not published. So claims are judged over several seeds and two generators; figures show the first day.

mod calibration;
mod claims;
mod claims_caches;
mod claims_load;
mod claims_sections;
mod cluster;
mod day;
mod explain;
mod figures;
mod june_30;
mod measures;
mod other_day;
mod plan;
mod policies_table;
mod results;
mod rule;
#[cfg(test)]
mod testing;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_report::{Claim, Report, Run};
use plimsoll_sim::{Recording, RunObserver};
use rayon::prelude::*;

use crate::execute::{Extent, execute_recording};
pub use crate::lard::Effort;
use crate::matrix::Progress;
use crate::scenario::ScenarioError;
pub use crate::study_error::StudyError;
use cluster::DayLoad;
use day::Day;
pub use day::{DaySource, Setting};
pub use plan::FIGURES;
use plan::{DayRun, cells, other_cells};
use results::{AdaptLoadResults, Done};

/// The results of the study.
pub struct AdaptLoadStudy {
    /// The published statistics to which workload and speeds are calibrated, with the values reached.
    pub calibration: Vec<Claim>,
    /// Every claim with its measurements.
    pub claims: Vec<Claim>,
    /// Every run.
    pub runs: Vec<Run>,
    /// Figures and claims as a report.
    pub report: Report,
}

/// The most requests that the study will simulate: the length of its progress bar.
#[must_use]
pub fn requests(effort: Effort, figure: Option<u32>, source: &DaySource, setting: Setting) -> u64 {
    let (requests, days) = day::expected_requests(source, effort, setting.seed);
    let runs: usize = (0..days).map(|day| cells(effort, figure, day == 0).len()).sum();
    let (other_requests, other_days) = day::other_requests(source, effort, setting.seed);
    runs as u64 * requests + (other_cells(figure).len() * other_days) as u64 * other_requests
}

/// Passes progress on, and stops when another run has failed.
struct DayObserver<'a> {
    progress: &'a dyn Progress,
    failed: &'a AtomicBool,
    reported: u64,
}

impl RunObserver for DayObserver<'_> {
    fn progress(&mut self, arrived: u64) -> bool {
        self.progress.advance(arrived - self.reported);
        self.reported = arrived;
        !self.failed.load(Ordering::Relaxed)
    }
}

/// Runs the study, or the runs for one figure.
///
/// # Errors
/// When the workload cannot be made or read, or a run fails.
pub fn reproduce(
    effort: Effort,
    figure: Option<u32>,
    source: DaySource,
    setting: Setting,
    progress: &dyn Progress,
) -> Result<AdaptLoadStudy, StudyError> {
    let synthetic = !matches!(source, DaySource::Trace(_));
    let cells_of = |day: usize| cells(effort, figure, day == 0);
    let days = execute_days(Day::all(source, effort, setting)?, cells_of, progress)?;
    let others = if synthetic && !other_cells(figure).is_empty() {
        execute_days(Day::others(effort, setting)?, |_| other_cells(figure), progress)?
    } else {
        Vec::new()
    };
    let mut calibration = rule::evaluate(&[calibration::SPECS], figure, &days);
    calibration.extend(rule::evaluate(&[other_day::CALIBRATION], figure, &others));
    let mut claims = rule::evaluate(&CLAIMS, figure, &days);
    claims.extend(rule::evaluate(&[other_day::SPECS], figure, &others));
    let report = figures::report(effort, figure, (&calibration, &claims), &days, &others, synthetic);
    let runs = days.into_iter().chain(others).flat_map(AdaptLoadResults::into_runs).collect();
    Ok(AdaptLoadStudy { calibration, claims, runs, report })
}

/// Makes the runs of all days side by side.
fn execute_days(
    days: Vec<Day>,
    cells_of: impl Fn(usize) -> Vec<DayRun>,
    progress: &dyn Progress,
) -> Result<Vec<AdaptLoadResults>, StudyError> {
    let of_day = |day: usize| cells_of(day).into_iter().map(move |cell| (day, cell));
    let planned: Vec<(usize, DayRun)> = (0..days.len()).flat_map(of_day).collect();
    let failed = AtomicBool::new(false);
    let run = |&(day, cell): &(usize, DayRun)| {
        let done = execute_cell(cell, &days[day], progress, &failed);
        failed.fetch_or(done.is_err(), Ordering::Relaxed);
        done
    };
    let done: Vec<Result<Done, ScenarioError>> = planned.par_iter().with_max_len(1).map(run).collect();
    let mut made: Vec<BTreeMap<DayRun, Done>> = days.iter().map(|_| BTreeMap::new()).collect();
    let mut stopped = false;
    for ((day, cell), done) in planned.into_iter().zip(done) {
        match done {
            Ok(done) => drop(made[day].insert(cell, done)),
            Err(ScenarioError::Stopped) => stopped = true,
            Err(error) => return Err(error.into()),
        }
    }
    if stopped {
        return Err(ScenarioError::Stopped.into());
    }
    Ok(days.into_iter().zip(made).map(|(day, made)| AdaptLoadResults::new(day, made)).collect())
}

/// In the paper's order.
const CLAIMS: [&[rule::AdaptLoadClaimSpec]; 4] =
    [claims::SPECS, claims_caches::SPECS, claims_load::SPECS, claims_sections::SPECS];

fn execute_cell(
    cell: DayRun,
    day: &Day,
    progress: &dyn Progress,
    failed: &AtomicBool,
) -> Result<Done, ScenarioError> {
    let scenario = cell.scenario(day)?;
    let recording = Recording { point_every: Some(day.point_every), by_size: true };
    let start = plimsoll_policy::Time::ZERO;
    let until = day.until_s(cell.load).map(|s| start + plimsoll_policy::Nanos::new((s * 1e9) as u64));
    let mut watch = DayObserver { progress, failed, reported: 0 };
    let (mut run, outcome) = execute_recording(
        &scenario,
        &day.workload,
        Extent { until, recording, ..Extent::default() },
        &mut watch,
    )?;
    progress.advance(day.workload.trace.len().saturating_sub(watch.reported));
    let part = match cell.load {
        DayLoad::Day => "",
        DayLoad::Quiet { heavy: false } => ", to 45,000 s, light load",
        DayLoad::Quiet { heavy: true } => ", to 45,000 s, heavy load",
        DayLoad::Peak { heavy: false } => ", to 68,000 s, light load",
        DayLoad::Peak { heavy: true } => ", to 68,000 s, heavy load",
    };
    run.trace.path += part;
    Ok(Done { run, points: outcome.points, classes: outcome.size_classes })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_every_figure_has_claims() {
        let others = other_day::SPECS.iter().chain(other_day::CALIBRATION);
        let all: Vec<_> = CLAIMS.iter().copied().flatten().chain(calibration::SPECS).chain(others).collect();
        assert_eq!(all.iter().map(|spec| spec.id).collect::<BTreeSet<_>>().len(), all.len());
        for figure in FIGURES {
            assert!(all.iter().any(|spec| spec.place.figure() == Some(figure)), "figure {figure}");
        }
    }

    #[test]
    fn claims_that_need_no_runs_are_measured_on_a_small_trace() {
        let made = plimsoll_synth::build("worldcup", &[("requests", "60000")], 1).unwrap();
        let workload = crate::Workload::of_synthetic(&made, None).unwrap();
        let study =
            reproduce(Effort::Quick, Some(2), DaySource::Trace(Box::new(workload)), Setting::default(), &())
                .unwrap();
        assert!(study.runs.is_empty() && !study.calibration.is_empty());
        assert!(study.report.to_html().contains("Figure 2"));
    }

    #[test]
    fn a_figure_is_run_on_a_small_trace() {
        let made = plimsoll_synth::build("worldcup", &[("requests", "60000")], 1).unwrap();
        let workload = crate::Workload::of_synthetic(&made, None).unwrap();
        let study =
            reproduce(Effort::Quick, Some(9), DaySource::Trace(Box::new(workload)), Setting::default(), &())
                .unwrap();
        assert_eq!(study.runs.len(), 3);
        assert!(study.runs.iter().all(|run| run.completed == 60_000));
        assert!(study.claims.iter().any(|claim| claim.id == "a33"));
    }
}
