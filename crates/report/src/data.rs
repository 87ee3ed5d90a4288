//! Results as files for further analysis: CSV (RFC 4180) and Parquet, with the same columns in both.

mod columns;
mod error;
mod parquet_file;

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

pub use error::DataError;

use crate::{
    data::columns::{ColumnValue, DataColumn, LoadRow, RUNS, load_columns, load_rows},
    data::error::{Cause, failure},
    run::Run,
};

/// Writes one row per run. Summaries are spread over columns such as `response_time_p99_s`; `params`, `policy_stats`
/// and `per_backend` are columns of JSON; what does not apply is empty.
///
/// # Errors
/// When the file cannot be created or written.
pub fn write_runs_csv(path: impl AsRef<Path>, runs: &[Run]) -> Result<(), DataError> {
    let path = path.as_ref();
    csv_file(path, RUNS, runs.iter()).map_err(|source| failure(path, source))
}

/// Writes what [`write_runs_csv`] writes, as Parquet; what does not apply is null. `per_backend` is a list of structs there,
/// `policy_stats` a map to numbers, and `params` one to texts.
///
/// # Errors
/// When the file cannot be created or written.
pub fn write_runs_parquet(path: impl AsRef<Path>, runs: &[Run]) -> Result<(), DataError> {
    let path = path.as_ref();
    let write = || {
        let mut file = parquet_file::ParquetWriter::create(path, "runs", RUNS)?;
        file.row_group(RUNS, runs)?;
        file.finish()
    };
    write().map_err(|source| failure(path, source))
}

/// Writes the load over time, one row per policy, number of back-ends, seed, back-end and time bucket: `policy`,
/// `backends`, `seed`, `backend` (from 0), `time_s` (start of the bucket) and `load` (mean in the bucket).
///
/// # Errors
/// When the file cannot be created or written.
pub fn write_load_csv(path: impl AsRef<Path>, runs: &[Run]) -> Result<(), DataError> {
    let path = path.as_ref();
    csv_file(path, &load_columns(), runs.iter().flat_map(load_rows)).map_err(|source| failure(path, source))
}

/// Writes what [`write_load_csv`] writes, as Parquet, with one row group per run.
///
/// # Errors
/// When the file cannot be created or written.
pub fn write_load_parquet(path: impl AsRef<Path>, runs: &[Run]) -> Result<(), DataError> {
    let path = path.as_ref();
    let write = || {
        let mut file = parquet_file::ParquetWriter::create(path, "load", &load_columns())?;
        for run in runs {
            let rows: Vec<LoadRow<'_>> = load_rows(run).collect();
            file.row_group(&load_columns(), &rows)?;
        }
        file.finish()
    };
    write().map_err(|source| failure(path, source))
}

fn csv_file<R: std::borrow::Borrow<T>, T>(
    path: &Path,
    columns: &[DataColumn<T>],
    rows: impl Iterator<Item = R>,
) -> Result<(), Cause> {
    let mut writer = csv::Writer::from_writer(BufWriter::new(File::create(path)?));
    writer.write_record(columns.iter().map(|column| column.name))?;
    for row in rows {
        writer.write_record(columns.iter().map(|column| csv_field(column, row.borrow())))?;
    }
    let mut file = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    Ok(file.flush()?)
}

fn csv_field<T>(column: &DataColumn<T>, row: &T) -> String {
    match (column.json, (column.value)(row)) {
        (Some(json), _) => json(row),
        (None, ColumnValue::Text(text)) => text,
        (None, ColumnValue::Count(count)) => count.to_string(),
        (None, ColumnValue::Number(number)) => number.to_string(),
        (None, ColumnValue::Null | ColumnValue::Nested(_)) => String::new(),
    }
}
