//! Where a trace is read from.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a trace comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceInput {
    /// A file, plain or compressed with gzip, zstd or xz.
    File(PathBuf),
    /// Standard input, plain or compressed likewise.
    Stdin,
}

impl TraceInput {
    /// The input a command-line argument names: `-` is standard input, all else a file.
    pub fn from_arg(arg: impl AsRef<Path>) -> Self {
        let path = arg.as_ref();
        if path.as_os_str() == "-" { Self::Stdin } else { Self::File(path.to_owned()) }
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stdin => None,
        }
    }
}

impl fmt::Display for TraceInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Stdin => f.write_str("-"),
        }
    }
}
