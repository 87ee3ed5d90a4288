//! What a registry entry says of a trace format.

use crate::decoder::FormatDecoder;
use crate::error::TraceError;
use crate::format::Format;
use crate::input::TraceInput;
use crate::line_error::LineError;
use crate::line_log::LineLog;
use crate::log_request::LogRequest;
use crate::prefix::{Likeness, Prefix};
use crate::source::InputSource;
use crate::tally::ReadReport;
use crate::trace::Trace;
use crate::write::{Requests, Sink};

/// A trace format. [`FORMATS`](crate::formats::FORMATS) lists all of them.
pub struct FormatSpec {
    /// Its name.
    pub format: Format,
    /// Other names that a user may write, in lower-case letters and digits: the look-up ignores case and every other
    /// character.
    pub aliases: &'static [&'static str],
    /// What it is, for lists of formats.
    pub summary: &'static str,
    /// By what an input of unknown format is recognised as this one, for lists of formats.
    pub recognised_by: &'static str,
    /// A line of it, with a line that must precede it where there is one; empty for a format without lines.
    pub sample: &'static str,
    /// What a reader of its logs should know, as sentences; may be empty.
    pub remark: &'static str,
    /// Whether its bytes would garble a terminal.
    pub binary: bool,
    /// Inputs of formats of one family may be read together; the result is named after the later one in the registry.
    pub(crate) family: &'static str,
    /// How it is recognised and decoded.
    pub(crate) decode: Decode,
    /// What its stamps are taken for, as a sentence for reports.
    pub(crate) stamps: fn(&ReadReport) -> &'static str,
    /// How it is written; `None` for a format that tells more than a trace knows.
    pub(crate) writer: Option<FormatWriter>,
}

/// How a format is recognised and decoded.
pub(crate) enum Decode {
    /// By a decoder of its own.
    Own {
        /// How much the first bytes of an input resemble the format.
        likeness: fn(&Prefix<'_>) -> Likeness,
        /// Decodes an input.
        open: Open,
        /// Reads one line to show what is made of it; `None` where a line alone says nothing.
        explain: Option<Explain>,
    },
    /// By splitting lines into fields.
    Lines(LineLog),
}

/// Reads a line.
pub(crate) type Explain = fn(&[u8]) -> Result<LogRequest<'_>, LineError>;

/// Makes the decoder of an input.
type Open = fn(InputSource, &TraceInput) -> Result<Box<dyn FormatDecoder>, TraceError>;

/// How a format is written.
pub(crate) struct FormatWriter {
    /// Endings of names of outputs that ask for it, in lower case.
    pub(crate) endings: &'static [&'static str],
    /// What it has no place for, as a sentence after a space; empty when it keeps everything.
    pub(crate) loss: &'static str,
    /// Encodes a trace.
    pub(crate) encode: Encode,
}

/// Encodes requests into an output.
pub(crate) enum Encode {
    /// Sees each request once.
    Streaming(fn(Requests<'_>, &mut Sink) -> Result<(), TraceError>),
    /// Reads the trace more than once.
    WholeTrace(fn(&Trace, &mut Sink) -> Result<(), TraceError>),
}

/// Stamps that the format itself defines as arrivals.
pub(crate) fn stamped_on_arrival(_: &ReadReport) -> &'static str {
    "arrival, as the format defines"
}
