//! A loaded trace: targets, report, and records to read any number of times.

use std::sync::Arc;

use crate::error::TraceError;
use crate::options::ReadOptions;
use crate::spool::{Spool, SpoolCursor, SpoolWriter};
use crate::spread::Spread;
use crate::tally::ReadReport;
use crate::targets::TargetTable;
use plimsoll_synth::{Record, RecordFields};

/// A trace that was read once and can be run through many times, by several threads at once.
///
/// Memory holds the targets and at most the configured bytes of encoded records (some ten bytes each); the
/// rest is in an unlinked temporary file.
#[derive(Debug)]
pub struct Trace {
    /// The targets.
    pub targets: TargetTable,
    /// The report on reading.
    pub report: ReadReport,
    spool: Arc<Spool>,
    seed: u64,
}

impl Trace {
    /// A trace of what a reader found.
    pub(crate) fn new(targets: TargetTable, report: ReadReport, spool: Spool, seed: u64) -> Self {
        Self { targets, report, spool: Arc::new(spool), seed }
    }

    /// A trace of generated records, whose targets are numbered in `targets` and whose times are
    /// taken as they are. Counts every record in the table, as a whole document.
    ///
    /// # Errors
    /// A record whose time is before that of the record before it, or whose target is not in the
    /// table; a temporary file that cannot be written.
    pub fn from_records(
        mut targets: TargetTable,
        records: impl IntoIterator<Item = Record>,
    ) -> Result<Self, TraceError> {
        let options = ReadOptions::default();
        let mut spool = SpoolWriter::new(options.spool_memory_bytes);
        let mut last_ns = 0;
        let mut clients = 0;
        for (index, record) in (0u64..).zip(records) {
            let invalid = |reason: String| TraceError::InvalidRecord { index, reason };
            if record.time_ns < last_ns {
                return Err(invalid(format!(
                    "its time of {} ns is before the {last_ns} ns of the record before it",
                    record.time_ns
                )));
            }
            if record.target as usize >= targets.len() {
                return Err(invalid(format!(
                    "its target {} is not among the {} of the table",
                    record.target,
                    targets.len()
                )));
            }
            last_ns = record.time_ns;
            clients = clients.max(u64::from(record.client));
            targets.count(record.target, record.size_bytes, true);
            spool.push(&record)?;
        }
        let spool = spool.finish()?;
        let report = ReadReport {
            lines: spool.len(),
            records: spool.len(),
            // Client 0 stands for none when no other occurs.
            clients: if clients == 0 { 0 } else { clients + 1 },
            stamp_assumption: "arrival".to_owned(),
            ..ReadReport::default()
        };
        Ok(Self { targets, report, spool: Arc::new(spool), seed: options.seed })
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.spool.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which fields, beside the time, the target and the size, some record fills.
    pub fn fields(&self) -> RecordFields {
        self.spool.fields()
    }

    /// Starts at the first record; whole-second stamps are spread within their second, the same
    /// way every time, by the seed the trace was loaded with.
    ///
    /// # Errors
    /// A temporary file that cannot be read.
    pub fn open(&self) -> Result<TraceIter, TraceError> {
        if self.report.times_spread {
            let cursor = || SpoolCursor::new(Arc::clone(&self.spool));
            Ok(TraceIter {
                mode: Mode::Spread(Box::new(Spread::new(cursor(), cursor(), self.seed)?)),
                left: self.len(),
            })
        } else {
            Ok(self.open_as_stamped())
        }
    }

    /// Starts at the first record, with the stamps of the input.
    pub fn open_as_stamped(&self) -> TraceIter {
        TraceIter { mode: Mode::Stamped(SpoolCursor::new(Arc::clone(&self.spool))), left: self.len() }
    }

    pub(crate) fn spool(&self) -> &Spool {
        &self.spool
    }
}

/// The records of a trace in order of time. It does not borrow the trace.
#[derive(Debug)]
pub struct TraceIter {
    mode: Mode,
    left: u64,
}

#[derive(Debug)]
enum Mode {
    Stamped(SpoolCursor),
    Spread(Box<Spread>),
}

impl TraceIter {
    /// Adds the next records to `records`, at most `most`, and none only at the end.
    ///
    /// # Errors
    /// A temporary file that cannot be read. Records before it have been added.
    pub fn take_batch(&mut self, records: &mut Vec<Record>, most: usize) -> Result<(), TraceError> {
        if let Mode::Stamped(cursor) = &mut self.mode {
            let most = most.min(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= most as u64;
            return cursor.take_batch(records, most).inspect_err(|_| self.left = 0);
        }
        for record in self.take(most) {
            records.push(record?);
        }
        Ok(())
    }
}

impl Iterator for TraceIter {
    type Item = Result<Record, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let next = match &mut self.mode {
            Mode::Stamped(cursor) => cursor.next(),
            Mode::Spread(spread) => spread.next(),
        };
        if next.is_err() {
            self.left = 0;
        }
        next.transpose()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).ok();
        (left.unwrap_or(usize::MAX), left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::NS_PER_S;

    fn record(time_ns: u64, target: u32) -> Record {
        Record {
            time_ns,
            size_bytes: 5,
            service_ns: 0,
            target,
            client: 0,
            class: 0,
            kind: crate::RecordKind::Static,
            ..Record::default()
        }
    }

    fn table(count: u32) -> TargetTable {
        let mut table = TargetTable::new();
        for id in 0..count {
            table.intern(id.to_string().as_bytes());
        }
        table
    }

    fn spread_trace(times_s: &[u64], seed: u64) -> Vec<Record> {
        let records = times_s.iter().zip(0..).map(|(s, i)| record(s * NS_PER_S, i));
        let mut trace = Trace::from_records(table(times_s.len() as u32), records).unwrap();
        trace.report.times_spread = true;
        trace.seed = seed;
        trace.open().unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn spreading_keeps_seconds_and_order_and_follows_the_seed() {
        let times_s: Vec<u64> = (0..3000).map(|i| i / 100 * 2).collect();
        let first = spread_trace(&times_s, 7);
        assert!(first == spread_trace(&times_s, 7));
        assert!(first != spread_trace(&times_s, 8));
        assert!(first.is_sorted_by_key(|r| r.time_ns));
        for (index, (record, second)) in first.iter().zip(&times_s).enumerate() {
            assert_eq!(record.target as usize, index);
            assert_eq!(record.time_ns / NS_PER_S, *second);
        }
    }

    #[test]
    fn spread_times_are_uniform_within_their_second() {
        let first = spread_trace(&vec![3; 50_000], 1);
        // The largest distance to the uniform distribution exceeds 1.95/sqrt(n) by chance once in a
        // thousand seeds (Kolmogorov and Smirnov); the seed is fixed.
        let n = first.len() as f64;
        let distance = first
            .iter()
            .enumerate()
            .map(|(i, r)| ((r.time_ns - 3 * NS_PER_S) as f64 / 1e9 - i as f64 / n).abs())
            .fold(0.0, f64::max);
        assert!(distance < 1.95 / n.sqrt(), "{distance}");
    }

    #[test]
    fn invalid_records_are_refused() {
        let error = Trace::from_records(table(1), [record(5, 0), record(4, 0)]).unwrap_err();
        assert!(error.to_string().contains("record 1 "), "{error}");
        let error = Trace::from_records(table(1), [record(5, 1)]).unwrap_err();
        assert!(error.to_string().contains("target 1 is not among the 1"), "{error}");
        assert!(Trace::from_records(table(0), []).unwrap().is_empty());
    }

    #[test]
    fn iterators_are_independent_across_threads() {
        let trace = Trace::from_records(table(10), (0..10).map(|i| record(u64::from(i), i))).unwrap();
        let sums: Vec<u64> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..3)
                .map(|_| {
                    let records = trace.open().unwrap();
                    scope.spawn(move || records.map(|r| u64::from(r.unwrap().target)).sum())
                })
                .collect();
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        });
        assert_eq!(sums, [45, 45, 45]);
    }
}
