//! What goes wrong with a lab.

use std::io;

/// Why a lab, or something in it, is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The process may not do what a lab needs.
    #[error("a lab needs root: this process lacks {missing}. Run it as root, for example with sudo")]
    Privileges {
        /// The missing capabilities, for example `CAP_SYS_ADMIN, CAP_NET_ADMIN`.
        missing: String,
    },
    /// A program is not installed.
    #[error("the program `{program}` is missing; install it (Debian package {package})")]
    Program {
        /// What was to be run.
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
    /// This machine cannot do it.
    #[error("{what} is not possible here: {why}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// What is missing.
        why: String,
    },
    /// What was asked for makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The operating system refused something else.
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
