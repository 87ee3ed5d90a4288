//! Writes a trace into a file of another format.

use std::fs::File;
use std::path::Path;

use plimsoll_synth::{Record, RecordFields};

use crate::error::TraceError;
use crate::format::Format;
use crate::format_spec::Encode;
use crate::targets::TargetTable;
use crate::trace::Trace;
use crate::write::{Requests, Sink};

/// Writes `trace` to `output` in `format`, with the stamps of its input (not spread).
///
/// The name's ending chooses the compression: `.gz`, `.zst`, `.xz`, or none; `-` is standard output.
/// What a format has no place for is left out: classes, kinds, service times and clients in
/// oracleGeneral and `time id size`, fractions of seconds in oracleGeneral. Clients are written as
/// their dense numbers. Writing streams; memory does not grow with the trace.
///
/// # Errors
/// An output that cannot be written, a format without a writer (the access logs and World Cup 98,
/// whose records say more than a trace knows), or a value the format cannot hold.
pub fn convert(trace: &Trace, format: Format, output: &Path) -> Result<(), TraceError> {
    write_trace(trace, format, output, None)
}

/// As [`convert`], into `file`, whose contents it replaces, for who may not open `output` any more; that still tells the compression.
///
/// # Errors
/// As of [`convert`].
pub fn convert_into(trace: &Trace, format: Format, output: &Path, file: File) -> Result<(), TraceError> {
    write_trace(trace, format, output, Some(file))
}

fn write_trace(trace: &Trace, format: Format, output: &Path, opened: Option<File>) -> Result<(), TraceError> {
    into_sink(format, output, opened, |encode, sink| match encode {
        Encode::WholeTrace(encode) => encode(trace, sink),
        Encode::Streaming(encode) => encode(
            Requests {
                targets: &trace.targets,
                fields: trace.spool().fields(),
                records: &mut trace.open_as_stamped(),
            },
            sink,
        ),
    })
}

/// Writes `records`, of which `fields` hold more than defaults, to `output` as [`convert`] does, as they come and
/// without keeping them; only oracleGeneral, which tells of each request when its target comes
/// next, keeps them as a [`Trace`] does.
///
/// # Errors
/// As of [`convert`], and for oracleGeneral as of [`Trace::from_records`].
///
/// # Panics
/// When the target of a record is not a number of `targets`.
pub fn write_requests(
    targets: &TargetTable,
    fields: RecordFields,
    records: impl Iterator<Item = Record>,
    format: Format,
    output: &Path,
) -> Result<(), TraceError> {
    into_sink(format, output, None, |encode, sink| match encode {
        Encode::WholeTrace(encode) => encode(&Trace::from_records(targets.clone(), records)?, sink),
        Encode::Streaming(encode) => {
            encode(Requests { targets, fields, records: &mut records.map(Ok) }, sink)
        }
    })
}

/// Opens the output, has it written and completes it.
fn into_sink(
    format: Format,
    output: &Path,
    opened: Option<File>,
    write: impl FnOnce(&Encode, &mut Sink) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let Some(writer) = &format.spec().writer else {
        return Err(not_writable(format, &output.display().to_string()));
    };
    let mut sink = Sink::create(output, opened)?;
    match write(&writer.encode, &mut sink) {
        Ok(()) => sink.finish(),
        Err(error) => Err(sink.explain(error)),
    }
}

fn not_writable(format: Format, output: &str) -> TraceError {
    TraceError::write(
        output,
        format!("the format {format} can be read but not written; write {}", Format::writable_names()),
    )
}
