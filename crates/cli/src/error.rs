//! Errors as the user sees them: one paragraph, and the exit code.

use std::fmt;
use std::io;
use std::process::ExitCode;

use plimsoll_config::ConfigErrors;
use plimsoll_experiments::ExperimentError;
use plimsoll_policy::BuildError;
use plimsoll_studies::WorkloadError;
use plimsoll_studies::lard::StudyError;
use plimsoll_studies::scenario::ScenarioError;
use plimsoll_synth::SynthError;
use plimsoll_testbed::trial::TrialError;
use plimsoll_trace::TraceError;

/// The error that ends a command.
#[derive(Debug)]
pub(crate) enum CliError {
    /// The command line is wrong: exit code 2.
    Usage(String),
    /// The work could not be done: exit code 1.
    Failed(String),
    /// Standard output was closed by its reader.
    ClosedPipe,
}

impl CliError {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failed(_) => ExitCode::from(1),
            Self::ClosedPipe => ExitCode::SUCCESS,
        }
    }

    /// A configuration with these mistakes.
    pub(crate) fn config(path: &std::path::Path, errors: &ConfigErrors) -> Self {
        let (count, s) = (errors.errors().len(), if errors.errors().len() == 1 { "" } else { "s" });
        let rendered = errors.render();
        Self::Failed(format!("{} is not good: {count} error{s}\n{}", path.display(), rendered.trim_end()))
    }

    /// A file that cannot be written.
    pub(crate) fn writing(path: &std::path::Path, error: &io::Error) -> Self {
        Self::Failed(format!("cannot write {}: {error}", path.display()))
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Failed(text) => f.write_str(text),
            Self::ClosedPipe => f.write_str("standard output was closed"),
        }
    }
}

impl From<io::Error> for CliError {
    /// An error of writing to standard output.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::ClosedPipe;
        }
        Self::Failed(format!("cannot write to standard output: {error}"))
    }
}

impl From<TraceError> for CliError {
    fn from(error: TraceError) -> Self {
        if matches!(error, TraceError::ClosedPipe) {
            return Self::ClosedPipe;
        }
        Self::Failed(error.to_string())
    }
}

impl From<SynthError> for CliError {
    fn from(error: SynthError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<BuildError> for CliError {
    fn from(error: BuildError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<WorkloadError> for CliError {
    fn from(error: WorkloadError) -> Self {
        match error {
            WorkloadError::Synth(error) => error.into(),
            WorkloadError::Trace(error) => error.into(),
            WorkloadError::Unknown(_) => Self::Usage(error.to_string()),
        }
    }
}

impl From<ScenarioError> for CliError {
    fn from(error: ScenarioError) -> Self {
        match error {
            ScenarioError::Trace(error) => error.into(),
            ScenarioError::Stopped => Self::Failed(error.to_string()),
            _ => Self::Usage(error.to_string()),
        }
    }
}

impl From<StudyError> for CliError {
    fn from(error: StudyError) -> Self {
        match error {
            StudyError::Workload(error) => error.into(),
            StudyError::Scenario(error) => error.into(),
        }
    }
}

impl From<TrialError> for CliError {
    fn from(error: TrialError) -> Self {
        match error {
            TrialError::Speed(_) => Self::Usage(error.to_string()),
            TrialError::Cluster(_) | TrialError::FrontEnd(_) => Self::Failed(error.to_string()),
        }
    }
}

impl From<ExperimentError> for CliError {
    fn from(error: ExperimentError) -> Self {
        match error {
            ExperimentError::Lab(error) => error.into(),
            ExperimentError::Trial(error) => error.into(),
            ExperimentError::Policy(error) => error.into(),
            ExperimentError::Write { .. } | ExperimentError::Failed(_) => Self::Failed(error.to_string()),
        }
    }
}
