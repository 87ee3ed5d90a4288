//! A part of a long log in place of all of it.

use plimsoll_policy::Rng;
use plimsoll_trace::{Record, TargetTable, Trace, TraceError};

use super::facts::{PEAK_WINDOW_S, busiest_span};
use super::plan::AdviseBench;
use crate::workload::Workload;

/// So many neighbouring requests of a workload, with its busiest minute in the middle of those that count (of a log without times, its end);
/// `None` where it has no more than that anyway.
///
/// One piece, because what is asked for again is asked for again soon: from pieces with gaps between them that would be missing.
///
/// # Errors
/// When the kept records cannot be read, or those of the sample not be kept.
pub(super) fn sample(workload: &Workload, most: u64, warmup: f64) -> Result<Option<Workload>, TraceError> {
    let all = workload.trace.len();
    if all <= most {
        return Ok(None);
    }
    let before = (most as f64 * (1.0 + warmup) / 2.0) as u64;
    let first = busiest(&workload.trace)?.saturating_sub(before).min(all - most);
    let from = &workload.trace.targets;
    let mut table = TargetTable::new();
    let mut numbers: Vec<Option<u32>> = vec![None; from.len()];
    let mut records = Vec::new();
    let mut begin_ns = None;
    for record in workload.trace.open()?.skip(first as usize).take(most as usize) {
        let mut record = record?;
        record.time_ns -= *begin_ns.get_or_insert(record.time_ns);
        let number = &mut numbers[record.target as usize];
        if number.is_none() {
            *number = table.intern(from.name(record.target));
            if let Some(number) = *number {
                table.set_document_size(number, from.document_size_bytes(record.target));
            }
        }
        let Some(target) = *number else { continue };
        record.target = target;
        records.push(record);
    }
    let trace = Trace::from_records(table, records)?;
    Ok(Some(Workload::new(workload.name.clone(), workload.info.clone(), trace)))
}

/// The place of the request in the middle of the busiest minute; of a log without times, that of the last one.
fn busiest(trace: &Trace) -> Result<u64, TraceError> {
    let busiest = busiest_span(trace.open()?, PEAK_WINDOW_S)?;
    Ok(if busiest.is_all { trace.len() } else { busiest.first + (busiest.requests - 1) / 2 })
}

/// Of so many requests of the first pass of [`twice`] one is there twice.
const REPEATED: u64 = 64;
/// Stream of the seed by which it is chosen.
const STREAM: u64 = 0x7477_6963;

/// The requests of a workload, and all of them once more, when memories are warm; and which share of all comes before the second pass.
///
/// In the first pass some are there twice: otherwise turns, on a number of back-ends that divides that of the requests, would give each request to
/// the back-end that had it before, so that everything would be found.
///
/// # Errors
/// When the kept records cannot be read, or the new ones not be kept.
pub(super) fn twice(workload: &Workload) -> Result<(Workload, f64), TraceError> {
    let from = &workload.trace.targets;
    let mut table = TargetTable::new();
    for target in 0..from.len() as u32 {
        if table.intern(from.name(target)).is_some() {
            table.set_document_size(target, from.document_size_bytes(target));
        }
    }
    let once = workload.trace.open()?.collect::<Result<Vec<Record>, TraceError>>()?;
    let lasts_ns = match (once.first(), once.last()) {
        (Some(first), Some(last)) => last.time_ns.saturating_sub(first.time_ns),
        _ => 0,
    };
    let mut rng = Rng::new(0, STREAM);
    let mut records = Vec::with_capacity(once.len() * 2 + once.len() / 32);
    for record in &once {
        records.push(*record);
        if rng.below(REPEATED) == 0 {
            records.push(*record);
        }
    }
    let before = records.len();
    records.extend(once.iter().map(|record| Record { time_ns: lasts_ns + record.time_ns, ..*record }));
    let share = before as f64 / records.len() as f64;
    let trace = Trace::from_records(table, records)?;
    Ok((Workload::new(workload.name.clone(), workload.info.clone(), trace), share))
}

/// A log, or a part of a long one, once and twice, to look at it under many conditions.
pub(super) struct BriefLog {
    part: Option<Workload>,
    again: Workload,
    /// Share of `again` before its second pass.
    before: f64,
}

impl BriefLog {
    /// So many requests of this workload.
    ///
    /// # Errors
    /// As [`sample`].
    pub(super) fn of(workload: &Workload, most: u64, warmup: f64) -> Result<Self, TraceError> {
        let part = sample(workload, most, warmup)?;
        let (again, before) = twice(part.as_ref().unwrap_or(workload))?;
        Ok(Self { part, again, before })
    }

    /// Like this bench for the log once and twice; both are the latter where memories begin with everything.
    pub(super) fn benches<'a>(&'a self, like: AdviseBench<'a>, starts_full: bool) -> [AdviseBench<'a>; 2] {
        let warm = AdviseBench { workload: &self.again, warmup: self.before, starts_full, ..like };
        let once = AdviseBench { workload: self.part.as_ref().unwrap_or(like.workload), ..like };
        [if starts_full { warm } else { once }, warm]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_is_the_same_again() {
        let once = Workload::synthesize_first("chess", &[], 1, Some(500)).unwrap();
        let (twice, share) = twice(&once).unwrap();
        let targets = |workload: &Workload| -> Vec<u32> {
            workload.trace.open().unwrap().map(|record| record.unwrap().target).collect()
        };
        let (one, both) = (targets(&once), targets(&twice));
        let (first, second) = both.split_at(both.len() - 500);
        assert_eq!(second, one);
        assert_eq!(share, first.len() as f64 / both.len() as f64);
        // Some of the first are there twice, one behind the other.
        let mut rest = &one[..];
        for target in first {
            rest = rest.strip_prefix(std::slice::from_ref(target)).unwrap_or(rest);
        }
        assert!(rest.is_empty());
        assert!((502..525).contains(&first.len()), "{}", first.len());
        assert_eq!(twice.targets.size_bytes, once.targets.size_bytes);
    }

    /// Requests at these times in seconds, each for a target of its own size.
    fn at(times_s: impl Iterator<Item = u64>) -> Workload {
        let mut table = TargetTable::new();
        let records: Vec<Record> = times_s
            .enumerate()
            .map(|(number, s)| Record {
                time_ns: s * 1_000_000_000,
                target: table.intern(format!("/{number}").as_bytes()).unwrap(),
                size_bytes: number as u64 + 1,
                ..Record::default()
            })
            .collect();
        let like = Workload::of_one_document(1, 1).unwrap();
        Workload::new("test".to_owned(), like.info, Trace::from_records(table, records).unwrap())
    }

    fn sizes(workload: &Workload) -> Vec<u64> {
        workload.trace.open().unwrap().map(|record| record.unwrap().size_bytes).collect()
    }

    #[test]
    fn a_long_log_is_represented_by_neighbours_with_its_busiest_minute() {
        // One request a minute, but for 50 in the minute after the five hundredth.
        let whole = at((0..500)
            .map(|n| 60 * n)
            .chain((0..50).map(|n| 30_000 + n))
            .chain((501..1_000).map(|n| 60 * n)));
        assert!(sample(&whole, 1_049, 0.4).unwrap().is_none());
        let part = sample(&whole, 200, 0.4).unwrap().unwrap();
        // The busiest minute's middle, 524, is the request 140 of the part: seven tenths of it.
        let of_part = sizes(&part);
        assert_eq!((of_part.len(), of_part[0], of_part[199]), (200, 385, 584));
        assert!(of_part.windows(2).all(|two| two[1] == two[0] + 1));
        let times: Vec<u64> = part.trace.open().unwrap().map(|record| record.unwrap().time_ns).collect();
        assert_eq!((times[0], times[1]), (0, 60_000_000_000));
        let names = &part.trace.targets;
        assert_eq!((names.len(), names.name(0), names.document_size_bytes(0)), (200, &b"/384"[..], 385));
    }

    #[test]
    fn a_part_does_not_go_beyond_the_ends_of_a_log() {
        let early = at((0..50).chain((1..500).map(|n| 60 * n)));
        assert_eq!(sizes(&sample(&early, 100, 0.4).unwrap().unwrap()), (1..=100).collect::<Vec<_>>());
        let without_times = at((0..300).map(|_| 7));
        assert_eq!(
            sizes(&sample(&without_times, 100, 0.4).unwrap().unwrap()),
            (201..=300).collect::<Vec<_>>()
        );
    }
}
