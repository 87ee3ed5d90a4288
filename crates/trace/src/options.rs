//! Inputs and options for reading.

use crate::field_map::FieldMap;
use crate::format::Format;

/// Which logged requests become records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Include {
    /// Requests answered with a document: GET or HEAD with status 200, 206 or 304.
    #[default]
    Counted,
    /// Everything whose target can be used, whatever its method and status.
    All,
}

/// How to read a trace.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Format of every input; `None` to recognise it by the content.
    pub format: Option<Format>,
    /// Which named fields of a log say what; `None` for those of its format.
    pub fields: Option<FieldMap>,
    /// Seed of the spreading of whole-second stamps within their second.
    pub seed: u64,
    /// Share of lines, from 0 to 1, that may be unusable before reading is an error.
    pub max_bad_ratio: f64,
    /// Which logged requests become records.
    pub include: Include,
    /// Stop after so many records; `None` reads to the end.
    pub limit: Option<u64>,
    /// Leave the query (`?` and what follows) out of the target.
    pub strip_query: bool,
    /// How many seconds older than the newest line a line may be and still be sorted in.
    pub reorder_window_s: u64,
    /// How many records may wait to be sorted.
    pub reorder_records: usize,
    /// Bytes of encoded records kept in memory before a temporary file takes over.
    pub spool_memory_bytes: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            fields: None,
            seed: 1,
            max_bad_ratio: 0.05,
            include: Include::Counted,
            limit: None,
            strip_query: false,
            reorder_window_s: 600,
            reorder_records: 1_000_000,
            spool_memory_bytes: 32 << 20,
        }
    }
}
