//! Logs whose lines are split into fields, each with a role.

use crate::decoder::{BATCH, FormatDecoder};
use crate::error::TraceError;
use crate::field_role::FieldRole;
use crate::ingest::Ingest;
use crate::line_error::LineError;
use crate::log_request::{LogRequest, take};
use crate::options::ReadOptions;
use crate::raw_request::RawRequest;
use crate::source::{Framed, InputSource};

/// What a line is.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every line is a request, and none is kept")]
pub(crate) enum SplitLine<'a> {
    /// A request.
    Request(RawRequest<'a>),
    /// Says something of the lines that follow.
    Directive,
    /// Another event than a request.
    Event,
}

/// Splits lines into fields. It may remember what earlier lines said of later ones.
pub(crate) trait LineSplitter: Send {
    /// Splits a line that is not empty.
    fn split<'a>(&mut self, line: &'a [u8]) -> Result<SplitLine<'a>, LineError>;

    /// Whether the log names its fields, and a line has done so in full.
    fn knows_fields(&self) -> bool {
        false
    }

    /// Which of the names that `--fields` gives have been seen, in their order; empty for a log whose fields have none.
    fn given_seen(&self) -> &[bool] {
        &[]
    }
}

/// A log of such lines.
pub(crate) struct LineLog {
    /// Makes the splitter.
    pub(crate) splitter: fn(&ReadOptions) -> Box<dyn LineSplitter>,
    /// Whether fields have names, so that `--fields` can say what they mean.
    pub(crate) named: bool,
}

/// What the first lines of an input are for a log.
#[derive(Debug, Default)]
pub(crate) struct LineTrial {
    /// Lines that are requests with everything that counts.
    pub(crate) sensible: usize,
    /// Lines that should be requests.
    pub(crate) lines: usize,
    /// Whether the log named its fields.
    pub(crate) header: bool,
}

impl LineLog {
    /// Tries the log on lines.
    pub(crate) fn try_on<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        options: &ReadOptions,
    ) -> LineTrial {
        let mut splitter = (self.splitter)(options);
        let mut trial = LineTrial::default();
        for line in lines {
            match splitter.split(line) {
                Ok(SplitLine::Directive) => continue,
                Ok(SplitLine::Request(raw)) => {
                    trial.sensible += usize::from(raw.read().is_ok_and(|request| self.is_sensible(&request)));
                }
                Ok(SplitLine::Event) | Err(_) => {}
            }
            trial.lines += 1;
        }
        trial.header = splitter.knows_fields();
        trial
    }

    /// Whether a line is one of this log. Where fields have names, other events may share some of them.
    fn is_sensible(&self, request: &LogRequest<'_>) -> bool {
        request.is_sensible() && (!self.named || request.asks())
    }

    /// Whether most of the lines could be of this log, though perhaps none is a request.
    pub(crate) fn may_hold<'a>(&self, lines: impl Iterator<Item = &'a [u8]>, options: &ReadOptions) -> bool {
        let mut splitter = (self.splitter)(options);
        let (count, split) = lines.fold((0, 0), |(count, split), line| {
            (count + 1, split + usize::from(splitter.split(line).is_ok()))
        });
        count > 0 && 2 * split >= count
    }

    /// The first line that is a request, by its place among `lines`, and what it says; otherwise why the first line is none.
    pub(crate) fn first_of<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        options: &ReadOptions,
    ) -> Result<(usize, LogRequest<'a>), LineError> {
        let mut splitter = (self.splitter)(options);
        let mut first_reason = None;
        for (at, line) in lines.enumerate() {
            let reason = match splitter.split(line) {
                Ok(SplitLine::Directive) => continue,
                Ok(SplitLine::Event) => LineError::Text("line is no request"),
                Ok(SplitLine::Request(raw)) => match raw.read() {
                    Ok(request) if self.is_sensible(&request) => return Ok((at, request)),
                    Ok(request) => request.target.err().or(request.size_bytes.err()).unwrap_or(NO_REQUEST),
                    Err(reason) => reason,
                },
                Err(reason) => reason,
            };
            first_reason.get_or_insert(reason);
        }
        Err(first_reason.unwrap_or(NO_REQUEST))
    }

    /// The roles with the names that `--fields` gives and no line has; none where lines have some of them but none is a request.
    pub(crate) fn unseen_fields<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        options: &ReadOptions,
    ) -> Vec<(FieldRole, String)> {
        let mut splitter = (self.splitter)(options);
        let mut requests = false;
        for line in lines {
            requests |= matches!(splitter.split(line), Ok(SplitLine::Request(_)));
        }
        let seen = splitter.given_seen();
        if !requests && seen.contains(&true) {
            return Vec::new();
        }
        let given = options.fields.iter().flat_map(|map| map.fields());
        given.zip(seen).filter(|(_, seen)| !**seen).map(|(field, _)| field.clone()).collect()
    }

    /// The sites that requests among `lines` ask, one after the other, where targets leave them out.
    pub(crate) fn sites<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        options: &ReadOptions,
    ) -> Vec<String> {
        let mut splitter = (self.splitter)(options);
        let site = |line| match splitter.split(line) {
            Ok(SplitLine::Request(raw)) => raw.read().ok()?.left_out_site(),
            _ => None,
        };
        lines.filter_map(site).collect()
    }

    pub(crate) fn open(&self, source: InputSource, options: &ReadOptions) -> Box<dyn FormatDecoder> {
        Box::new(LineDecoder { source, splitter: (self.splitter)(options), line: 0 })
    }
}

const NO_REQUEST: LineError = LineError::Text("there is no request");

struct LineDecoder {
    source: InputSource,
    splitter: Box<dyn LineSplitter>,
    line: u64,
}

impl FormatDecoder for LineDecoder {
    fn step(&mut self, out: &mut Ingest) -> Result<bool, TraceError> {
        for _ in 0..BATCH {
            if out.is_full() {
                break;
            }
            self.line += 1;
            let line = match self.source.next_line()? {
                Framed::End => return Ok(false),
                Framed::TooLong => {
                    out.reject_too_long(self.line);
                    continue;
                }
                Framed::Line(line) if line.trim_ascii_start().is_empty() => continue,
                Framed::Line(line) => line,
            };
            let request = match self.splitter.split(line) {
                Ok(SplitLine::Directive) => continue,
                Ok(SplitLine::Event) => {
                    out.count_line();
                    out.tally.not_counted_event();
                    continue;
                }
                Ok(SplitLine::Request(raw)) => raw.read(),
                Err(reason) => Err(reason),
            };
            out.count_line();
            match request {
                Ok(request) => take(out, self.line, &request)?,
                Err(reason) => out.reject(self.line, reason),
            }
        }
        Ok(true)
    }

    fn source(&mut self) -> Option<&mut InputSource> {
        Some(&mut self.source)
    }
}
