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
const BEYOND: LineError = LineError::Text("time is beyond the year 2554");

/// From which number on a time since 1970 counts milliseconds: seconds reach it in the year 5138.
const MS_FROM: u64 = 100_000_000_000;
const US_FROM: u64 = MS_FROM * 1000;
const NS_FROM: u64 = US_FROM * 1000;

/// Reads a time in any of these forms; one without a zone is taken for UTC.
pub(crate) fn parse(text: &[u8]) -> Result<LogTime, LineError> {
    let text = text.trim_ascii();
    // Apache's `%t` has brackets.
    let text = text.strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]")).unwrap_or(text);
    match (text.get(2), text.get(4)) {
        (Some(b'/'), _) => parse_stamp(text),
        (_, Some(b'-' | b'/')) => parse_iso(text),
        _ => parse_number(text),
    }
}

fn parse_number(text: &[u8]) -> Result<LogTime, LineError> {
    let (integer, fraction) = text.split_at(memchr::memchr(b'.', text).unwrap_or(text.len()));
    let number = std::str::from_utf8(integer).ok().and_then(|digits| digits.parse::<u64>().ok());
    let (number, unit_ns) = match number {
        Some(number) if number >= NS_FROM => (number, 1),
        Some(number) if number >= US_FROM => (number, 1000),
        Some(number) if number >= MS_FROM => (number, 1_000_000),
        _ => {
            let ns = parse_seconds(text).map_err(|error| match error {
                LineError::Text("time is not a number of seconds") => UNKNOWN,
                other => other,
            })?;
            return Ok(LogTime { ns, whole: fraction.is_empty() && ns.is_multiple_of(NS_PER_S) });
        }
    };
    let part_ns = if fraction.is_empty() { 0 } else { fraction_ns(fraction)? / (NS_PER_S / unit_ns) };
    let ns = number.checked_mul(unit_ns).and_then(|ns| ns.checked_add(part_ns));
    let ns = ns.filter(|ns| ns / NS_PER_S <= MAX_S).ok_or(BEYOND)?;
    Ok(LogTime { ns, whole: false })
}

/// Billionths of a fraction such as `.25`.
fn fraction_ns(fraction: &[u8]) -> Result<u64, LineError> {
    let digits = fraction.strip_prefix(b".").filter(|digits| digits.iter().all(u8::is_ascii_digit));
    parse_seconds(&[b"0.", digits.ok_or(UNKNOWN)?].concat())
}

/// `23/Nov/2026:21:21:24 +0000`; the seconds may have a fraction, and the zone may be left out.
fn parse_stamp(text: &[u8]) -> Result<LogTime, LineError> {
    let (seconds, rest) = text.split_at_checked(20).ok_or(UNKNOWN)?;
    let (fraction, zone) = rest.split_at(memchr::memchr(b' ', rest).unwrap_or(rest.len()));
    let zone = if zone.is_empty() { &b" +0000"[..] } else { zone };
    let stamp: [u8; STAMP_BYTES] = [seconds, zone].concat().try_into().map_err(|_| UNKNOWN)?;
    let seconds_ns = StampReader::default().parse(&stamp)? * NS_PER_S;
    let part_ns = if fraction.is_empty() { 0 } else { fraction_ns(fraction)? };
    Ok(LogTime { ns: seconds_ns + part_ns, whole: fraction.is_empty() })
}

/// RFC 3339 and what programs make of it: slashes in the date, no zone, or one after a space (`2026-11-23 21:21:24 +0000 UTC`).
fn parse_iso(text: &[u8]) -> Result<LogTime, LineError> {
    let text = std::str::from_utf8(text).map_err(|_| UNKNOWN)?;
    let dashes = if text.as_bytes()[4] == b'/' { text.replacen('/', "-", 2) } else { text.to_owned() };
    let clock_end = dashes.get(11..).and_then(|rest| rest.find(' ')).map_or(dashes.len(), |at| at + 11);
    let (clock, zone) = dashes.split_at(clock_end);
    let zone = match zone.split_ascii_whitespace().next().unwrap_or_default() {
        "UTC" | "GMT" => "Z",
        zone => zone,
    };
    let has_zone =
        !zone.is_empty() || clock.get(11..).is_some_and(|rest| rest.contains(['Z', 'z', '+', '-', '[']));
    let timestamp = if has_zone {
        format!("{clock}{zone}").parse::<Timestamp>().ok()
    } else {
        clock.parse::<DateTime>().ok().and_then(|local| TimeZone::UTC.to_timestamp(local).ok())
    };
    let ns = u64::try_from(timestamp.ok_or(UNKNOWN)?.as_nanosecond()).map_err(|_| BEFORE_1970)?;
    if ns / NS_PER_S > MAX_S {
        return Err(BEYOND);
    }
    Ok(LogTime { ns, whole: !clock.contains(['.', ',']) })
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
            ("1795468884606.0005", ms + 500, false),
            ("[23/Nov/2026:21:21:24 +0000]", AT_S * NS_PER_S, true),
            ("23/Nov/2026:22:21:24.606 +0100", ms, false),
            ("2026/11/23 21:21:24.606", ms, false),
            ("2026-11-23 22:21:24,606 +0100 CET", ms, false),
            ("2026-11-23 21:21:24 UTC", AT_S * NS_PER_S, true),
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
        for text in [
            "",
            "x",
            "-",
            "21:21:24",
            "2026-13-23T21:21:24Z",
            "23/Nov/2026:21:21:24.x",
            "Nov 23 21:21:24",
            "1795468884606.x",
            "1795468884,606",
            // A zone by its name alone is not taken for UTC.
            "2026-11-23T21:21:24[Europe/Paris]",
            "2026-11-23 21:21:24 CET",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(parse(b"1969-12-31T23:59:59Z"), Err(BEFORE_1970));
        assert_eq!(parse(b"Monday"), Err(UNKNOWN));
        // Date and time in one number, which is too large for milliseconds and for microseconds.
        assert_eq!(parse(b"20261123212124"), Err(BEYOND));
        assert_eq!(parse(b"20261123212124606"), Err(BEYOND));
        assert_eq!(parse(b"18446744073709551615"), Err(BEYOND));
    }
}
