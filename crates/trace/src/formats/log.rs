//! Common and combined access log.

use std::borrow::Cow;

use super::before_stamp::{self, site_at};
use super::server_logs::apache_stamps;
use crate::decoder::{BATCH, FormatDecoder};
use crate::error::TraceError;
use crate::format::Format;
use crate::format_spec::{Decode, FormatSpec};
use crate::ingest::{DecodedRequest, Ingest, answer_of, parse_size};
use crate::input::TraceInput;
use crate::line_error::LineError;
use crate::log_request::{LogRequest, LoggedSpans};
use crate::log_time;
use crate::options::Include;
use crate::prefix::{Likeness, Prefix};
use crate::source::{Framed, InputSource};
use crate::time::{NS_PER_S, STAMP_BYTES, StampReader};
use crate::url::{self, is_http11};
use plimsoll_synth::RecordKind;

/// The time of a line.
#[derive(Debug, Clone, Copy)]
enum LoggedTime<'a> {
    /// As `23/Nov/2026:21:22:15 +0000`.
    Stamp(&'a [u8; STAMP_BYTES]),
    /// In another form, which a server can be told to write.
    Other(&'a [u8]),
}

impl LoggedTime<'_> {
    #[inline]
    fn ns(self, stamps: &mut StampReader) -> Result<u64, LineError> {
        match self {
            Self::Stamp(stamp) => Ok(stamps.parse(stamp)? * NS_PER_S),
            Self::Other(text) => Ok(log_time::parse(text)?.ns),
        }
    }
}

/// The parts of a log line that matter.
#[derive(Debug)]
pub(crate) struct LogLine<'a> {
    client: Option<&'a [u8]>,
    time: LoggedTime<'a>,
    request: &'a [u8],
    status: u16,
    size_bytes: u64,
    /// What follows the size, as in the combined log; empty in the common log.
    pub(crate) rest: &'a [u8],
}

/// Splits a line; ignores what follows the size (referer, user agent).
#[inline]
pub(crate) fn split(line: &[u8]) -> Result<LogLine<'_>, LineError> {
    let (client, bracket) = before_stamp::client_and_stamp(line)?;
    let (time, quoted) = split_time(&line[bracket + 1..])?;
    let (request, tail) = split_request(quoted)?;
    // `split_request` has checked the space and three digits.
    let status = tail[1..4].iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
    let size = &tail[5..];
    let size_end = memchr::memchr(b' ', size).unwrap_or(size.len());
    let size_bytes = match &size[..size_end] {
        // Envoy has its flags here.
        b"-" if !is_iso(time) => 0,
        digits => parse_size(digits)?,
    };
    Ok(LogLine { client, time, request, status, size_bytes, rest: &size[size_end..] })
}

fn is_iso(time: LoggedTime<'_>) -> bool {
    matches!(time, LoggedTime::Other(text) if text.get(4) == Some(&b'-'))
}

/// The time, and what follows the quote that opens the request.
#[inline]
fn split_time(after: &[u8]) -> Result<(LoggedTime<'_>, &[u8]), LineError> {
    if let Some((stamp, rest)) = after.split_first_chunk::<STAMP_BYTES>()
        && let Some(quoted) = rest.strip_prefix(b"] \"")
    {
        return Ok((LoggedTime::Stamp(stamp), quoted));
    }
    let end = memchr::memchr(b']', after).ok_or(LineError::Text("line ends within the time stamp"))?;
    let quoted = after[end..].strip_prefix(b"] \"");
    let quoted = quoted.ok_or(LineError::Text("time stamp is not followed by a request in quotes"))?;
    Ok((LoggedTime::Other(&after[..end]), quoted))
}

/// Finds the quote that closes the request: an unescaped one that a status follows, because old servers did
/// not escape quotes in requests.
#[inline]
fn split_request(quoted: &[u8]) -> Result<(&[u8], &[u8]), LineError> {
    for end in memchr::memchr_iter(b'"', quoted) {
        let escapes = quoted[..end].iter().rev().take_while(|&&b| b == b'\\').count();
        let tail = &quoted[end + 1..];
        if escapes % 2 == 0 && is_status(tail) {
            return Ok((&quoted[..end], tail));
        }
    }
    Err(LineError::Text("request is not followed by a status and a size"))
}

#[inline]
fn is_status(tail: &[u8]) -> bool {
    tail.len() > 5 && tail[0] == b' ' && tail[4] == b' ' && tail[1..4].iter().all(u8::is_ascii_digit)
}

/// Decoder of both log formats, which differ only in what is ignored.
pub(crate) struct LogDecoder {
    source: InputSource,
    stamps: StampReader,
    line: u64,
}

impl LogDecoder {
    pub(crate) fn new(source: InputSource) -> Self {
        Self { source, stamps: StampReader::default(), line: 0 }
    }
}

impl FormatDecoder for LogDecoder {
    fn step(&mut self, out: &mut Ingest) -> Result<bool, TraceError> {
        for _ in 0..BATCH {
            if out.is_full() {
                break;
            }
            self.line += 1;
            match self.source.next_line()? {
                Framed::End => return Ok(false),
                Framed::TooLong => {
                    out.reject_too_long(self.line);
                }
                Framed::Line(line) if line.trim_ascii_start().is_empty() => {}
                Framed::Line(line) => {
                    out.count_line();
                    decode(&mut self.stamps, self.line, line, out)?;
                }
            }
        }
        Ok(true)
    }

    fn source(&mut self) -> Option<&mut InputSource> {
        Some(&mut self.source)
    }
}

#[inline]
fn decode(stamps: &mut StampReader, number: u64, line: &[u8], out: &mut Ingest) -> Result<(), TraceError> {
    let parts = split(line).and_then(|parts| Ok((parts.time.ns(stamps)?, parts)));
    let (time_ns, parts) = match parts {
        Ok(found) => found,
        Err(reason) => {
            out.reject(number, reason);
            return Ok(());
        }
    };
    let counted_status = matches!(parts.status, 200 | 206 | 304);
    if !counted_status && out.include == Include::Counted {
        out.tally.not_counted_status(parts.status);
        return Ok(());
    }
    let (method, logged) = match url::split_request_line(parts.request) {
        Ok(found) => found,
        // A request that the server refused may be anything (port scans, TLS on a plain port).
        Err(_) if !counted_status => {
            out.tally.not_counted_target();
            return Ok(());
        }
        Err(reason) => {
            out.reject(number, reason);
            return Ok(());
        }
    };
    if out.include == Include::Counted && !matches!(method, b"GET" | b"HEAD") {
        out.tally.not_counted_method(method);
        return Ok(());
    }
    let Some(target) = url::target(logged, out.strip_query) else {
        if counted_status && out.include == Include::Counted {
            out.reject(number, LineError::Text("target is neither a path nor a URL"));
        } else {
            out.tally.not_counted_target();
        }
        return Ok(());
    };
    let head = method == b"HEAD";
    let bodiless = head || parts.status == 304;
    let entry = DecodedRequest {
        time_ns,
        target: &target,
        client: parts.client,
        size_bytes: if bodiless { 0 } else { parts.size_bytes },
        whole: parts.status == 200 && !head,
        service_ns: 0,
        class: 0,
        kind: RecordKind::Static,
        answer: answer_of(parts.status),
        http11: is_http11(parts.request),
    };
    out.accept(number, &entry)
}

/// Whether a line of the prefix says more than the common log.
fn is_combined(prefix: &Prefix<'_>) -> bool {
    prefix.lines().filter_map(|line| split(line).ok()).any(|line| !line.rest.is_empty())
}

fn likeness(prefix: &Prefix<'_>, combined: bool) -> Likeness {
    if is_combined(prefix) == combined {
        prefix.lines_like(|line| explain(line).is_ok() && site_at(line).is_none())
    } else {
        Likeness::None
    }
}

fn open(source: InputSource, _: &TraceInput) -> Result<Box<dyn FormatDecoder>, TraceError> {
    Ok(Box::new(LogDecoder::new(source)))
}

/// Reads a line to show what is made of it.
fn explain(line: &[u8]) -> Result<LogRequest<'_>, LineError> {
    let parts = split(line)?;
    let request = url::split_request_line(parts.request);
    Ok(LogRequest {
        time_ns: parts.time.ns(&mut StampReader::default())?,
        client: parts.client.map(Cow::Borrowed),
        method: Some(Cow::Borrowed(request.as_ref().map_or(b"-", |(method, _)| *method))),
        target: request.map(|(_, target)| Cow::Borrowed(target)),
        host: None,
        site: None,
        status: Some(parts.status),
        size_bytes: Ok(parts.size_bytes),
        service_ns: None,
        http11: is_http11(parts.request),
        spans: LoggedSpans::default(),
    })
}

/// The common log's name.
pub const COMMON: Format = Format::named("common-log");

/// The combined log's name.
pub const COMBINED: Format = Format::named("combined-log");

/// Registry entry of the common log.
pub static COMMON_SPEC: FormatSpec = FormatSpec {
    format: COMMON,
    aliases: &["common", "clf"],
    summary: "NCSA common log (Apache `%h %l %u %t \"%r\" %>s %b`)",
    recognised_by: "lines that parse",
    sample: r#"192.0.2.7 - - [23/Nov/2026:21:22:15 +0000] "GET /index.html HTTP/1.1" 200 1719"#,
    remark: "What stands before the client (the head of the system's log, of a container's) and after the size is passed over. The \
             time may have a fraction, or be any that `--fields` takes.",
    binary: false,
    family: "access log",
    decode: Decode::Own { likeness: |prefix| likeness(prefix, false), open, explain: Some(explain) },
    stamps: apache_stamps,
    writer: None,
};

/// Registry entry of the combined log.
pub static COMBINED_SPEC: FormatSpec = FormatSpec {
    format: COMBINED,
    aliases: &["combined", "apache", "nginx"],
    summary: "Common log followed by referer and user agent; the default of Apache and nginx",
    recognised_by: "lines that parse, of which one has fields after the size",
    sample: r#"192.0.2.7 - - [23/Nov/2026:21:22:15 +0000] "GET /index.html HTTP/1.1" 200 1719 "-" "curl/7.88.1""#,
    remark: "As `common-log`.",
    binary: false,
    family: "access log",
    decode: Decode::Own { likeness: |prefix| likeness(prefix, true), open, explain: Some(explain) },
    stamps: apache_stamps,
    writer: None,
};
