//! libCacheSim's `oracleGeneral`.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;

use super::sink::Sink;
use super::text::all_targets;
use crate::error::TraceError;
use crate::ingest::decimal;
use crate::time::NS_PER_S;
use crate::trace::Trace;

/// Next access of an object that is not requested again.
const NEVER: i64 = -1;

/// Next accesses read back at a time.
const BLOCK: usize = 32 * 1024;

/// Writes numeric names unchanged if every name is a number, else dense numbers.
pub(crate) fn write(trace: &Trace, sink: &mut Sink) -> Result<(), TraceError> {
    let numeric = all_targets(&trace.targets, |name| number(name).is_some());
    let mut next_accesses = NextAccesses::of(trace)?;
    for (index, record) in (0u64..).zip(trace.open_as_stamped()) {
        let record = record?;
        let time_s = u32::try_from(record.time_ns / NS_PER_S).map_err(|_| {
            sink.error(format!(
                "request {index} (counted from 0) comes after {} s, but oracleGeneral keeps times in 32 bits; write csv or parquet instead",
                record.time_ns / NS_PER_S
            ))
        })?;
        let size_bytes = u32::try_from(record.size_bytes).map_err(|_| {
            sink.error(format!(
                "request {index} (counted from 0) has {} bytes, but oracleGeneral keeps sizes in 32 bits; write csv or parquet instead",
                record.size_bytes
            ))
        })?;
        let object = if numeric {
            number(trace.targets.name(record.target)).unwrap_or_default()
        } else {
            u64::from(record.target)
        };
        let next_access = next_accesses.pop()?;
        sink.put(&time_s.to_le_bytes())?;
        sink.put(&object.to_le_bytes())?;
        sink.put(&size_bytes.to_le_bytes())?;
        sink.put(&next_access.to_le_bytes())?;
    }
    Ok(())
}

/// The number `name`, if it is in canonical decimal form.
fn number(name: &[u8]) -> Option<u64> {
    let number: u64 = std::str::from_utf8(name).ok()?.parse().ok()?;
    (decimal(number, &mut [0; 20]) == name).then_some(number)
}

/// For each request the index of its target's next one.
///
/// Found by going through the trace from its end, into an unlinked temporary file that is then
/// read from its end: memory grows with the targets only.
struct NextAccesses {
    file: File,
    /// Entries of the file not yet read; the next one wanted is the last of them.
    left: u64,
    block: Vec<u8>,
}

impl NextAccesses {
    fn of(trace: &Trace) -> Result<Self, TraceError> {
        let failed = |source| TraceError::Spool { source };
        let mut writer = BufWriter::new(tempfile::tempfile().map_err(failed)?);
        let mut seen = vec![NEVER; trace.targets.len()];
        let mut index = trace.len();
        for chunk in (0..trace.spool().chunks()).rev() {
            for record in trace.spool().chunk_records(chunk)?.iter().rev() {
                index -= 1;
                // More than 2^63 requests cannot be spooled.
                let here = index as i64;
                let next = std::mem::replace(&mut seen[record.target as usize], here);
                writer.write_all(&next.to_le_bytes()).map_err(failed)?;
            }
        }
        let file = writer.into_inner().map_err(|e| failed(e.into_error()))?;
        Ok(Self { file, left: trace.len(), block: Vec::new() })
    }

    fn pop(&mut self) -> Result<i64, TraceError> {
        if self.block.is_empty() {
            let count = self.left.min(BLOCK as u64);
            self.left -= count;
            self.block.resize(count as usize * 8, 0);
            self.file
                .read_exact_at(&mut self.block, self.left * 8)
                .map_err(|source| TraceError::Spool { source })?;
        }
        let Some((_, last)) = self.block.split_last_chunk::<8>() else {
            return Err(TraceError::Spool { source: io::Error::from(io::ErrorKind::UnexpectedEof) });
        };
        let next = i64::from_le_bytes(*last);
        self.block.truncate(self.block.len() - 8);
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Record, RecordKind, TargetTable};

    #[test]
    fn next_accesses_point_forward() {
        let mut targets = TargetTable::new();
        for name in [&b"a"[..], b"b", b"c"] {
            targets.intern(name);
        }
        let order = [0, 1, 0, 2, 1, 0];
        let records = order.map(|target| Record {
            time_ns: 0,
            size_bytes: 0,
            service_ns: 0,
            target,
            client: 0,
            class: 0,
            kind: RecordKind::Static,
            ..Record::default()
        });
        let trace = Trace::from_records(targets, records).unwrap();
        let mut next = NextAccesses::of(&trace).unwrap();
        let found: Vec<_> = order.iter().map(|_| next.pop().unwrap()).collect();
        assert_eq!(found, [2, 4, 5, -1, -1, -1]);
        assert!(next.pop().is_err());
    }

    #[test]
    fn only_canonical_numbers_are_numbers() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for name in ["", "01", "+1", "-1", "1a", "18446744073709551616"] {
            assert_eq!(number(name.as_bytes()), None, "{name}");
        }
    }
}
