//! The canonical CSV.

use std::io::Write as _;

use csv_core::WriteResult;

use plimsoll_synth::RecordKind;

use super::requests::Requests;
use super::sink::Sink;
use super::text::put_seconds;
use crate::error::TraceError;

/// Lines gathered before they are written.
const FLUSH_BYTES: usize = 64 * 1024;

pub(crate) fn write(requests: Requests<'_>, sink: &mut Sink) -> Result<(), TraceError> {
    let fields = requests.fields;
    let mut lines = b"time_s,target,size_bytes".to_vec();
    for (present, name) in [
        (fields.kind, ",kind"),
        (fields.class, ",class"),
        (fields.service, ",service_s"),
        (fields.client, ",client"),
    ] {
        if present {
            lines.extend_from_slice(name.as_bytes());
        }
    }
    lines.push(b'\n');
    for record in requests.records {
        let record = record?;
        put_seconds(&mut lines, record.time_ns);
        lines.push(b',');
        put_field(&mut lines, requests.targets.name(record.target));
        // Writing to a vector cannot fail.
        let _ = write!(lines, ",{}", record.size_bytes);
        if fields.kind {
            lines.extend_from_slice(match record.kind {
                RecordKind::Static => b",static",
                RecordKind::Dynamic => b",dynamic",
            });
        }
        if fields.class {
            let _ = write!(lines, ",{}", record.class);
        }
        if fields.service {
            lines.push(b',');
            put_seconds(&mut lines, record.service_ns);
        }
        if fields.client {
            let _ = write!(lines, ",{}", record.client);
        }
        lines.push(b'\n');
        if lines.len() >= FLUSH_BYTES {
            sink.put(&lines)?;
            lines.clear();
        }
    }
    sink.put(&lines)
}

/// Appends a field, in quotes where RFC 4180 wants them.
fn put_field(lines: &mut Vec<u8>, field: &[u8]) {
    let mut writer = csv_core::Writer::new();
    let mut buffer = [0; 256];
    let mut rest = field;
    loop {
        let (result, read, written) = writer.field(rest, &mut buffer);
        lines.extend_from_slice(&buffer[..written]);
        rest = &rest[read..];
        if result == WriteResult::InputEmpty {
            break;
        }
    }
    loop {
        let (result, written) = writer.finish(&mut buffer);
        lines.extend_from_slice(&buffer[..written]);
        if result == WriteResult::InputEmpty {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_needed() {
        for (field, text) in
            [("/a", "/a"), ("/a,b", "\"/a,b\""), ("/\"a\"", "\"/\"\"a\"\"\""), ("/a\nb", "\"/a\nb\"")]
        {
            let mut lines = Vec::new();
            put_field(&mut lines, field.as_bytes());
            assert_eq!(String::from_utf8(lines).unwrap(), text);
        }
        let long = "x,".repeat(1000);
        let mut lines = Vec::new();
        put_field(&mut lines, long.as_bytes());
        assert_eq!(lines, format!("\"{long}\"").as_bytes());
    }
}
