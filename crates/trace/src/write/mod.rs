//! Writers: a trace into a file of another format.

mod csv;
mod oracle;
mod parquet;
mod sink;
mod time_id_size;

use std::path::Path;

use crate::error::TraceError;
use crate::format::Format;
use crate::record::Record;
use crate::spool::PresentFields;
use crate::targets::TargetTable;
use crate::trace::Trace;

pub(crate) use sink::Sink;

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
    into_sink(format, output, |sink| {
        if format == Format::OracleGeneral {
            return oracle::write(trace, sink);
        }
        let requests = Requests {
            targets: &trace.targets,
            fields: trace.spool().fields(),
            records: trace.open_as_stamped(),
        };
        put(requests, format, sink)
    })
}

/// Writes time, target and size of `records` to `output` as [`convert`] does, as they come and
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
    records: impl Iterator<Item = Record>,
    format: Format,
    output: &Path,
) -> Result<(), TraceError> {
    into_sink(format, output, |sink| {
        if format == Format::OracleGeneral {
            return oracle::write(&Trace::from_records(targets.clone(), records)?, sink);
        }
        let requests = Requests { targets, fields: PresentFields::default(), records: records.map(Ok) };
        put(requests, format, sink)
    })
}

/// What a writer that needs to see each record only once is given.
struct Requests<'a, I> {
    targets: &'a TargetTable,
    /// The optional fields to write.
    fields: PresentFields,
    records: I,
}

fn put<I>(requests: Requests<'_, I>, format: Format, sink: &mut Sink) -> Result<(), TraceError>
where
    I: Iterator<Item = Result<Record, TraceError>>,
{
    match format {
        Format::Csv => csv::write(requests, sink),
        Format::Parquet => parquet::write(requests, sink),
        Format::TimeIdSize => time_id_size::write(requests, sink),
        Format::OracleGeneral | Format::CommonLog | Format::CombinedLog | Format::WorldCup98 => {
            Err(not_writable(format, sink.path()))
        }
    }
}

/// Opens the output, has it written and completes it.
fn into_sink(
    format: Format,
    output: &Path,
    write: impl FnOnce(&mut Sink) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    if !format.is_writable() {
        return Err(not_writable(format, &output.display().to_string()));
    }
    let mut sink = Sink::create(output)?;
    match write(&mut sink) {
        Ok(()) => sink.finish(),
        Err(error) => Err(sink.explain(error)),
    }
}

fn not_writable(format: Format, output: &str) -> TraceError {
    TraceError::write(
        output,
        format!(
            "the format {format} can be read but not written; write csv, parquet, oracle-general or time-id-size"
        ),
    )
}

/// The format that the name of an output asks for, leaving endings of compression aside.
///
/// `None` when the ending is none of `.csv`, `.parquet`, `.oracleGeneral` (or `.bin`) and `.tr`
/// (or `.txt`).
pub fn format_of_output(output: &Path) -> Option<Format> {
    let name = output.file_name()?.to_str()?.to_ascii_lowercase();
    let bare = [".gz", ".zst", ".xz"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    match bare.rsplit_once('.')?.1 {
        "csv" => Some(Format::Csv),
        "parquet" => Some(Format::Parquet),
        "oraclegeneral" | "bin" => Some(Format::OracleGeneral),
        "tr" | "txt" => Some(Format::TimeIdSize),
        _ => None,
    }
}

/// Appends seconds with as many decimals as needed.
fn put_seconds(line: &mut Vec<u8>, ns: u64) {
    use std::io::Write as _;

    use crate::time::NS_PER_S;
    // Writing to a vector cannot fail.
    let _ = write!(line, "{}", ns / NS_PER_S);
    let fraction = ns % NS_PER_S;
    if fraction > 0 {
        let _ = write!(line, ".{fraction:09}");
        while line.last() == Some(&b'0') {
            line.pop();
        }
    }
}

/// Whether every target passes `test`.
fn all_targets(targets: &TargetTable, test: impl Fn(&[u8]) -> bool) -> bool {
    (0..targets.len()).all(|id| test(targets.name(id as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_name_formats() {
        let format = |name: &str| format_of_output(Path::new(name));
        assert_eq!(format("a/b.csv"), Some(Format::Csv));
        assert_eq!(format("b.csv.zst"), Some(Format::Csv));
        assert_eq!(format("b.parquet"), Some(Format::Parquet));
        assert_eq!(format("b.oracleGeneral.xz"), Some(Format::OracleGeneral));
        assert_eq!(format("b.tr.gz"), Some(Format::TimeIdSize));
        assert_eq!(format("b.log"), None);
        assert_eq!(format("csv"), None);
        assert_eq!(format("-"), None);
    }

    #[test]
    fn seconds_are_written_exactly() {
        for (ns, text) in [
            (0, "0"),
            (1, "0.000000001"),
            (1_500_000_000, "1.5"),
            (10_000_000_000, "10"),
            (u64::MAX, "18446744073.709551615"),
        ] {
            let mut line = Vec::new();
            put_seconds(&mut line, ns);
            assert_eq!(line, text.as_bytes());
        }
    }
}
