//! Runs simulations side by side.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_report::Run;
use rayon::prelude::*;

use crate::execute::{Extent, execute_recording};
use crate::matrix::{Progress, StudyObserver};
use crate::scenario::{Scenario, ScenarioError};
use crate::study_error::StudyError;
use crate::workload::Workload;

/// Runs in the order of their scenarios.
pub(super) fn run_all(
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
