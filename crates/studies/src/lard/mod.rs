//! The simulation study of Pai et al., "Locality-aware request distribution in cluster-based network servers", ASPLOS
//! 1998, sections 3 and 4: figures 5 to 14, the hot-target and delay paragraphs.
//!
//! The traces were never published, and their published statistics do not pin a workload. Each claim is therefore
//! measured on several equally well calibrated generators and seeds, and reported with the spread.

mod claims;
mod claims_other;
mod figures;
mod plan;
mod results;
mod rule;

use plimsoll_report::{Claim, Report, Run};

use crate::matrix::{Progress, run_all};
use crate::scenario::ScenarioError;
use crate::workload::WorkloadError;

pub use plan::{Effort, FIGURES};
use plan::{Instance, instances, scenarios};
use results::Results;

/// What the study found.
pub struct Study {
    /// Every claim with what was measured.
    pub claims: Vec<Claim>,
    /// Every run.
    pub runs: Vec<Run>,
    /// Figures and claims as a report.
    pub report: Report,
}

/// A study that could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A workload could not be made.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A run failed.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// How many requests the study will simulate: the length of its progress.
#[must_use]
pub fn requests(effort: Effort, figure: Option<u32>) -> u64 {
    instances(effort, figure)
        .iter()
        .map(|i| scenarios(i, effort, figure).len() as u64 * i.expected_requests())
        .sum()
}

/// Runs the study, or the part of it that one figure needs.
///
/// # Errors
/// When a workload cannot be made or a run fails.
pub fn reproduce(effort: Effort, figure: Option<u32>, progress: &dyn Progress) -> Result<Study, StudyError> {
    let mut results = Results::default();
    for instance in instances(effort, figure) {
        let workload = instance.workload()?;
        let planned = scenarios(&instance, effort, figure);
        let scenarios: Vec<_> = planned.iter().map(|p| p.scenario.clone()).collect();
        let runs = run_all(&scenarios, &workload, progress, |_| None)?;
        results.add_workload(&instance, &workload)?;
        for (planned, run) in planned.into_iter().zip(runs) {
            results.add(&instance, planned.variant, run);
        }
    }
    let mut found = claims::evaluate(&results);
    if let Some(figure) = figure {
        let name = format!("figure {figure}");
        found.retain(|claim| claim.figure == name);
    }
    let report = figures::report(effort, figure, &found, &results);
    Ok(Study { claims: found, runs: results.into_runs(), report })
}

/// A workload instance in the words of the report.
fn label(instance: &Instance) -> String {
    format!("{}, seed {}", instance.name(), instance.seed)
}
