//! One request as one line of the access log. No allocation but for the buffer that lines are gathered in.

use std::time::{Duration, Instant};

use plimsoll_config::AccessLogFormat;

use crate::clock::write_decimals;

/// The end of a request.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// In the format's own notation.
    pub time: &'a [u8],
    /// For differences.
    pub at: Instant,
}

/// When the steps of a request happened.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The head was there.
    pub received: Instant,
    /// The back-end that answered was chosen.
    pub assigned: Option<Instant>,
    /// The response's head was there.
    pub first_byte: Option<Instant>,
}

/// The first line of a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestLine<'a> {
    /// The method.
    pub method: &'a [u8],
    /// The target.
    pub target: &'a [u8],
    /// `HTTP/2.0`, `HTTP/1.1` or `HTTP/1.0`, or what stood there in one that was refused.
    pub version: &'a str,
}

/// What has taken a request.
#[derive(Debug, Clone, Copy)]
pub struct RoutedLine<'a> {
    /// The pool; `None` when no route was looked for.
    pub pool: Option<&'a str>,
    /// The name of the route, if one that has a name took it.
    pub route: Option<&'a str>,
}

/// How the front-end has coded the content of an answer.
#[derive(Debug, Clone, Copy)]
pub struct CodedLine {
    /// The name of the coding.
    pub coding: &'static str,
    /// Bytes of content before that.
    pub original_bytes: u64,
}

/// What a line tells of a request.
#[derive(Debug, Clone, Copy)]
pub struct AccessLine<'a> {
    /// The client's address.
    pub client: &'a str,
    /// Its first line; `None` when its head could not be understood.
    pub request: Option<RequestLine<'a>>,
    /// The field Referer, where it is not empty.
    pub referer: Option<&'a [u8]>,
    /// The field User-Agent, where it is not empty.
    pub user_agent: Option<&'a [u8]>,
    /// Status of the answer; 499 when the client did not wait for it.
    pub status: u16,
    /// Bytes of content that the client got.
    pub content_bytes: u64,
    /// The policy that has chosen.
    pub policy: &'a str,
    /// Who answered, or was tried last.
    pub backend: Option<&'a str>,
    /// Why it was chosen.
    pub reason: Option<&'a str>,
    /// Why the request was refused, if it was.
    pub refused: Option<&'a str>,
    /// How the back-end got the request.
    pub mechanism: Option<&'a str>,
    /// Back-ends that were tried.
    pub attempts: u32,
    /// Whether it waited for room under the admission limit.
    pub waited: bool,
    /// When it happened.
    pub times: Times,
    /// Its class, where requests have classes.
    pub class: Option<Option<&'a str>>,
    /// What has taken it, where there are routes.
    pub routed: Option<RoutedLine<'a>>,
    /// How the front-end has coded the content, if it has.
    pub coded: Option<CodedLine>,
    /// Whether the back-end had the content in its cache, where it told.
    pub hit: Option<bool>,
}

/// Appends the line of a request that ended at this moment.
pub fn write_line(format: AccessLogFormat, line: &AccessLine<'_>, end: Moment<'_>, out: &mut Vec<u8>) {
    match format {
        AccessLogFormat::Combined => combined(line, end, out),
        AccessLogFormat::Json => json(line, end, out),
    }
}

/// Appends a number in decimal digits.
#[inline]
pub fn push_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn combined(line: &AccessLine<'_>, end: Moment<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(line.client.as_bytes());
    out.extend_from_slice(b" - - [");
    out.extend_from_slice(end.time);
    out.extend_from_slice(b"] \"");
    match line.request {
        None => out.push(b'-'),
        Some(RequestLine { method, target, version }) => {
            quoted(method, out);
            out.push(b' ');
            quoted(target, out);
            out.push(b' ');
            out.extend_from_slice(version.as_bytes());
        }
    }
    out.extend_from_slice(b"\" ");
    push_number(out, u64::from(line.status));
    out.push(b' ');
    push_number(out, line.content_bytes);
    for value in [line.referer, line.user_agent] {
        out.extend_from_slice(b" \"");
        quoted(value.unwrap_or(b"-"), out);
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

fn json(line: &AccessLine<'_>, end: Moment<'_>, out: &mut Vec<u8>) {
    // What most lines need.
    out.reserve(512);
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
    let request = line.request;
    text(out, "{\"time\":", Some(end.time));
    text(out, ",\"client\":", Some(line.client.as_bytes()));
    text(out, ",\"method\":", request.map(|request| request.method));
    text(out, ",\"target\":", request.map(|request| request.target));
    text(out, ",\"version\":", request.map(|request| request.version.as_bytes()));
    number(out, ",\"status\":", u64::from(line.status));
    number(out, ",\"bytes\":", line.content_bytes);
    text(out, ",\"policy\":", Some(line.policy.as_bytes()));
    text(out, ",\"backend\":", line.backend.map(str::as_bytes));
    text(out, ",\"reason\":", line.reason.map(str::as_bytes));
    text(out, ",\"refused\":", line.refused.map(str::as_bytes));
    text(out, ",\"mechanism\":", line.mechanism.map(str::as_bytes));
    number(out, ",\"attempts\":", u64::from(line.attempts));
    out.extend_from_slice(if line.waited { b",\"waited\":true" } else { b",\"waited\":false" });
    let times = &line.times;
    let between = |from: Option<Instant>, to: Option<Instant>| {
        from.zip(to).map(|(from, to)| to.saturating_duration_since(from))
    };
    seconds(out, ",\"assign_s\":", between(Some(times.received), times.assigned));
    seconds(out, ",\"first_byte_s\":", between(times.assigned, times.first_byte));
    seconds(out, ",\"transfer_s\":", between(times.first_byte, Some(end.at)));
    seconds(out, ",\"total_s\":", between(Some(times.received), Some(end.at)));
    text(out, ",\"referer\":", line.referer);
    text(out, ",\"user_agent\":", line.user_agent);
    if let Some(class) = line.class {
        text(out, ",\"class\":", class.map(str::as_bytes));
    }
    if let Some(routed) = line.routed {
        text(out, ",\"pool\":", routed.pool.map(str::as_bytes));
        text(out, ",\"route\":", routed.route.map(str::as_bytes));
    }
    if let Some(coded) = line.coded {
        text(out, ",\"coding\":", Some(coded.coding.as_bytes()));
        number(out, ",\"original_bytes\":", coded.original_bytes);
    }
    if let Some(hit) = line.hit {
        out.extend_from_slice(if hit { b",\"hit\":true" } else { b",\"hit\":false" });
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals() {
        let text = |time| {
            let mut out = Vec::new();
            seconds(&mut out, "", Some(time));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(Duration::from_micros(1)), "0.000001");
        assert_eq!(text(Duration::new(12, 345_678_901)), "12.345678");
    }

    #[test]
    fn plain_text_is_told_byte_by_byte() {
        for byte in 0..=u8::MAX {
            let plain = matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
            for at in [0, 3, 7, 8, 12] {
                let mut text = *b"abcdefghijklm";
                text[at] = byte;
                assert_eq!(is_plain_text(&text), plain, "{byte:#x} at {at}");
            }
        }
        assert!(is_plain_text(b"") && is_plain_text(b"12345678"));
    }

    proptest! {
        #[test]
        fn any_bytes_make_one_line(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut out = Vec::new();
            string(&bytes, &mut out);
            let back: String = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(back, String::from_utf8_lossy(&bytes).into_owned());
            prop_assert!(out.iter().all(|&b| b >= b' ' && b != 0x7f));
            out.clear();
            quoted(&bytes, &mut out);
            prop_assert!(out.iter().all(|b| (b' '..=b'~').contains(b)));
            let escaped = |at: usize| out[..at].iter().rev().take_while(|&&b| b == b'\\').count() % 2 == 1;
            prop_assert!((0..out.len()).filter(|&at| out[at] == b'"').all(escaped));
        }
    }
}
