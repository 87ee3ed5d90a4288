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
    for record in reader.by_ref() {
        spool.push(&record?)?;
    }
    let (targets, report) = reader.into_parts();
    let mut trace = Trace::new(targets, report, spool.finish()?, options.seed);
    if let (None, Some(format)) = (&trace.report.first_line, trace.report.format)
        && let Some(record) = trace.open_as_stamped().next().transpose()?
    {
        let path = trace.report.paths.first().map_or("", String::as_str);
        let first = FirstLine::of_record(path, format, &record, trace.targets.name(record.target));
        trace.report.first_line = Some(first);
    }
    Ok(trace)
}
