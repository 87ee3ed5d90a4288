//! Why a study cannot be finished.

use crate::scenario::ScenarioError;
use crate::workload::WorkloadError;

/// Why a study could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A workload could not be made.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A run failed.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}
