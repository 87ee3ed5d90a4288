//! One request as one line. No allocation but for the buffer that lines are gathered in.

use std::time::{Duration, Instant};

use plimsoll_config::{AccessLogFormat, ClassesConfig};

use crate::clock::write_decimals;
use crate::http::HttpVersion;
use crate::http::fields::push_number;
use crate::http::request::Span;
use crate::observe::RequestRecord;

/// The end of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment<'a> {
    /// In the format's own notation.
    pub(crate) time: &'a [u8],
    /// For differences.
    pub(crate) at: Instant,
}

/// What lines tell beside their request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineContext<'a> {
    /// The policy.
    pub(crate) policy: &'a str,
    /// Classes of requests; without them lines have none.
    pub(crate) classes: Option<&'a ClassesConfig>,
}

/// Appends the line of a request that ended at this moment.
pub(crate) fn line(
    format: AccessLogFormat,
    record: &RequestRecord<'_>,
    context: LineContext<'_>,
    end: Moment<'_>,
    out: &mut Vec<u8>,
) {
    match format {
        AccessLogFormat::Combined => combined(record, end, out),
        AccessLogFormat::Json => json(record, context, end, out),
    }
}

/// Method, target and version; `None` for a request that was not understood.
fn request_line<'a>(record: &RequestRecord<'a>) -> Option<(&'a [u8], &'a [u8], &'static str)> {
    let head = record.head?;
    let line = head.line.of(record.head_bytes);
    let (method, target) = line.split_at(memchr::memchr(b' ', line).unwrap_or(line.len()));
    let version = if head.version == HttpVersion::Http11 { "HTTP/1.1" } else { "HTTP/1.0" };
    Some((method, target.get(1..).unwrap_or_default(), version))
}

/// The value of a field that is there and not empty.
fn value<'a>(record: &RequestRecord<'a>, span: Option<Span>) -> Option<&'a [u8]> {
    span.filter(|&span| span != Span::default())
        .map(|span| span.of(record.head_bytes))
        .filter(|v| !v.is_empty())
}

fn combined(record: &RequestRecord<'_>, end: Moment<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(record.peer.as_bytes());
    out.extend_from_slice(b" - - [");
    out.extend_from_slice(end.time);
    out.extend_from_slice(b"] \"");
    match request_line(record) {
        None => out.push(b'-'),
        Some((method, target, version)) => {
            quoted(method, out);
            out.push(b' ');
            quoted(target, out);
            out.push(b' ');
            out.extend_from_slice(version.as_bytes());
        }
    }
    out.extend_from_slice(b"\" ");
    push_number(out, u64::from(record.status));
    out.push(b' ');
    push_number(out, record.content_bytes);
    for span in [record.head.map(|h| h.referer), record.head.map(|h| h.user_agent)] {
        out.extend_from_slice(b" \"");
        quoted(value(record, span).unwrap_or(b"-"), out);
        out.push(b'"');
    }
    out.push(b'\n');
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// What stands between quotes as Apache writes it: quote and backslash behind a backslash, what is not printable ASCII as
/// `\xhh`.
fn quoted(bytes: &[u8], out: &mut Vec<u8>) {
    if is_plain_text(bytes) {
        return out.extend_from_slice(bytes);
    }
    for_plain_runs(
        bytes,
        |b| matches!(b, b' '..=b'~') && b != b'"' && b != b'\\',
        out,
        |b, out| match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', b]),
            _ => out.extend_from_slice(&[b'\\', b'x', HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]]),
        },
    );
}

/// Copies runs of plain bytes at once, and has `escape` write the others.
fn for_plain_runs(
    mut bytes: &[u8],
    is_plain: impl Fn(u8) -> bool,
    out: &mut Vec<u8>,
    escape: impl Fn(u8, &mut Vec<u8>),
) {
    while let Some(at) = bytes.iter().position(|&b| !is_plain(b)) {
        out.extend_from_slice(&bytes[..at]);
        escape(bytes[at], out);
        bytes = &bytes[at + 1..];
    }
    out.extend_from_slice(bytes);
}

fn json(record: &RequestRecord<'_>, context: LineContext<'_>, end: Moment<'_>, out: &mut Vec<u8>) {
    // What most lines need.
    out.reserve(512);
    let line = request_line(record);
    let text = |out: &mut Vec<u8>, key: &str, value: Option<&[u8]>| {
        out.extend_from_slice(key.as_bytes());
        match value {
            Some(value) => string(value, out),
            None => out.extend_from_slice(b"null"),
        }
    };
    let number = |out: &mut Vec<u8>, key: &str, value: u64| {
        out.extend_from_slice(key.as_bytes());
        push_number(out, value);
    };
    text(out, "{\"time\":", Some(end.time));
    text(out, ",\"client\":", Some(record.peer.as_bytes()));
    text(out, ",\"method\":", line.map(|(method, ..)| method));
    text(out, ",\"target\":", line.map(|(_, target, _)| target));
    text(out, ",\"version\":", line.map(|(.., version)| version.as_bytes()));
    number(out, ",\"status\":", u64::from(record.status));
    number(out, ",\"bytes\":", record.content_bytes);
    text(out, ",\"policy\":", Some(context.policy.as_bytes()));
    text(out, ",\"backend\":", record.backend.map(|b| b.name.as_bytes()));
    text(out, ",\"reason\":", record.reason.map(|r| r.name().as_bytes()));
    text(out, ",\"refused\":", record.refused.map(|r| r.name().as_bytes()));
    let mechanism: &[u8] = if record.handed_off { b"handoff" } else { b"proxy" };
    text(out, ",\"mechanism\":", record.backend.map(|_| mechanism));
    number(out, ",\"attempts\":", u64::from(record.attempts));
    out.extend_from_slice(if record.waited { b",\"waited\":true" } else { b",\"waited\":false" });
    let times = &record.times;
    let between = |from: Option<Instant>, to: Option<Instant>| {
        from.zip(to).map(|(from, to)| to.saturating_duration_since(from))
    };
    seconds(out, ",\"assign_s\":", between(Some(times.received), times.assigned));
    seconds(out, ",\"first_byte_s\":", between(times.assigned, times.first_byte));
    seconds(out, ",\"transfer_s\":", between(times.first_byte, Some(end.at)));
    seconds(out, ",\"total_s\":", between(Some(times.received), Some(end.at)));
    text(out, ",\"referer\":", value(record, record.head.map(|h| h.referer)));
    text(out, ",\"user_agent\":", value(record, record.head.map(|h| h.user_agent)));
    if let Some(classes) = context.classes {
        let class = record.head.and_then(|head| classes.file.table.class(head.class.number));
        text(out, ",\"class\":", class.map(|class| class.name.as_bytes()));
    }
    out.extend_from_slice(b"}\n");
}

/// A time in seconds with six decimals.
fn seconds(out: &mut Vec<u8>, key: &str, time: Option<Duration>) {
    out.extend_from_slice(key.as_bytes());
    let Some(time) = time else { return out.extend_from_slice(b"null") };
    push_number(out, time.as_secs());
    let mut decimals = *b".000000";
    write_decimals(time.subsec_micros(), &mut decimals[1..]);
    out.extend_from_slice(&decimals);
}

/// A JSON string (RFC 8259, section 7). What is not UTF-8 becomes U+FFFD.
fn string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    if is_plain_text(bytes) {
        out.extend_from_slice(bytes);
    } else {
        escaped(bytes, out);
    }
    out.push(b'"');
}

/// Whether all bytes are printable ASCII other than quote and backslash; looks at eight at a time.
fn is_plain_text(bytes: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    // The high bit of the lowest byte below `n`, for `n` up to 128, is set, if there is one.
    let below = |x: u64, n: u64| x.wrapping_sub(ONES * n) & !x;
    let odd = |x: u64| {
        let is = |byte: u8| below(x ^ (ONES * u64::from(byte)), 1);
        (x | below(x, 0x20) | is(b'"') | is(b'\\') | is(0x7f)) & HIGH
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().chain([&last]).all(|word| odd(u64::from_le_bytes(*word)) == 0)
}

fn escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        let is_plain = |b: u8| b >= b' ' && b != b'"' && b != b'\\' && b != 0x7f;
        for_plain_runs(chunk.valid().as_bytes(), is_plain, out, |b, out| match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', b]),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]]);
            }
        });
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
