//! What can go wrong.

use std::io;

use plimsoll_policy::ChoiceError;

/// Why a client cannot be made, or its replicas not be changed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The policy cannot be used.
    #[error("service `{service}`: {error}")]
    Policy {
        /// The service.
        service: String,
        /// What is wrong.
        error: ChoiceError,
    },
    /// A setting cannot be used.
    #[error("service `{service}`: {what}")]
    Setting {
        /// The service.
        service: String,
        /// The setting, what is wrong with it, and what would be right.
        what: String,
    },
    /// Two replicas have one name.
    #[error("service `{service}`: two replicas are called `{name}`; give each a name of its own")]
    SameName {
        /// The service.
        service: String,
        /// The name.
        name: String,
    },
    /// There are more replicas than a policy can tell apart.
    #[error("service `{service}`: a partition has at most 65,535 replicas")]
    TooMany {
        /// The service.
        service: String,
    },
    /// A configuration text cannot be read.
    #[error("the configuration of services cannot be read: {0}")]
    Text(String),
    /// The key cannot be read.
    #[error(transparent)]
    Key(#[from] plimsoll_wire::KeyError),
    /// The system refuses something.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
}

/// Why no back-end was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// No replica serves the partition.
    #[error("no replica serves this partition")]
    UnknownPartition,
    /// No replica takes accesses now.
    #[error("no replica of this partition takes accesses now")]
    NoBackend,
    /// As many accesses wait as may wait.
    #[error("too many accesses wait")]
    QueueFull,
    /// It waited for as long as it may.
    #[error("the access has waited for room too long")]
    WaitedTooLong,
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError<E> {
    /// The last attempt failed with this error, or it is the service's answer.
    #[error("attempt {attempts} failed: {error}")]
    Failed {
        /// Of the last attempt that failed.
        error: E,
        /// Attempts that were begun.
        attempts: u32,
    },
    /// The last attempt took longer than it may.
    #[error("attempt {attempts} timed out")]
    TimedOut {
        /// Attempts that were begun.
        attempts: u32,
    },
    /// No back-end was chosen for the first attempt.
    #[error(transparent)]
    NotChosen(#[from] ChooseError),
}
