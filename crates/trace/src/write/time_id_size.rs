//! Lines `time id size`.

use std::io::Write as _;

use super::requests::Requests;
use super::sink::Sink;
use super::text::{all_targets, put_seconds};
use crate::error::TraceError;

/// Lines gathered before they are written.
const FLUSH_BYTES: usize = 64 * 1024;

/// Writes names where every name is free of separators, else the targets' dense numbers.
pub(crate) fn write(requests: Requests<'_>, sink: &mut Sink) -> Result<(), TraceError> {
    let names = all_targets(requests.targets, |name| {
        !name.is_empty() && !name.iter().any(|b| matches!(b, b' ' | b'\t' | b',' | b'\n' | b'\r'))
    });
    let mut lines = Vec::new();
    for record in requests.records {
        let record = record?;
        put_seconds(&mut lines, record.time_ns);
        lines.push(b' ');
        // Writing to a vector cannot fail.
        let _ = if names {
            lines.write_all(requests.targets.name(record.target))
        } else {
            write!(lines, "{}", record.target)
        };
        let _ = writeln!(lines, " {}", record.size_bytes);
        if lines.len() >= FLUSH_BYTES {
            sink.put(&lines)?;
            lines.clear();
        }
    }
    sink.put(&lines)
}
