//! Lines `time id size`, separated by spaces, tabs or commas.

use crate::error::TraceError;
use crate::formats::{BATCH, Decoder};
use crate::ingest::{Entry, Ingest, parse_size};
use crate::record::Kind;
use crate::source::{Framed, MAX_LINE_BYTES, Source};
use crate::tally::Reason;
use crate::time::parse_seconds;

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b',')
}

/// Time in nanoseconds, name and size in bytes of a line.
pub(crate) fn split(line: &[u8]) -> Result<(u64, &[u8], u64), Reason> {
    const SHAPE: Reason = Reason::Text("line is not of the form `time id size`");
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
    source: Source,
    line: u64,
}

impl TimeIdSizeDecoder {
    pub(crate) fn new(source: Source) -> Self {
        Self { source, line: 0 }
    }
}

impl Decoder for TimeIdSizeDecoder {
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
                    out.reject(self.line, Reason::TooLong { limit_bytes: MAX_LINE_BYTES });
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
                    let entry = Entry {
                        time_ns,
                        target,
                        client: None,
                        size_bytes,
                        whole: true,
                        service_ns: 0,
                        class: 0,
                        kind: Kind::Static,
                    };
                    out.accept(self.line, &entry)?;
                }
            }
        }
        Ok(true)
    }

    fn source(&mut self) -> Option<&mut Source> {
        Some(&mut self.source)
    }
}
