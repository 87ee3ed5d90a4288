//! The path of every request from a decoder into the trace.

use std::borrow::Cow;

use crate::error::TraceError;
use crate::line_error::LineError;
use crate::names::Interner;
use crate::options::{Include, ReadOptions};
use crate::reorder::Reorder;
use crate::source::MAX_LINE_BYTES;
use crate::tally::Tally;
use crate::targets::TargetTable;
use crate::time::NS_PER_S;
use plimsoll_synth::{AnswerKind, Record, RecordKind};

/// The largest accepted size in bytes: the largest whole number that every JSON reader keeps exact.
pub(crate) const MAX_SIZE_BYTES: u64 = 1 << 53;

/// A request as a decoder found it, names not yet numbered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecodedRequest<'a> {
    pub(crate) time_ns: u64,
    pub(crate) target: &'a [u8],
    /// `None` where the format names no client.
    pub(crate) client: Option<&'a [u8]>,
    pub(crate) size_bytes: u64,
    /// Whether `size_bytes` is the whole document.
    pub(crate) whole: bool,
    pub(crate) service_ns: u64,
    pub(crate) class: u16,
    pub(crate) kind: RecordKind,
    pub(crate) answer: AnswerKind,
    /// Asked by HTTP/1.1; false where the format does not tell.
    pub(crate) http11: bool,
}

/// What a status says of the answer.
pub(crate) fn answer_of(status: u16) -> AnswerKind {
    match status {
        304 => AnswerKind::NotModified,
        400..=499 => AnswerKind::Invalid,
        _ => AnswerKind::Document,
    }
}

/// Numbers targets and clients, counts, and puts records in order of time.
#[derive(Debug)]
pub(crate) struct Ingest {
    pub(crate) tally: Tally,
    pub(crate) targets: TargetTable,
    pub(crate) strip_query: bool,
    pub(crate) include: Include,
    clients: Interner,
    order: Reorder,
    left: u64,
    previous_ns: u64,
    whole_seconds: bool,
}

impl Ingest {
    pub(crate) fn new(options: &ReadOptions) -> Self {
        Self {
            tally: Tally::new(options),
            targets: TargetTable::new(),
            strip_query: options.strip_query,
            include: options.include,
            clients: Interner::default(),
            order: Reorder::new(options.reorder_window_s, options.reorder_records),
            left: options.limit.unwrap_or(u64::MAX),
            previous_ns: 0,
            whole_seconds: true,
        }
    }

    /// Counts a line and returns whether it may still become a record.
    #[inline]
    pub(crate) fn count_line(&mut self) {
        self.tally.report.lines += 1;
    }

    pub(crate) fn reject(&mut self, line: u64, reason: LineError) {
        self.tally.reject(line, reason);
    }

    /// Counts and rejects a line that was not read to its end.
    pub(crate) fn reject_too_long(&mut self, line: u64) {
        self.count_line();
        self.reject(line, LineError::TooLong { limit_bytes: MAX_LINE_BYTES });
    }

    /// Adds a request that counts.
    #[inline]
    pub(crate) fn accept(&mut self, line: u64, entry: &DecodedRequest<'_>) -> Result<(), TraceError> {
        if let Err(reason) = self.order.admits(entry.time_ns) {
            self.reject(line, reason);
            return Ok(());
        }
        let Some(target) = self.targets.intern(entry.target) else {
            return Err(self.too_many("targets"));
        };
        let client = match entry.client {
            None => 0,
            Some(name) => match self.clients.intern(name) {
                Some(client) => client,
                None => return Err(self.too_many("clients")),
            },
        };
        self.targets.count(target, entry.size_bytes, entry.whole);
        if entry.time_ns < self.previous_ns {
            self.tally.report.out_of_order += 1;
        }
        self.previous_ns = entry.time_ns;
        self.whole_seconds &= entry.time_ns.is_multiple_of(NS_PER_S);
        self.tally.report.records += 1;
        self.left -= 1;
        self.order.push(Record {
            time_ns: entry.time_ns,
            size_bytes: entry.size_bytes,
            service_ns: entry.service_ns,
            target,
            client,
            class: entry.class,
            kind: entry.kind,
            answer: entry.answer,
            http11: entry.http11,
        });
        Ok(())
    }

    #[cold]
    fn too_many(&self, what: &'static str) -> TraceError {
        TraceError::TooManyNames { path: self.tally.path().to_owned(), what }
    }

    /// Target of a textual trace other than a log: unchanged, or without the query.
    pub(crate) fn plain_target<'a>(&self, target: &'a [u8]) -> Cow<'a, [u8]> {
        let end = if self.strip_query {
            memchr::memchr(b'?', target).unwrap_or(target.len())
        } else {
            target.len()
        };
        Cow::Borrowed(&target[..end])
    }

    /// Whether the limit on records is reached.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.left == 0
    }

    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        self.order.has_ready()
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Record> {
        self.order.pop()
    }

    pub(crate) fn whole_seconds(&self) -> bool {
        self.whole_seconds
    }

    /// Releases the records that still wait and completes the report.
    pub(crate) fn finish(&mut self) {
        self.order.finish();
        self.tally.report.clients = self.clients.len() as u64;
    }
}

/// Number of bytes written as decimal digits.
#[inline]
pub(crate) fn parse_size(text: &[u8]) -> Result<u64, LineError> {
    if text.is_empty() || text.len() > 20 {
        return Err(unusual_size(text));
    }
    let mut size = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(unusual_size(text));
        }
        // Twenty digits may wrap; the length check below catches that.
        size = size.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    if size > MAX_SIZE_BYTES || (text.len() > 17 && text[..text.len() - 17].iter().any(|&b| b != b'0')) {
        return Err(LineError::Text("size is beyond 2^53 bytes"));
    }
    Ok(size)
}

#[cold]
fn unusual_size(text: &[u8]) -> LineError {
    let negative = text.first() == Some(&b'-') && text.len() > 1;
    let digits = if negative { &text[1..] } else { text };
    LineError::Text(if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        "size is not a whole number of bytes"
    } else if negative {
        "size is negative"
    } else {
        "size is beyond 2^53 bytes"
    })
}

/// Decimal digits of a number, written from the back into `buffer`.
pub(crate) fn decimal(mut number: u64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &buffer[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_or_say_why_not() {
        assert_eq!(parse_size(b"0"), Ok(0));
        assert_eq!(parse_size(b"9007199254740992"), Ok(MAX_SIZE_BYTES));
        assert_eq!(parse_size(b"00000000000000000042"), Ok(42));
        for (text, reason) in [
            ("9007199254740993", "size is beyond 2^53 bytes"),
            ("18446744073709551617", "size is beyond 2^53 bytes"),
            ("99999999999999999999999", "size is beyond 2^53 bytes"),
            ("-5", "size is negative"),
            ("", "size is not a whole number of bytes"),
            ("-", "size is not a whole number of bytes"),
            ("1.5", "size is not a whole number of bytes"),
        ] {
            assert_eq!(parse_size(text.as_bytes()), Err(LineError::Text(reason)), "{text}");
        }
    }

    #[test]
    fn decimals_are_written_in_full() {
        let mut buffer = [0; 20];
        for number in [0, 7, 10, 90_210, u64::MAX] {
            assert_eq!(decimal(number, &mut buffer), number.to_string().as_bytes());
        }
    }
}
