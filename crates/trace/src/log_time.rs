//! Times as access logs write them: numbers, RFC 3339, and the stamps of Apache and HAProxy.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::line_error::LineError;
use crate::time::{MAX_S, NS_PER_S, STAMP_BYTES, StampReader, parse_seconds};

/// A time of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogTime {
    /// Nanoseconds since the Unix epoch.
    pub(crate) ns: u64,
    /// Whether the log writes whole seconds.
    pub(crate) whole: bool,
}

const UNKNOWN: LineError =
    LineError::Text("time is neither a number since 1970, nor RFC 3339, nor dd/Mon/yyyy:hh:mm:ss");
const BEFORE_1970: LineError = LineError::Text("time stamp is before 1970");

/// From which number on a time since 1970 counts milliseconds: seconds reach it in the year 5138.
const MS_FROM: u64 = 100_000_000_000;
const US_FROM: u64 = MS_FROM * 1000;
const NS_FROM: u64 = US_FROM * 1000;

/// Reads a time in any of these forms; one without a zone is taken for UTC.
pub(crate) fn parse(text: &[u8]) -> Result<LogTime, LineError> {
    let text = text.trim_ascii();
    match (text.get(2), text.get(4)) {
        (Some(b'/'), _) => parse_stamp(text),
        (_, Some(b'-')) => parse_iso(text),
        _ => parse_number(text),
    }
}

fn parse_number(text: &[u8]) -> Result<LogTime, LineError> {
    let (integer, fraction) = match memchr::memchr(b'.', text) {
        Some(at) => (&text[..at], &text[at..]),
        None => (text, &text[..0]),
    };
    let number = std::str::from_utf8(integer).ok().and_then(|digits| digits.parse::<u64>().ok());
    let ns = match number {
        Some(number) if number >= NS_FROM => number,
        Some(number) if number >= US_FROM => number * 1000,
        Some(number) if number >= MS_FROM => number * 1_000_000,
        _ => {
            let ns = parse_seconds(text).map_err(|error| match error {
                LineError::Text("time is not a number of seconds") => UNKNOWN,
                other => other,
            })?;
            return Ok(LogTime { ns, whole: fraction.is_empty() && ns.is_multiple_of(NS_PER_S) });
        }
    };
    Ok(LogTime { ns, whole: false })
}

/// `23/Nov/2026:21:21:24 +0000`, or `23/Nov/2026:21:21:24.606` without a zone.
fn parse_stamp(text: &[u8]) -> Result<LogTime, LineError> {
    if let Ok(stamp) = <&[u8; STAMP_BYTES]>::try_from(text) {
        return Ok(LogTime { ns: StampReader::default().parse(stamp)? * NS_PER_S, whole: true });
    }
    let (seconds, fraction) = text.split_at_checked(20).ok_or(UNKNOWN)?;
    let mut stamp = *b"00/Jan/0000:00:00:00 +0000";
    stamp[..20].copy_from_slice(seconds);
    let seconds_ns = StampReader::default().parse(&stamp)? * NS_PER_S;
    if fraction.is_empty() {
        return Ok(LogTime { ns: seconds_ns, whole: true });
    }
    let fraction = fraction.strip_prefix(b".").filter(|digits| digits.iter().all(u8::is_ascii_digit));
    let fraction_ns = fraction.ok_or(UNKNOWN).and_then(|digits| parse_seconds(&[b"0.", digits].concat()))?;
    Ok(LogTime { ns: seconds_ns + fraction_ns, whole: false })
}

fn parse_iso(text: &[u8]) -> Result<LogTime, LineError> {
    let text = std::str::from_utf8(text).map_err(|_| UNKNOWN)?;
    let timestamp = text
        .parse::<Timestamp>()
        .ok()
        .or_else(|| {
            // Without a zone.
            let local = text.parse::<DateTime>().ok()?;
            TimeZone::UTC.to_timestamp(local).ok()
        })
        .ok_or(UNKNOWN)?;
    let ns = u64::try_from(timestamp.as_nanosecond()).map_err(|_| BEFORE_1970)?;
    if ns / NS_PER_S > MAX_S {
        return Err(LineError::Text("time is beyond the year 2554"));
    }
    Ok(LogTime { ns, whole: !text.contains(['.', ',']) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_S: u64 = 1_795_468_884;

    #[test]
    fn every_form_of_a_time_is_read() {
        let ms = AT_S * NS_PER_S + 606_000_000;
        for (text, ns, whole) in [
            ("1795468884", AT_S * NS_PER_S, true),
            ("1795468884.606", ms, false),
            ("1795468884606", ms, false),
            ("1795468884606000", ms, false),
            ("1795468884606000000", ms, false),
            ("1.795468884606e9", ms, false),
            ("23/Nov/2026:21:21:24 +0000", AT_S * NS_PER_S, true),
            ("23/Nov/2026:21:21:24.606", ms, false),
            ("23/Nov/2026:21:21:24", AT_S * NS_PER_S, true),
            ("2026-11-23T21:21:24Z", AT_S * NS_PER_S, true),
            ("2026-11-23T22:21:24+01:00", AT_S * NS_PER_S, true),
            ("2026-11-23T22:21:24+0100", AT_S * NS_PER_S, true),
            ("2026-11-23T21:21:24.606Z", ms, false),
            ("2026-11-23 21:21:24", AT_S * NS_PER_S, true),
        ] {
            let time = parse(text.as_bytes());
            if text.contains('e') {
                // Through a double.
                assert!(time.unwrap().ns.abs_diff(ns) < 1000, "{text}");
            } else {
                assert_eq!(time, Ok(LogTime { ns, whole }), "{text}");
            }
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in
            ["", "x", "-", "21:21:24", "2026-13-23T21:21:24Z", "23/Nov/2026:21:21:24.x", "Nov 23 21:21:24"]
        {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(parse(b"1969-12-31T23:59:59Z"), Err(BEFORE_1970));
        assert_eq!(parse(b"Monday"), Err(UNKNOWN));
    }
}
