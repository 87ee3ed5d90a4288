//! Reads inputs into a trace.

use crate::error::TraceError;
use crate::first_line::FirstLine;
use crate::input::TraceInput;
use crate::options::ReadOptions;
use crate::reader::TraceReader;
use crate::spool::SpoolWriter;
use crate::trace::Trace;

/// Reads `inputs`, one after the other, into a trace.
///
/// # Errors
/// A missing or damaged input, an unknown or mixed format, more unusable lines than
/// [`ReadOptions::max_bad_ratio`] allows, or not one usable line.
pub fn load(inputs: &[TraceInput], options: &ReadOptions) -> Result<Trace, TraceError> {
    let mut reader = TraceReader::new(inputs, options);
    let mut spool = SpoolWriter::new(options.spool_memory_bytes);
    let mut first = None;
    for record in reader.by_ref() {
        let record = record?;
        first.get_or_insert(record);
        spool.push(&record)?;
    }
    let (targets, mut report) = reader.into_parts();
    if let (None, Some(record), Some(format)) = (&report.first_line, first, report.format) {
        let path = report.paths.first().map_or("", String::as_str);
        report.first_line = Some(FirstLine::of_record(path, format, &record, targets.name(record.target)));
    }
    Ok(Trace::new(targets, report, spool.finish()?, options.seed))
}
