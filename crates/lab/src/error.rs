//! Errors of labs.

use std::io;

/// Why a lab cannot be built or an operation on it failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The process lacks privileges that a lab needs.
    #[error("a lab needs root: this process lacks {missing}. Run it as root, for example with sudo")]
    Privileges {
        /// The missing capabilities, for example `CAP_SYS_ADMIN, CAP_NET_ADMIN`.
        missing: String,
    },
    /// A program is not installed.
    #[error("the program `{program}` is missing; install it (Debian package {package})")]
    Program {
        /// The program.
        program: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A program that the lab ran failed.
    #[error("`{command}` failed ({status}): {printed}")]
    Command {
        /// The command line, or for several commands at once the one that failed.
        command: String,
        /// How it ended.
        status: String,
        /// What it printed to standard error, else to standard output.
        printed: String,
    },
    /// This machine does not support it.
    #[error("{what} is not possible here: {why}")]
    Unsupported {
        /// The requested feature.
        what: String,
        /// What is missing.
        why: String,
    },
    /// The arguments are invalid.
    #[error("{0}")]
    Invalid(String),
    /// Another system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// What the lab tried, as a verb with its object.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl LabError {
    /// A failed system call, with what was tried.
    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), source: source.into() }
    }
}
