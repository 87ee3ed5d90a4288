//! Executes many runs in parallel.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_report::Run;
use plimsoll_sim::{DecisionMade, RunObserver};
use rayon::prelude::*;

use crate::execute::execute;
use crate::scenario::{Scenario, ScenarioError, check};
use crate::workload::Workload;

/// Receives progress reports from several threads.
pub trait Progress: Sync {
    /// `requests` more have been simulated.
    fn advance(&self, requests: u64);
}

/// Ignores progress.
impl Progress for () {
    fn advance(&self, _: u64) {}
}

/// Passes a run's progress on, and stops it when another one has failed.
pub(crate) struct StudyObserver<'a> {
    progress: &'a dyn Progress,
    failed: &'a AtomicBool,
    reported: u64,
    decisions: Option<&'a mut dyn FnMut(DecisionMade)>,
}

impl<'a> StudyObserver<'a> {
    /// Of a run whose decisions nobody wants.
    pub(crate) fn new(progress: &'a dyn Progress, failed: &'a AtomicBool) -> Self {
        Self { progress, failed, reported: 0, decisions: None }
    }

    /// The run of so many requests has ended: the rest is done, too.
    pub(crate) fn ended(&self, requests: u64) {
        self.progress.advance(requests.saturating_sub(self.reported));
    }
}

impl RunObserver for StudyObserver<'_> {
    fn decided(&mut self, decided: DecisionMade) {
        if let Some(decisions) = &mut self.decisions {
            decisions(decided);
        }
    }

    fn progress(&mut self, arrived: u64) -> bool {
        self.progress.advance(arrived.saturating_sub(self.reported));
        self.reported = self.reported.max(arrived);
        !self.failed.load(Ordering::Relaxed)
    }
}

/// Receives the decisions of one run.
pub type DecisionSink<'a> = Box<dyn FnMut(DecisionMade) + Send + 'a>;

/// Runs every scenario on the workload, one per CPU at a time; results in the order of the scenarios. `sink`
/// makes the [`DecisionSink`] for each scenario number.
///
/// # Errors
/// The first failure in the order of the scenarios; the other runs are stopped.
pub fn run_all<'a>(
    scenarios: &[Scenario],
    workload: &Workload,
    progress: &dyn Progress,
    sink: impl Fn(usize) -> Option<DecisionSink<'a>> + Sync,
) -> Result<Vec<Run>, ScenarioError> {
    check(scenarios)?;
    let failed = AtomicBool::new(false);
    let results: Vec<Result<Run, ScenarioError>> = scenarios
        .par_iter()
        .enumerate()
        .with_max_len(1)
        .map(|(index, scenario)| {
            let mut decisions = sink(index);
            let decisions = decisions.as_mut().map(|sink| &mut **sink as &mut dyn FnMut(DecisionMade));
            let mut watch = StudyObserver { decisions, ..StudyObserver::new(progress, &failed) };
            let result = execute(scenario, workload, &mut watch);
            match &result {
                Ok(run) => watch.ended(run.requests + scenario.warmup),
                Err(_) => failed.store(true, Ordering::Relaxed),
            }
            result
        })
        .collect();
    let mut runs = Vec::with_capacity(results.len());
    let mut stopped = None;
    for result in results {
        match result {
            Ok(run) => runs.push(run),
            Err(ScenarioError::Stopped) => stopped = Some(ScenarioError::Stopped),
            Err(error) => return Err(error),
        }
    }
    stopped.map_or(Ok(runs), Err)
}
