//! The trace formats, one decoder each, and the registry that command line and reports read.

pub mod csv;
pub mod log;
pub mod oracle;
pub mod parquet;
pub(crate) mod parquet_columns;
pub mod time_id_size;
pub mod worldcup;

use crate::format_spec::FormatSpec;

/// Every format, in the order in which messages list them.
pub static FORMATS: &[&FormatSpec] = &[
    &log::COMMON_SPEC,
    &log::COMBINED_SPEC,
    &worldcup::SPEC,
    &oracle::SPEC,
    &time_id_size::SPEC,
    &csv::SPEC,
    &parquet::SPEC,
];
