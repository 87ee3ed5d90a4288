//! What is wrong with a file of TLS.

use std::path::{Path, PathBuf};

/// What is wrong with a file, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}; {remedy}", .file.display())]
pub struct TlsFileError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub remedy: String,
}

impl TlsFileError {
    pub(crate) fn of(file: &Path, what: impl Into<String>, remedy: &str) -> Self {
        Self { file: file.to_owned(), what: what.into(), remedy: remedy.to_owned() }
    }
}
