//! Statistics of a trace.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::TraceError;
use crate::stats_parts::{ArrivalBins, SizeBin, SizeCounts, ZipfFit, median_request_bytes};
use crate::tally::RejectedLine;
use crate::trace::Trace;
use plimsoll_synth::coverage_bytes;

/// The shares of requests for which to report memory, as in the LARD paper's table of its traces.
const SHARES: [f64; 3] = [0.97, 0.98, 0.99];

/// Memory that covers a share of all requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Coverage {
    /// Share of requests, from 0 to 1.
    pub share: f64,
    /// Bytes of the documents that serve it, the most often requested first.
    pub bytes: u64,
}

/// The statistics of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceStats {
    /// Number of requests.
    pub requests: u64,
    /// Distinct targets that are asked for.
    pub targets: u64,
    /// Distinct clients; 0 where the trace names none.
    pub clients: u64,
    /// Bytes sent, over all requests.
    pub sent_bytes: u64,
    /// Sum of the sizes of all distinct documents in bytes.
    pub documents_bytes: u64,
    /// Mean bytes sent per request.
    pub request_mean_bytes: f64,
    /// Median of the bytes sent per request.
    pub request_median_bytes: f64,
    /// Most bytes sent for one request.
    pub request_max_bytes: u64,
    /// Mean size of the distinct documents in bytes.
    pub document_mean_bytes: f64,
    /// Median size of the distinct documents in bytes.
    pub document_median_bytes: f64,
    /// Size of the largest document in bytes.
    pub document_max_bytes: u64,
    /// Name of the target asked for most often (bytes that are not UTF-8 replaced).
    pub top_target: String,
    /// Its share of all requests, from 0 to 1.
    pub top_share: f64,
    /// Memory to cover 97, 98 and 99 % of the requests.
    pub coverage: Vec<Coverage>,
    /// Popularity law; `None` when fewer than ten targets have ten requests each.
    pub zipf: Option<ZipfFit>,
    /// Sizes of requests by powers of two.
    pub request_sizes: Vec<SizeBin>,
    /// Sizes of distinct documents by powers of two.
    pub document_sizes: Vec<SizeBin>,
    /// Time of the first request in seconds since the trace's origin (Unix epoch for logs).
    pub first_s: f64,
    /// Time from the first request to the last, in seconds.
    pub duration_s: f64,
    /// Requests over time.
    pub arrivals: ArrivalBins,
    /// Lines read.
    pub lines: u64,
    /// Lines that could not be used.
    pub lines_rejected: u64,
    /// The first ten of them with reasons.
    pub rejections: Vec<RejectedLine>,
    /// Well-formed requests that do not count, by reason.
    pub not_counted: BTreeMap<String, u64>,
}

impl TraceStats {
    /// Computes the statistics in one pass over the records (two or three more find the exact
    /// median of request sizes), from the stamps of the input.
    ///
    /// # Errors
    /// A temporary file that cannot be read back.
    pub fn of(trace: &Trace) -> Result<Self, TraceError> {
        let (mut sent_bytes, mut largest_bytes) = (0u64, 0);
        let mut classes = SizeCounts::default();
        let mut arrivals = None;
        let (mut first_ns, mut last_ns) = (0, 0);
        for record in trace.open_as_stamped() {
            let record = record?;
            let bins = arrivals.get_or_insert_with(|| {
                first_ns = record.time_ns;
                ArrivalBins::new(record.time_ns)
            });
            bins.add(record.time_ns);
            last_ns = record.time_ns;
            sent_bytes = sent_bytes.saturating_add(record.size_bytes);
            largest_bytes = largest_bytes.max(record.size_bytes);
            classes.add(record.size_bytes);
        }
        let requests = trace.len();
        let request_sizes = classes.bins();
        let documents = Documents::of(trace);
        let report = &trace.report;
        Ok(Self {
            requests,
            targets: documents.sorted_bytes.len() as u64,
            clients: report.clients,
            sent_bytes,
            documents_bytes: documents.sum_bytes,
            request_mean_bytes: mean(sent_bytes, requests),
            request_median_bytes: median_request_bytes(trace, &request_sizes)?,
            request_max_bytes: largest_bytes,
            document_mean_bytes: mean(documents.sum_bytes, documents.sorted_bytes.len() as u64),
            document_median_bytes: median(&documents.sorted_bytes),
            document_max_bytes: documents.sorted_bytes.last().copied().unwrap_or(0),
            top_target: documents.top_target,
            top_share: mean(documents.top_requests, requests),
            coverage: documents.coverage,
            zipf: documents.zipf,
            request_sizes,
            document_sizes: documents.classes.bins(),
            first_s: first_ns as f64 / 1e9,
            duration_s: (last_ns - first_ns) as f64 / 1e9,
            arrivals: arrivals.unwrap_or_else(|| ArrivalBins::new(0)),
            lines: report.lines,
            lines_rejected: report.lines_rejected,
            rejections: report.rejections.clone(),
            not_counted: report.not_counted.clone(),
        })
    }
}

/// Statistics from the table of targets.
struct Documents {
    sorted_bytes: Vec<u64>,
    sum_bytes: u64,
    classes: SizeCounts,
    top_target: String,
    top_requests: u64,
    coverage: Vec<Coverage>,
    zipf: Option<ZipfFit>,
}

impl Documents {
    fn of(trace: &Trace) -> Self {
        let targets = &trace.targets;
        // Numbers fit 32 bits by construction of the table.
        let ids = || (0..targets.len() as u32).filter(|&id| targets.requests(id) > 0);
        let mut counts: Vec<u64> = ids().map(|id| targets.requests(id)).collect();
        let mut sizes: Vec<u64> = ids().map(|id| targets.document_size_bytes(id)).collect();
        let coverage = SHARES
            .iter()
            .zip(coverage_bytes(&counts, &sizes, &SHARES))
            .map(|(&share, bytes)| Coverage { share, bytes })
            .collect();
        // Among equals the first in the trace.
        let top = ids().rev().max_by_key(|&id| targets.requests(id));
        counts.sort_unstable_by(|a, b| b.cmp(a));
        sizes.sort_unstable();
        let mut classes = SizeCounts::default();
        sizes.iter().for_each(|&size| classes.add(size));
        Self {
            sum_bytes: sizes.iter().fold(0, |sum, &size| sum.saturating_add(size)),
            classes,
            top_target: top
                .map_or_else(String::new, |id| String::from_utf8_lossy(targets.name(id)).into_owned()),
            top_requests: counts.first().copied().unwrap_or(0),
            coverage,
            zipf: ZipfFit::of(&counts),
            sorted_bytes: sizes,
        }
    }
}

fn mean(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

fn median(sorted: &[u64]) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    (low as f64 + high as f64) / 2.0
}
