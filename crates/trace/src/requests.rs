//! Requests with their method, whole URI, durations and back-end, for what needs more than a [`Record`](crate::Record).

use crate::after_size::{self, FieldsAfterSize};
use crate::choose::{check_fields, choose, merge};
use crate::error::TraceError;
use crate::explain::explain;
use crate::format::Format;
use crate::format_spec::Decode;
use crate::formats::{before_stamp, log, server_logs};
use crate::input::TraceInput;
use crate::line_error::LineError;
use crate::line_log::SplitLine;
use crate::log_request::LogRequest;
use crate::options::{Include, ReadOptions};
use crate::prefix::{BYTE_ORDER_MARK, Prefix, is_marked_text};
use crate::reader::TraceReader;
use crate::registry::PREFIX_BYTES;
use crate::source::{Framed, InputDigest, InputSource, MAX_LINE_BYTES};
use crate::tally::{ReadReport, Tally};
use crate::time::NS_PER_S;

/// A request with a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedRequest<'a> {
    /// When it arrived, in nanoseconds since 1970.
    pub begins_ns: u64,
    /// How long the back-end worked; `None` where the log has no such time.
    pub backend_ns: Option<u64>,
    /// How long the request took as a whole; `None` where the log has no such time.
    pub total_ns: Option<u64>,
    /// The method.
    pub method: &'a [u8],
    /// Path and query, or URL, as logged.
    pub target: &'a [u8],
    /// The status; 200 where the log has none.
    pub status: u16,
    /// Size of the response in bytes; 0 where the log does not tell it.
    pub size_bytes: u64,
    /// The back-end that answered.
    pub backend: Option<&'a [u8]>,
}

/// Reads the requests of inputs in the order of the lines. Those whose lines have no duration are counted as
/// [not counted](ReadReport::not_counted); lines with an absurd one are rejected.
///
/// # Errors
/// As [`TraceReader`]; and where no request has a duration.
pub fn read_timed_requests(
    inputs: &[TraceInput],
    options: &ReadOptions,
    after: Option<&FieldsAfterSize>,
    take: &mut dyn FnMut(&TimedRequest<'_>),
) -> Result<ReadReport, TraceError> {
    let mut reading = TimedReading { options, after, tally: Tally::new(options), without_time: 0, take };
    for input in inputs {
        if reading.is_full() {
            break;
        }
        reading.input(input)?;
    }
    let without_time = reading.without_time;
    let mut tally = reading.tally;
    if tally.report.records == 0 && without_time > 0 {
        let reason = format!("none of {without_time} requests has a duration");
        return Err(TraceError::NoDurations { path: tally.report.paths.join(", "), reason });
    }
    tally.judge()?;
    if without_time > 0 {
        tally.report.not_counted.insert("no duration".to_owned(), without_time);
    }
    Ok(tally.report)
}

struct TimedReading<'a> {
    options: &'a ReadOptions,
    after: Option<&'a FieldsAfterSize>,
    tally: Tally,
    without_time: u64,
    take: &'a mut dyn FnMut(&TimedRequest<'_>),
}

impl TimedReading<'_> {
    fn is_full(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.tally.report.records >= limit)
    }

    fn input(&mut self, input: &TraceInput) -> Result<(), TraceError> {
        let mut source = InputSource::open(input, &InputDigest::default())?;
        let path = source.path().to_owned();
        self.tally.start(&path);
        if is_marked_text(source.peek(PREFIX_BYTES)?) {
            source.consume(BYTE_ORDER_MARK.len());
        }
        let first = source.peek(PREFIX_BYTES)?;
        if first.iter().all(u8::is_ascii_whitespace) && first.len() < PREFIX_BYTES {
            return Ok(());
        }
        let prefix = Prefix::new(first, input.path());
        let format = choose(self.options, &prefix, &path)?;
        let report = &mut self.tally.report;
        if report.format.is_none() {
            report.unseen_fields = check_fields(format, self.options, &prefix, &path)?;
            report.first_line = explain(format, &prefix, &path, self.options);
        }
        report.format = Some(merge(report.format, format, &path)?);
        let after = self.after;
        match &format.spec().decode {
            Decode::Lines(of) => {
                let mut splitter = (of.splitter)(self.options);
                let is_vhost = format == server_logs::VHOST.format;
                self.lines(source, |line| match splitter.split(line)? {
                    SplitLine::Request(raw) => {
                        let mut request = raw.read()?;
                        if is_vhost {
                            request.spans = after_size::read(after_vhost(line)?, after);
                        }
                        Ok(ReadLine::Request(request))
                    }
                    SplitLine::Directive => Ok(ReadLine::Directive),
                    SplitLine::Event => Ok(ReadLine::Event),
                })
            }
            Decode::Own { explain: Some(explain), .. } if is_apache(format) => self.lines(source, |line| {
                let mut request = explain(line)?;
                request.spans = after_size::read(log::split(line)?.rest, after);
                if request.spans.stamped_at_end && request.time_ns % NS_PER_S != 0 {
                    request.time_ns = request.time_ns.saturating_sub(request.spans.total_ns.unwrap_or(0));
                }
                Ok(ReadLine::Request(request))
            }),
            Decode::Own { .. } => self.records(input),
        }
    }

    fn lines<'s>(
        &mut self,
        mut source: InputSource,
        mut read: impl FnMut(&[u8]) -> Result<ReadLine<'_>, LineError> + 's,
    ) -> Result<(), TraceError> {
        let mut number = 0;
        while !self.is_full() {
            number += 1;
            let line = match source.next_line()? {
                Framed::End => break,
                Framed::TooLong => {
                    self.tally.report.lines += 1;
                    self.tally.reject(number, LineError::TooLong { limit_bytes: MAX_LINE_BYTES });
                    continue;
                }
                Framed::Line(line) if line.trim_ascii_start().is_empty() => continue,
                Framed::Line(line) => line,
            };
            let found = read(line);
            if !matches!(found, Ok(ReadLine::Directive)) {
                self.tally.report.lines += 1;
            }
            match found {
                Ok(ReadLine::Directive) => {}
                Ok(ReadLine::Event) => self.tally.not_counted_event(),
                Ok(ReadLine::Request(request)) => self.request(number, &request),
                Err(reason) => self.tally.reject(number, reason),
            }
            self.tally.judge_early()?;
        }
        Ok(())
    }

    fn request(&mut self, number: u64, request: &LogRequest<'_>) {
        let spans = &request.spans;
        if let Some(reason) = spans.wrong {
            self.tally.reject(number, reason);
            return;
        }
        let Ok(target) = &request.target else {
            self.tally.not_counted_target();
            return;
        };
        if spans.total_ns.or(spans.backend_ns).is_none() {
            self.without_time += 1;
            return;
        }
        self.tally.report.records += 1;
        (self.take)(&TimedRequest {
            begins_ns: request.time_ns,
            backend_ns: spans.backend_ns,
            total_ns: spans.total_ns,
            method: request.method.as_deref().unwrap_or(b"GET"),
            target,
            status: request.status.unwrap_or(200),
            size_bytes: request.size_bytes.unwrap_or(0),
            backend: spans.backend.as_deref(),
        });
    }

    /// Formats without methods and back-ends.
    fn records(&mut self, input: &TraceInput) -> Result<(), TraceError> {
        let options = ReadOptions { include: Include::All, ..self.options.clone() };
        let mut reader = TraceReader::new(std::slice::from_ref(input), &options);
        while let Some(record) = reader.next() {
            let record = record?;
            if record.service_ns == 0 {
                self.without_time += 1;
                continue;
            }
            self.tally.report.records += 1;
            (self.take)(&TimedRequest {
                begins_ns: record.time_ns,
                backend_ns: Some(record.service_ns),
                total_ns: None,
                method: b"GET",
                target: reader.targets().name(record.target),
                status: 200,
                size_bytes: record.size_bytes,
                backend: None,
            });
        }
        let found = reader.report();
        let report = &mut self.tally.report;
        report.lines += found.lines;
        report.lines_rejected += found.lines_rejected;
        report.rejections.extend(found.rejections.iter().cloned());
        Ok(())
    }
}

/// What a line is.
#[expect(clippy::large_enum_variant, reason = "nearly every line is a request, and none is kept")]
enum ReadLine<'a> {
    Request(LogRequest<'a>),
    Directive,
    Event,
}

fn is_apache(format: Format) -> bool {
    format == log::COMMON || format == log::COMBINED
}

/// What follows the size in a line that begins with a site.
fn after_vhost(line: &[u8]) -> Result<&[u8], LineError> {
    let at =
        before_stamp::vhost_at(line).ok_or(LineError::Text("line does not begin as this format does"))?;
    Ok(log::split(&line[at..])?.rest)
}
