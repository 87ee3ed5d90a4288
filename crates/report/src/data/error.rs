//! Why results could not be written.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file of results could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: the results could not be written: {source}", path.display())]
pub struct DataError {
    path: PathBuf,
    source: Cause,
}

/// The error of the library concerned.
#[derive(Debug, thiserror::Error)]
pub(super) enum Cause {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Csv(#[from] csv::Error),
    #[error(transparent)]
    Parquet(#[from] parquet::errors::ParquetError),
}

pub(super) fn failure(path: &Path, source: Cause) -> DataError {
    DataError { path: path.to_owned(), source }
}
