//! Lines `time id size`, separated by spaces, tabs or commas.

use crate::decoder::{BATCH, FormatDecoder};
use crate::error::TraceError;
use crate::format::Format;
use crate::format_spec::{Encode, FormatSpec, FormatWriter, stamped_on_arrival};
use crate::ingest::{DecodedRequest, Ingest, parse_size};
use crate::line_error::LineError;
use crate::source::{Framed, InputSource, MAX_LINE_BYTES};
use crate::time::parse_seconds;
use plimsoll_synth::RecordKind;

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b',')
}

/// Time in nanoseconds, name and size in bytes of a line.
pub(crate) fn split(line: &[u8]) -> Result<(u64, &[u8], u64), LineError> {
    const SHAPE: LineError = LineError::Text("line is not of the form `time id size`");
    let mut fields = line.split(|&b| is_separator(b)).filter(|field| !field.is_empty());
    let mut next = || fields.next().ok_or(SHAPE);
    let (time, id, size) = (next()?, next()?, next()?);
    if fields.next().is_some() {
        return Err(SHAPE);
    }
    Ok((parse_seconds(time)?, id, parse_size(size)?))
}

/// Decoder of `time id size`.
pub(crate) struct TimeIdSizeDecoder {
    source: InputSource,
    line: u64,
}

impl TimeIdSizeDecoder {
    pub(crate) fn new(source: InputSource) -> Self {
        Self { source, line: 0 }
    }
}

impl FormatDecoder for TimeIdSizeDecoder {
    fn step(&mut self, out: &mut Ingest) -> Result<bool, TraceError> {
        for _ in 0..BATCH {
            if out.is_full() {
                break;
            }
            self.line += 1;
            let line = match self.source.next_line()? {
                Framed::End => return Ok(false),
                Framed::TooLong => {
                    out.count_line();
                    out.reject(self.line, LineError::TooLong { limit_bytes: MAX_LINE_BYTES });
                    continue;
                }
                Framed::Line(line) => line,
            };
            if line.iter().all(|&b| is_separator(b)) {
                continue;
            }
            out.count_line();
            match split(line) {
                Err(reason) => out.reject(self.line, reason),
                Ok((time_ns, target, size_bytes)) => {
                    let entry = DecodedRequest {
                        time_ns,
                        target,
                        client: None,
                        size_bytes,
                        whole: true,
                        service_ns: 0,
                        class: 0,
                        kind: RecordKind::Static,
                    };
                    out.accept(self.line, &entry)?;
                }
            }
        }
        Ok(true)
    }

    fn source(&mut self) -> Option<&mut InputSource> {
        Some(&mut self.source)
    }
}

/// The format's name.
pub const FORMAT: Format = Format::named("time-id-size");

/// Registry entry.
pub static SPEC: FormatSpec = FormatSpec {
    format: FORMAT,
    aliases: &["tis"],
    summary: "Lines `time id size`, separated by spaces, tabs or commas, without a header",
    recognised_by: "lines that parse",
    binary: false,
    family: "time-id-size",
    likeness: |prefix| prefix.lines_like(|line| split(line).is_ok()),
    open: |source, _| Ok(Box::new(TimeIdSizeDecoder::new(source))),
    stamps: stamped_on_arrival,
    writer: Some(FormatWriter {
        endings: &["tr", "txt"],
        loss: " time-id-size keeps times, targets and sizes; the rest is left out.",
        encode: Encode::Streaming(crate::write::time_id_size::write),
    }),
};
