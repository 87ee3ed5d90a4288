//! What a registry entry says of a trace format.

use std::path::Path;

use crate::decoder::FormatDecoder;
use crate::error::TraceError;
use crate::format::Format;
use crate::input::TraceInput;
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
    /// Whether its bytes would garble a terminal.
    pub binary: bool,
    /// Inputs of formats of one family may be read together; the result is named after the later one in the registry.
    pub(crate) family: &'static str,
    /// How much the first bytes of an input resemble the format.
    pub(crate) likeness: fn(&Prefix<'_>) -> Likeness,
    /// Decodes an input.
    pub(crate) open: Open,
    /// What its stamps are taken for, as a sentence for reports.
    pub(crate) stamps: fn(&ReadReport) -> &'static str,
    /// How it is written; `None` for a format that tells more than a trace knows.
    pub(crate) writer: Option<FormatWriter>,
}

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

/// How much an input resembles a format. A greater one wins; of equals the first in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    /// Not at all.
    None,
    /// By a name that is common for it.
    CommonName,
    /// Its bytes could be such records.
    Records,
    /// By a name that is its own.
    OwnName,
    /// So many of the first lines are of its form.
    Lines(usize),
    /// It begins with a header line of its own.
    Header,
    /// It begins with bytes that mark the format.
    Mark,
}

/// How many lines of the prefix are tried.
const PROBED_LINES: usize = 100;

/// The first bytes of an input, after decompression, and its name.
pub(crate) struct Prefix<'a> {
    /// The bytes.
    pub(crate) bytes: &'a [u8],
    /// File name in lower case; empty where there is none.
    pub(crate) name: String,
    /// Whether no byte is NUL.
    text: bool,
}

impl<'a> Prefix<'a> {
    pub(crate) fn new(bytes: &'a [u8], path: Option<&Path>) -> Self {
        let name = path.and_then(Path::file_name).map(|name| name.to_string_lossy().to_ascii_lowercase());
        Self { bytes, name: name.unwrap_or_default(), text: memchr::memchr(0, bytes).is_none() }
    }

    /// The first lines that are not empty, without a last one that may be cut off; none of binary data.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'a [u8]> {
        let end = memchr::memrchr(b'\n', self.bytes).unwrap_or(self.bytes.len());
        let text = if self.text { &self.bytes[..end] } else { &[] };
        text.split(|&b| b == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| !line.is_empty())
            .take(PROBED_LINES)
    }

    /// How many of those lines pass `test`.
    pub(crate) fn lines_like(&self, test: impl Fn(&[u8]) -> bool) -> Likeness {
        match self.lines().filter(|line| test(line)).count() {
            0 => Likeness::None,
            count => Likeness::Lines(count),
        }
    }
}

/// Stamps that the format itself defines as arrivals.
pub(crate) fn stamped_on_arrival(_: &ReadReport) -> &'static str {
    "arrival, as the format defines"
}
