//! Lines `time id size`, separated by spaces, tabs or commas.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::decoder::{BATCH, FormatDecoder};
use crate::error::TraceError;
use crate::format::Format;
use crate::format_spec::{Decode, Encode, FormatSpec, FormatWriter, stamped_on_arrival};
use crate::ingest::{DecodedRequest, Ingest, parse_size};
use crate::line_error::LineError;
use crate::log_request::{LogRequest, LoggedSpans};
use crate::prefix::{Likeness, Prefix};
use crate::source::{Framed, InputSource};
use crate::time::parse_seconds;
use plimsoll_synth::{AnswerKind, RecordKind};

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b',')
}

/// Time in nanoseconds, name and size in bytes of a line.
pub(crate) fn split(line: &[u8]) -> Result<(u64, &[u8], u64), LineError> {
    const SHAPE: LineError = LineError::Text("line is not of the form `time id size`");
    let mut fields = line.split(|&b| is_separator(b)).filter(|field| !field.is_empty());
    let mut next = || fields.next().ok_or(SHAPE);
    let (time, id, size) = (next()?, next()?, next()?);
    if fields.next().is_some() {
        return Err(SHAPE);
    }
    Ok((parse_seconds(time)?, id, parse_size(size)?))
}

/// Decoder of `time id size`.
pub(crate) struct TimeIdSizeDecoder {
    source: InputSource,
    line: u64,
}

impl TimeIdSizeDecoder {
    pub(crate) fn new(source: InputSource) -> Self {
        Self { source, line: 0 }
    }
}

impl FormatDecoder for TimeIdSizeDecoder {
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
                Framed::Line(line) => line,
            };
            if line.iter().all(|&b| is_separator(b)) {
                continue;
            }
            out.count_line();
            match split(line) {
                Err(reason) => out.reject(self.line, reason),
                Ok((time_ns, target, size_bytes)) => {
                    let entry = DecodedRequest {
                        time_ns,
                        target,
                        client: None,
                        size_bytes,
                        whole: true,
                        service_ns: 0,
                        class: 0,
                        kind: RecordKind::Static,
                        answer: AnswerKind::Document,
                        http11: false,
                    };
                    out.accept(self.line, &entry)?;
                }
            }
        }
        Ok(true)
    }

    fn source(&mut self) -> Option<&mut InputSource> {
        Some(&mut self.source)
    }
}

fn explain(line: &[u8]) -> Result<LogRequest<'_>, LineError> {
    let (time_ns, target, size_bytes) = split(line)?;
    Ok(LogRequest {
        time_ns,
        client: None,
        method: None,
        target: Ok(Cow::Borrowed(target)),
        host: None,
        site: None,
        status: None,
        size_bytes: Ok(size_bytes),
        service_ns: None,
        http11: false,
        spans: LoggedSpans::default(),
    })
}

/// From how many seconds between lines on they are suspected to be of a table although they share their times.
const TABLE_STEP_S: f64 = 10.0;

/// How many lines tell a table.
const TABLE_LINES: usize = 5;

/// The seconds between the lines of a table, such as of requests per minute, which parses as requests: all its times are
/// equally far apart, but for intervals that are left out, and no line repeats the target and size of another one.
pub(crate) fn table_step_s(prefix: &Prefix<'_>) -> Option<f64> {
    let lines: Vec<_> = prefix.lines().filter_map(|line| split(line).ok()).collect();
    let mut times: Vec<u64> = lines.iter().map(|line| line.0).collect();
    times.dedup();
    let steps: Option<Vec<u64>> = times.windows(2).map(|pair| pair[1].checked_sub(pair[0])).collect();
    let steps = steps?;
    let step_ns = *steps.iter().min()?;
    let regular = steps.iter().all(|step| step.is_multiple_of(step_ns));
    let whole = steps.iter().all(|step| *step == step_ns);
    let mut seen = BTreeSet::new();
    let repeats = lines.iter().any(|&(_, id, size_bytes)| size_bytes > 0 && !seen.insert((id, size_bytes)));
    if !regular || repeats || times.len() < TABLE_LINES {
        return None;
    }
    let step_s = step_ns as f64 / 1e9;
    let numbers: Option<Vec<u64>> = lines.iter().map(|line| parse_size(line.1).ok()).collect();
    let counts =
        whole && times.len() == lines.len() && numbers.is_some_and(|numbers| look_like_counts(&numbers));
    (counts || step_s >= TABLE_STEP_S).then_some(step_s)
}

/// Whether times only fall from line to line, as in a list that is sorted by another number, the greatest first.
pub(crate) fn falls(prefix: &Prefix<'_>) -> bool {
    let times: Vec<u64> = prefix.lines().filter_map(|line| Some(split(line).ok()?.0)).collect();
    times.len() >= TABLE_LINES && times.first() > times.last() && times.is_sorted_by(|a, b| a >= b)
}

/// Whether all sizes are statuses of HTTP, as in a list of time, target and status.
pub(crate) fn holds_statuses(prefix: &Prefix<'_>) -> bool {
    const STATUSES: [u64; 20] =
        [200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 499, 500, 502, 503];
    let sizes: Vec<u64> = prefix.lines().filter_map(|line| Some(split(line).ok()?.2)).collect();
    sizes.len() >= TABLE_LINES && sizes.contains(&200) && sizes.iter().all(|size| STATUSES.contains(size))
}

/// Counts of neighbouring intervals go up and down and are alike, but for idle intervals; numbers of targets that appear for the
/// first time only grow, or lie far apart.
fn look_like_counts(numbers: &[u64]) -> bool {
    let mut busy: Vec<u64> = numbers.iter().copied().filter(|&number| number > 0).collect();
    busy.sort_unstable();
    // A tenth at either end may be of a cut interval, or a peak.
    let (Some(low), Some(high)) = (busy.get(busy.len() / 10), busy.get(busy.len() * 9 / 10)) else {
        return false;
    };
    !numbers.is_sorted() && high / 4 <= *low
}

/// The first line, if it names columns of another table: this format has no header, and only one of time, target and size does no
/// harm.
pub(crate) fn foreign_header<'a>(prefix: &Prefix<'a>) -> Option<&'a [u8]> {
    const TIMES: [&[u8]; 4] = [b"time", b"timestamp", b"ts", b"time_s"];
    const TARGETS: [&[u8]; 9] =
        [b"id", b"key", b"obj", b"obj_id", b"object", b"target", b"url", b"uri", b"name"];
    const SIZES: [&[u8]; 8] =
        [b"size", b"bytes", b"size_bytes", b"obj_size", b"object_size", b"length", b"content_length", b"len"];
    let first = prefix.lines().next()?;
    let is_name = |word: &&[u8]| {
        word[0].is_ascii_alphabetic() && word.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
    };
    let words: Vec<&[u8]> = first.split(|&b| is_separator(b)).filter(|word| !word.is_empty()).collect();
    let [time, target, size, ref more @ ..] = words[..] else { return None };
    let known = |names: &[&[u8]], word: &[u8]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
    let own = known(&TIMES, time) && known(&TARGETS, target) && known(&SIZES, size) && more.is_empty();
    (words.iter().all(is_name) && !own).then_some(first)
}

/// The format's name.
pub const FORMAT: Format = Format::named("time-id-size");

/// Registry entry.
pub static SPEC: FormatSpec = FormatSpec {
    format: FORMAT,
    aliases: &["tis"],
    summary: "Lines `time id size`, separated by spaces, tabs or commas, without a header",
    recognised_by: "lines that parse",
    sample: "12.25 /index.html 1719",
    remark: "A table of counts at equal intervals and a list of statuses look the same and are refused unless `--format` is given.",
    binary: false,
    family: "time-id-size",
    decode: Decode::Own {
        likeness: |prefix| match table_step_s(prefix) {
            Some(_) => Likeness::None,
            None if falls(prefix) || holds_statuses(prefix) => Likeness::None,
            None if foreign_header(prefix).is_some() => Likeness::None,
            None => prefix.lines_like(|line| split(line).is_ok()),
        },
        open: |source, _| Ok(Box::new(TimeIdSizeDecoder::new(source))),
        explain: Some(explain),
    },
    stamps: stamped_on_arrival,
    writer: Some(FormatWriter {
        endings: &["tr", "txt"],
        loss: " time-id-size keeps times, targets and sizes; the rest is left out.",
        encode: Encode::Streaming(crate::write::time_id_size::write),
    }),
};

#[cfg(test)]
mod tests {
    use super::*;

    fn step_s(text: &str) -> Option<f64> {
        table_step_s(&Prefix::new(text.as_bytes(), None))
    }

    #[test]
    fn counts_per_interval_are_no_requests() {
        let table: String = [(812, 40_123), (790, 39_000), (0, 0), (0, 0), (801, 44_012), (799, 39_733)]
            .iter()
            .zip(1..)
            .map(|((requests, bytes), minute)| format!("{} {requests} {bytes}\n", minute * 60))
            .collect();
        assert_eq!(step_s(&table), Some(60.0));
        assert_eq!(step_s(&table.replace("60 812", "61 812")), None);
        // By minute and server.
        let servers: String =
            (0..5).map(|m| format!("{0} a {1}\n{0} b {2}\n", m * 60, 900 - m, 700 + m)).collect();
        assert_eq!(step_s(&servers), Some(60.0));
        // Idle minutes left out.
        let gaps: String =
            (0..40).filter(|m| m % 5 > 0).map(|m| format!("{} {} {}\n", m * 60, 900 - m, m)).collect();
        assert_eq!(step_s(&gaps), Some(60.0));
        // By the number of the minute.
        assert_eq!(step_s("0 812 4\n1 790 5\n2 0 0\n3 801 4\n4 799 6\n"), Some(1.0));
    }

    #[test]
    fn a_first_interval_cut_short_hides_no_table() {
        let rest: String = (1..40)
            .map(|minute| format!("{minute},{},{}\n", 33_000 + minute * 7919 % 5000, minute * 3))
            .collect();
        assert_eq!(step_s(&format!("0,71,136973\n{rest}")), Some(1.0));
    }

    #[test]
    fn a_header_of_another_table_is_seen() {
        let foreign = |text: &str| foreign_header(&Prefix::new(text.as_bytes(), None)).is_some();
        assert!(foreign("minute,requests,bytes\n0,71,136973\n"));
        // The third column is no size, or there are more.
        assert!(foreign("timestamp,url,status\n1,/a,200\n"));
        assert!(foreign("time_s\ttarget\tsize_bytes\tkind\n1\t/a\t200\t\n"));
        for text in [
            "time id size\n1 a 2\n",
            "timestamp,url,bytes\n1,a,2\n",
            "1 a 2\n",
            "# time id size\n1 a 2\n",
            "a b\n",
        ] {
            assert!(!foreign(text), "{text}");
        }
    }

    #[test]
    fn times_that_only_fall_are_no_times() {
        let falls = |text: &str| falls(&Prefix::new(text.as_bytes(), None));
        assert!(falls("9 a 1\n7 b 1\n7 c 1\n3 d 1\n2 e 1\n"));
        assert!(!falls("9 a 1\n7 b 1\n8 c 1\n3 d 1\n2 e 1\n"));
        assert!(!falls("1 a 1\n1 b 1\n1 c 1\n1 d 1\n1 e 1\n"));
        assert!(!falls("2 a 1\n1 b 1\n"));
    }

    #[test]
    fn statuses_are_no_sizes() {
        let statuses = |text: &str| holds_statuses(&Prefix::new(text.as_bytes(), None));
        assert!(statuses(&"1 a 200\n2 b 404\n".repeat(3)));
        assert!(!statuses(&"1 a 200\n2 b 404\n3 b 4096\n".repeat(3)));
        assert!(!statuses(&"1 a 500\n".repeat(9)));
        assert!(!statuses("1 a 200\n"));
    }

    #[test]
    fn requests_at_equal_distances_stay_requests() {
        // Targets that come again, or for the first time in turn.
        let again: String = (0..20).map(|i| format!("{i} {} {}\n", i * 7 % 5, i * 7 % 5 * 100 + 1)).collect();
        assert_eq!(step_s(&again), None);
        let apart: String = (0..20).map(|i| format!("{i} {} {i}\n", i * 7919 % 1000)).collect();
        assert_eq!(step_s(&apart), None);
        let new: String = (0..20).map(|i| format!("{i} {i} {}\n", i * 13 % 7 + 1)).collect();
        assert_eq!(step_s(&new), None);
        assert_eq!(step_s("1 0 68\n2 1 7454\n"), None);
    }
}
