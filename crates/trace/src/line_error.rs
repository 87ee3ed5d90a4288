//! Why a line was not used.

use std::fmt;

/// Why a line cannot be used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LineError {
    /// A fixed sentence.
    Text(&'static str),
    /// A line or record longer than the limit.
    TooLong { limit_bytes: usize },
    /// A binary record that ends early.
    CutShort { bytes: usize, of_bytes: usize },
    /// A line without a value in a column.
    Missing { column: &'static str },
    /// A line of a log that lacks what every request has.
    NoField { field: &'static str },
    /// A line that is JSON only up to this byte, counted from 1.
    NoJson { byte: usize },
    /// A stamp older than the reorder window or the records that may wait allow.
    Backwards { by_ns: u64, window_s: u64 },
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::TooLong { limit_bytes } => {
                write!(f, "line or record is longer than {limit_bytes} bytes")
            }
            Self::CutShort { bytes, of_bytes } => {
                write!(f, "record is cut short after {bytes} of {of_bytes} bytes")
            }
            Self::Missing { column } => write!(f, "column {column} has no value"),
            Self::NoField { field } => write!(f, "line has no {field}"),
            Self::NoJson { byte } => write!(f, "line is no JSON object, as its byte {byte} shows"),
            Self::Backwards { by_ns, window_s } => write!(
                f,
                "time goes backwards by {} s, more than can be sorted within the window of {window_s} s",
                *by_ns as f64 / 1e9
            ),
        }
    }
}
