//! What a log says of a site: documents, popularity, arrivals.

use plimsoll_trace::{Trace, TraceError, TraceIter, TraceStats};
use serde::Serialize;

/// With fewer requests there is no advice.
pub const LEAST_REQUESTS: u64 = 2_000;

/// The peak is the busiest span of this length in seconds.
pub(super) const PEAK_WINDOW_S: f64 = 60.0;

/// See the module's documentation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogFacts {
    /// Requests that count.
    pub requests: u64,
    /// Distinct targets.
    pub targets: u64,
    /// Sum of the sizes of all documents in bytes: the working set.
    pub documents_bytes: u64,
    /// Memory that holds the most requested documents with 99 % of the requests, in bytes.
    pub cover99_bytes: u64,
    /// Mean bytes of an answer.
    pub answer_mean_bytes: f64,
    /// Share of the requests for the target that is asked for most.
    pub top_share: f64,
    /// That target.
    pub top_target: String,
    /// Share of the requests for targets that are asked for once, which no memory can have.
    pub once_share: f64,
    /// Requests that do not count, such as those of other methods than GET, over all.
    pub not_counted_share: f64,
    /// Requests that do not count, by reason.
    #[serde(skip)]
    pub not_counted: Vec<(String, u64)>,
    /// All requests have one time, and it is one.
    #[serde(skip)]
    pub has_one_time: bool,
    /// From the first request to the last, in seconds.
    pub duration_s: f64,
    /// Mean requests per second; `None` where the log has no times.
    pub mean_rps: Option<f64>,
    /// Requests per second in the busiest minute, or over all of a log that is shorter; `None` where the log has no times.
    pub peak_rps: Option<f64>,
}

impl LogFacts {
    /// Those of a trace.
    ///
    /// # Errors
    /// When the kept records cannot be read.
    pub fn of(trace: &Trace) -> Result<Self, TraceError> {
        let stats = TraceStats::of(trace)?;
        let targets = &trace.targets;
        let once = (0..targets.len() as u32).filter(|&id| targets.requests(id) == 1).count();
        let has_times = stats.duration_s > 0.0;
        let span_s = stats.duration_s + resolution_s(trace)?;
        let window_s = PEAK_WINDOW_S.min(span_s);
        let peak = if has_times { busiest_span(trace.open_as_stamped(), window_s)?.requests } else { 0 };
        let first_ns = trace.open_as_stamped().next().transpose()?.map_or(0, |record| record.time_ns);
        let not_counted: Vec<(String, u64)> =
            trace.report.not_counted.iter().map(|(why, &requests)| (why.clone(), requests)).collect();
        let left_out: u64 = not_counted.iter().map(|(_, requests)| requests).sum();
        let cover99 = stats.coverage.iter().find(|coverage| coverage.share == 0.99);
        Ok(Self {
            requests: stats.requests,
            targets: stats.targets,
            documents_bytes: stats.documents_bytes,
            cover99_bytes: cover99.map_or(stats.documents_bytes, |coverage| coverage.bytes),
            answer_mean_bytes: stats.request_mean_bytes,
            top_share: stats.top_share,
            top_target: stats.top_target,
            once_share: once as f64 / stats.requests.max(1) as f64,
            not_counted_share: left_out as f64 / (left_out + stats.requests).max(1) as f64,
            not_counted,
            has_one_time: !has_times && first_ns > 0,
            duration_s: stats.duration_s,
            mean_rps: has_times.then(|| stats.requests as f64 / span_s),
            peak_rps: has_times.then(|| peak as f64 / window_s),
        })
    }
}

/// How long each time of the log stands for: whole seconds for one each, as the last one has its requests, too.
fn resolution_s(trace: &Trace) -> Result<f64, TraceError> {
    for record in trace.open_as_stamped() {
        if record?.time_ns % 1_000_000_000 != 0 {
            return Ok(0.0);
        }
    }
    Ok(1.0)
}

/// The span of time with the most requests.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BusiestSpan {
    /// Place of its first request.
    pub(super) first: u64,
    /// How many there are in it.
    pub(super) requests: u64,
    /// The whole log lies in one span.
    pub(super) is_all: bool,
}

/// The busiest span of this length, the last one of equals; spans are counted from the first request.
pub(super) fn busiest_span(records: TraceIter, window_s: f64) -> Result<BusiestSpan, TraceError> {
    let window_ns = ((window_s * 1e9) as u64).max(1);
    let (mut first_ns, mut span, mut first) = (None, 0, 0);
    let mut busiest = BusiestSpan::default();
    for (index, record) in (0..).zip(records) {
        let time_ns = record?.time_ns;
        let own = (time_ns - *first_ns.get_or_insert(time_ns)) / window_ns;
        if own != span {
            (span, first) = (own, index);
        }
        let requests = index - first + 1;
        if requests >= busiest.requests {
            busiest = BusiestSpan { first, requests, is_all: false };
        }
    }
    Ok(BusiestSpan { is_all: span == 0, ..busiest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_trace::{Record, TargetTable};

    fn trace(requests: &[(u64, u32, u64)]) -> Trace {
        let mut table = TargetTable::new();
        for target in 0..=requests.iter().map(|r| r.1).max().unwrap() {
            table.intern(format!("/{target}").as_bytes());
        }
        let record = |&(s, target, size_bytes): &(u64, u32, u64)| Record {
            time_ns: s * 1_000_000_000,
            target,
            size_bytes,
            ..Record::default()
        };
        Trace::from_records(table, requests.iter().map(record)).unwrap()
    }

    #[test]
    fn facts_by_hand() {
        // Two in the first minute, three in the third.
        let facts = LogFacts::of(&trace(&[
            (0, 0, 100),
            (59, 1, 50),
            (130, 0, 100),
            (140, 0, 100),
            (150, 0, 100),
            (240, 2, 10),
        ]))
        .unwrap();
        assert_eq!((facts.requests, facts.targets, facts.documents_bytes), (6, 3, 160));
        assert_eq!((facts.peak_rps, facts.mean_rps), (Some(0.05), Some(6.0 / 241.0)));
        assert_eq!((facts.top_target.as_str(), facts.once_share), ("/0", 2.0 / 6.0));
    }

    #[test]
    fn the_last_second_is_a_whole_one_where_times_are_whole_seconds() {
        let two_seconds = LogFacts::of(&trace(&[(7, 0, 1), (7, 0, 1), (8, 0, 1), (8, 0, 1)])).unwrap();
        assert_eq!((two_seconds.peak_rps, two_seconds.mean_rps), (Some(2.0), Some(2.0)));
    }

    #[test]
    fn a_log_without_times_has_no_rates() {
        let facts = LogFacts::of(&trace(&[(5, 0, 1), (5, 0, 1)])).unwrap();
        assert_eq!((facts.peak_rps, facts.mean_rps, facts.has_one_time), (None, None, true));
        assert!(!LogFacts::of(&trace(&[(0, 0, 1), (0, 0, 1)])).unwrap().has_one_time);
    }
}
