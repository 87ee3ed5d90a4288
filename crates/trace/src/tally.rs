//! Counts what was read, what was rejected and why.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::check::WorldCupCheck;
use crate::error::TraceError;
use crate::first_line::FirstLine;
use crate::format::Format;
use crate::line_error::LineError;
use crate::options::ReadOptions;

/// How many rejections are reported with their line and reason.
const EXAMPLES: usize = 10;

/// Rejections are judged early once so many lines were read ...
const EARLY_LINES: u64 = 1000;

/// How many unusual methods are counted by name.
const NAMED_METHODS: usize = 32;

/// One rejected line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RejectedLine {
    /// Input as the user named it.
    pub path: String,
    /// Number of the line, record or row in its file, counted from 1.
    pub line: u64,
    /// Why it cannot be used.
    pub reason: String,
}

impl fmt::Display for RejectedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}: {}", self.path, self.line, self.reason)
    }
}

/// The report on reading a trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ReadReport {
    /// Inputs as the user named them (`-` for standard input), or the name of a synthetic workload.
    pub paths: Vec<String>,
    /// Format of the inputs; `None` for a synthetic workload.
    pub format: Option<Format>,
    /// SHA-256 of the raw bytes of all inputs, end to end, before decompression, in hexadecimal;
    /// `None` for a synthetic workload and for standard input that was not read to its end.
    pub sha256: Option<String>,
    /// Lines, binary records or rows read, empty lines and headers left out.
    pub lines: u64,
    /// Of these, how many could not be used.
    pub lines_rejected: u64,
    /// The first ten rejections.
    pub rejections: Vec<RejectedLine>,
    /// Well-formed requests that are no records, by reason, such as `status 404` or `method POST`.
    pub not_counted: BTreeMap<String, u64>,
    /// Records handed on.
    pub records: u64,
    /// Distinct clients; 0 where the format names none.
    pub clients: u64,
    /// Records stamped earlier than the record before them; they were sorted in.
    pub out_of_order: u64,
    /// Whether every stamp was a whole second and the records were spread within their second.
    pub times_spread: bool,
    /// Whether stamps were taken for arrivals or completions, and why.
    pub stamp_assumption: String,
    /// The first request and what was read from its line.
    #[serde(skip)]
    pub first_line: Option<FirstLine>,
    /// Another format that the content resembles more than the one that the user named.
    #[serde(skip)]
    pub resembles: Option<Format>,
    /// The fields that `--fields` names and the first lines do not have.
    #[serde(skip)]
    pub unseen_fields: Vec<String>,
    /// The sites that the first lines ask, where targets leave them out.
    #[serde(skip)]
    pub left_out_sites: Vec<String>,
    /// Totals of all records of a World Cup log, counted or not.
    pub world_cup: Option<WorldCupCheck>,
}

/// Counts lines and decides when too many are bad.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) report: ReadReport,
    /// What the content looks like, where the user named another format.
    pub(crate) looks_like: Option<Format>,
    path: String,
    statuses: Vec<u64>,
    methods: Vec<(Vec<u8>, u64)>,
    other_methods: u64,
    no_target: u64,
    events: u64,
    max_bad_ratio: f64,
}

impl Tally {
    pub(crate) fn new(options: &ReadOptions) -> Self {
        Self {
            report: ReadReport::default(),
            looks_like: None,
            path: String::new(),
            statuses: vec![0; 1000],
            methods: Vec::new(),
            other_methods: 0,
            no_target: 0,
            events: 0,
            max_bad_ratio: options.max_bad_ratio,
        }
    }

    /// Names the input whose lines follow.
    pub(crate) fn start(&mut self, path: &str) {
        path.clone_into(&mut self.path);
        self.report.paths.push(path.to_owned());
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    #[cold]
    pub(crate) fn reject(&mut self, line: u64, reason: LineError) {
        self.report.lines_rejected += 1;
        if self.report.rejections.len() < EXAMPLES {
            self.report.rejections.push(RejectedLine {
                path: self.path.clone(),
                line,
                reason: reason.to_string(),
            });
        }
    }

    pub(crate) fn not_counted_status(&mut self, status: u16) {
        let last = self.statuses.len() - 1;
        self.statuses[usize::from(status).min(last)] += 1;
    }

    pub(crate) fn not_counted_method(&mut self, method: &[u8]) {
        if let Some(known) = self.methods.iter_mut().find(|(name, _)| name == method) {
            known.1 += 1;
        } else if self.methods.len() < NAMED_METHODS && method.len() <= 16 {
            self.methods.push((method.to_owned(), 1));
        } else {
            self.other_methods += 1;
        }
    }

    pub(crate) fn not_counted_target(&mut self) {
        self.no_target += 1;
    }

    pub(crate) fn not_counted_event(&mut self) {
        self.events += 1;
    }

    /// Fails when most of the first lines are bad, which means that the format is wrong.
    pub(crate) fn judge_early(&self) -> Result<(), TraceError> {
        let ReadReport { lines, lines_rejected, .. } = self.report;
        if lines >= EARLY_LINES
            && lines_rejected > lines / 2
            && lines_rejected as f64 > self.max_bad_ratio * lines as f64
        {
            return Err(self.too_many());
        }
        Ok(())
    }

    /// Fails when too many lines were bad, or none was usable.
    pub(crate) fn judge(&mut self) -> Result<(), TraceError> {
        self.list_not_counted();
        let report = &self.report;
        if report.records == 0 {
            let reason = if report.lines == 0 {
                "it is empty".to_owned()
            } else if report.lines_rejected > 0 {
                format!(
                    "{} of {} lines were rejected: {}{}",
                    report.lines_rejected,
                    report.lines,
                    self.examples(),
                    self.expected()
                )
            } else {
                let reasons: Vec<_> =
                    report.not_counted.iter().map(|(reason, count)| format!("{reason} ({count})")).collect();
                let are_requests = report.not_counted.keys().any(|reason| reason.starts_with(['s', 'm']));
                let remedy = if are_requests { "; --include-all takes them nonetheless" } else { "" };
                format!("none of its {} lines counts: {}{remedy}", report.lines, reasons.join(", "))
            };
            return Err(TraceError::NoUsableLine { path: report.paths.join(", "), reason });
        }
        if report.lines_rejected as f64 > self.max_bad_ratio * report.lines as f64 {
            return Err(self.too_many());
        }
        Ok(())
    }

    fn list_not_counted(&mut self) {
        let mut list = BTreeMap::new();
        for (status, &count) in self.statuses.iter().enumerate() {
            if count > 0 {
                let name = match status {
                    0 => "status (other)".to_owned(),
                    _ => format!("status {status}"),
                };
                list.insert(name, count);
            }
        }
        for (method, count) in &self.methods {
            list.insert(format!("method {}", method.escape_ascii()), *count);
        }
        for (reason, count) in [
            ("method (other)", self.other_methods),
            ("no usable target", self.no_target),
            ("no request", self.events),
        ] {
            if count > 0 {
                list.insert(reason.to_owned(), count);
            }
        }
        self.report.not_counted = list;
    }

    /// A line that would do, and what the content looks like where that is something else, as clauses after semicolons.
    fn expected(&self) -> String {
        self.report.format.map_or_else(String::new, Format::expected) + &self.alike()
    }

    /// What the content looks like where the user named something else, as a clause after a semicolon.
    pub(crate) fn alike(&self) -> String {
        self.looks_like.map_or_else(String::new, |format| format!("; the content looks like {format}"))
    }

    fn too_many(&self) -> TraceError {
        TraceError::TooManyRejected {
            path: self.report.paths.join(", "),
            rejected: self.report.lines_rejected,
            lines: self.report.lines,
            allowed: self.max_bad_ratio,
            examples: self.examples(),
            expected: self.expected(),
        }
    }

    fn examples(&self) -> String {
        let mut shown: Vec<_> = self.report.rejections.iter().take(3).map(ToString::to_string).collect();
        if self.report.lines_rejected > shown.len() as u64 {
            shown.push("...".to_owned());
        }
        let backwards = |r: &RejectedLine| r.reason.starts_with("time goes backwards");
        if self.report.paths.len() > 1 && self.report.rejections.iter().any(backwards) {
            shown.push("inputs are read in the order given, so name the oldest first".to_owned());
        }
        shown.join("; ")
    }
}
