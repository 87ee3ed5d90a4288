//! What can go wrong with a trace, each error one paragraph that names the file and the remedy.

use std::io;

/// Why a trace could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The input does not exist or may not be opened.
    #[error(
        "cannot open the trace {path}: {source}; give the path of an existing file, or `-` for standard input"
    )]
    Open {
        /// Input as the user named it.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The input broke off or its compression is damaged.
    #[error("cannot read the trace {path}: {reason}")]
    Read {
        /// Input as the user named it.
        path: String,
        /// What is wrong with the data and what would be right.
        reason: String,
    },
    /// A format name that does not exist.
    #[error("unknown trace format `{name}`{}; known are {}", suggestion(*nearest), known)]
    UnknownFormat {
        /// Name as the user wrote it.
        name: String,
        /// The known name that resembles it most, if any is near.
        nearest: Option<&'static str>,
        /// Every name, separated by commas.
        known: String,
    },
    /// The content resembles no known format.
    #[error(
        "the format of the trace {path} cannot be told from its content: {reason}; name it with --format, one of {known}"
    )]
    Undetected {
        /// Input as the user named it.
        path: String,
        /// What the first line is nearest to, and what would do.
        reason: String,
        /// Every format's name, separated by commas.
        known: String,
    },
    /// Several inputs of unlike formats.
    #[error(
        "the trace {path} is in format {found}, but the inputs before it are in format {expected}; read inputs of one format together, or convert them first"
    )]
    Mixed {
        /// Input as the user named it.
        path: String,
        /// Format of this input.
        found: &'static str,
        /// Format of the inputs before it.
        expected: &'static str,
    },
    /// A header line or a schema without the columns that are needed.
    #[error(
        "the trace {path} has no usable header: {reason}; the columns are time_s,target,size_bytes and, if wanted, kind,class,service_s,client, in any order"
    )]
    Header {
        /// Input as the user named it.
        path: String,
        /// What is missing or wrong.
        reason: String,
    },
    /// More rejected lines than allowed.
    #[error(
        "{rejected} of {lines} lines of the trace {path} cannot be used, more than the allowed share of {allowed}: {examples}{expected}; name the right format with --format, or allow more with --max-bad-ratio"
    )]
    TooManyRejected {
        /// Inputs as the user named them.
        path: String,
        /// Lines (or binary records) that were rejected.
        rejected: u64,
        /// Lines (or binary records) that were read.
        lines: u64,
        /// Allowed share, from 0 to 1.
        allowed: f64,
        /// The first rejections with line numbers and reasons.
        examples: String,
        /// A line that the format takes, as a clause after a semicolon, or nothing.
        expected: String,
    },
    /// Not one line of the inputs can be used.
    #[error("the trace {path} has no usable line: {reason}")]
    NoUsableLine {
        /// Inputs as the user named them.
        path: String,
        /// What was found instead.
        reason: String,
    },
    /// No request of the inputs has a duration.
    #[error(
        "the trace {path} has no service times: {reason}; log them: nginx `$request_time` or better `$upstream_response_time` \
         (`log_format`), Apache `%D` at the end of `LogFormat`, our own access log with `format = \"json\"`, or a column service_s \
         in CSV; name fields of other names with --fields, and what follows the usual fields of a line with --after-size"
    )]
    NoDurations {
        /// Inputs as the user named them.
        path: String,
        /// What was found instead.
        reason: String,
    },
    /// More distinct targets or clients than 32 bits can number.
    #[error(
        "the trace {path} names more than 4,294,967,294 distinct {what}; split it, or read fewer requests with --limit"
    )]
    TooManyNames {
        /// Input as the user named it.
        path: String,
        /// `targets` or `clients`.
        what: &'static str,
    },
    /// The spool of records could not be written or read back.
    #[error(
        "the temporary file that holds the trace failed: {source}; is the temporary directory (TMPDIR) full?"
    )]
    Spool {
        /// What the operating system said.
        source: io::Error,
    },
    /// Records handed to [`crate::Trace::from_records`] that do not make a trace.
    #[error("record {index} (counted from 0) is not a valid record of a trace: {reason}")]
    InvalidRecord {
        /// Position of the record in the sequence.
        index: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// Standard output was closed by its reader, as `head` does when it has enough.
    #[error("standard output was closed before the whole trace was written")]
    ClosedPipe,
    /// The output cannot be written.
    #[error("cannot write the trace {path}: {reason}")]
    Write {
        /// Output as the user named it.
        path: String,
        /// What is wrong and what would be right.
        reason: String,
    },
}

fn suggestion(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

impl TraceError {
    pub(crate) fn read(path: &str, reason: impl Into<String>) -> Self {
        Self::Read { path: path.to_owned(), reason: reason.into() }
    }

    pub(crate) fn write(path: &str, reason: impl Into<String>) -> Self {
        Self::Write { path: path.to_owned(), reason: reason.into() }
    }
}
