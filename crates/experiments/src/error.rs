//! Errors of measurements.

use std::io;
use std::path::{Path, PathBuf};

use plimsoll_lab::LabError;
use plimsoll_policy::BuildError;
use plimsoll_testbed::trial::TrialError;

/// Why a live cluster could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The lab could not be built or used.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A trial could not be run.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// There is no such policy.
    #[error(transparent)]
    Policy(#[from] BuildError),
    /// A file on a node cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Anything else, with a remedy if there is one.
    #[error("{0}")]
    Failed(String),
}

impl ExperimentError {
    pub(crate) fn writing(path: &Path, error: io::Error) -> Self {
        Self::Write { path: path.to_owned(), error }
    }
}
