//! The stress matrix: where does each policy lose, and how much?
//!
//! A matrix of cells (workload, back-ends, memory, load, cluster, hardware) is too large to be run whole: a seeded sample of it is, and the
//! cells that are known to be hard. Every cell stands for itself: it is data ([`MatrixCell`]), its result is data ([`CellResult`]), and results
//! of several machines are joined by putting them one behind the other.

mod bound;
mod cell;
mod contenders;
mod figures;
mod regret;
mod run;
mod sample;
mod setting;
mod trained;
pub mod workloads;

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

pub use cell::{ClusterShape, Half, Load, MatrixCell};
pub use contenders::{ABLATIONS, HASHING, ablations, contenders};
pub use figures::{BOUND, conclusion, lost_cells, picture, regrets_table, report};
pub use regret::{Standing, quantile, standings};
pub use run::{CellOutcome, CellResult, RULE, run_cell, run_policy};
pub use sample::{known_hard, sample, sample_of_traces};

pub use workloads::Traces;

use crate::matrix::Progress;
use crate::scenario::ScenarioError;
use crate::spec::StrategyChoice;
use crate::study_error::StudyError;

/// The policy that is judged.
pub const JUDGED: &str = "lard_auto";

/// Requests of each cell.
pub const REQUESTS: u64 = 100_000;
/// The same in the quick form.
pub const QUICK_REQUESTS: u64 = 20_000;

/// How much of the matrix to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixSetting {
    /// Few cells, few policies and few requests.
    pub quick: bool,
    /// Only cells of this half.
    pub half: Option<Half>,
    /// Seed of the sample.
    pub seed: u64,
    /// Cells of each half, in place of what is usual.
    pub per_half: Option<u32>,
    /// `lard_auto` without each of its rules as well.
    pub ablate: bool,
}

impl MatrixSetting {
    /// The cells, numbered.
    #[must_use]
    pub fn cells(&self, traces: &Traces) -> Vec<MatrixCell> {
        let (per_half, per_trace, requests) =
            if self.quick { (6, 1, QUICK_REQUESTS) } else { (30, 6, REQUESTS) };
        let mut cells = if self.quick { Vec::new() } else { known_hard(requests, self.seed) };
        cells.extend(sample(self.per_half.unwrap_or(per_half), requests, self.seed));
        let of_traces: Vec<(String, u64)> = traces
            .iter()
            .map(|(name, workload)| (name.clone(), workload.trace.len().min(requests)))
            .collect();
        cells.extend(sample_of_traces(&of_traces, per_trace, self.seed));
        for (number, cell) in cells.iter_mut().enumerate() {
            cell.number = number as u32;
        }
        cells.retain(|cell| self.half.is_none_or(|half| cell.half == half));
        cells
    }

    /// The policies.
    ///
    /// # Errors
    /// When one does not take its parameters.
    pub fn contenders(&self) -> Result<Vec<StrategyChoice>, ScenarioError> {
        let mut all = contenders(self.quick)?;
        if self.ablate {
            all.extend(ablations()?);
        }
        Ok(all)
    }
}

/// The requests that these cells simulate: the length of a progress bar.
#[must_use]
pub fn requests(cells: &[MatrixCell], contenders: &[StrategyChoice]) -> u64 {
    let runs = contenders.len() as u64 + run::RUNS_BESIDE;
    cells.iter().map(|cell| cell.requests * runs).sum()
}

/// Runs the cells, one per CPU at a time; results in their order.
///
/// # Errors
/// The first failure in their order.
pub fn reproduce(
    cells: &[MatrixCell],
    contenders: &[StrategyChoice],
    traces: &Traces,
    progress: &dyn Progress,
) -> Result<Vec<CellResult>, StudyError> {
    let failed = AtomicBool::new(false);
    let advance = |requests| progress.advance(requests);
    let run = |cell: &MatrixCell| {
        if failed.load(Ordering::Relaxed) {
            return Err(ScenarioError::Stopped.into());
        }
        run_cell(cell, contenders, traces, &advance).inspect_err(|_| failed.store(true, Ordering::Relaxed))
    };
    let results: Vec<Result<CellResult, StudyError>> = cells.par_iter().with_max_len(1).map(run).collect();
    let stopped = |error: &StudyError| matches!(error, StudyError::Scenario(ScenarioError::Stopped));
    let (done, mut errors) =
        results.into_iter().fold((Vec::new(), Vec::new()), |(mut done, mut errors), result| {
            match result {
                Ok(result) => done.push(result),
                Err(error) => errors.push(error),
            }
            (done, errors)
        });
    let first = errors.iter().position(|error| !stopped(error)).unwrap_or(0);
    if errors.is_empty() { Ok(done) } else { Err(errors.swap_remove(first)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_cells_end_to_end_and_the_same_again() {
        let setting = MatrixSetting {
            quick: true,
            half: Some(Half::Judging),
            seed: 1,
            per_half: Some(2),
            ablate: false,
        };
        let mut cells = setting.cells(&Traces::new());
        cells.iter_mut().for_each(|cell| cell.requests = 2_000);
        let few = StrategyChoice::list("uri_hash,lard_auto,lard_r:t_low=4,t_high=10").unwrap();
        let results = reproduce(&cells, &few, &Traces::new(), &()).unwrap();
        assert_eq!(results, reproduce(&cells, &few, &Traces::new(), &()).unwrap());
        assert!(results.iter().all(|of| of.outcomes.len() == 4 && of.capacity_rps > 0.0));
        let text = serde_json::to_string(&results[0]).unwrap();
        let read: CellResult = serde_json::from_str(&text).unwrap();
        assert_eq!((&read.cell, read.outcomes.len()), (&results[0].cell, 4));
        assert!(conclusion(&results, JUDGED).contains("of 2 cells"));
        assert!(regrets_table(&results).to_text().contains("lard_r, best parameters"));
    }
}
