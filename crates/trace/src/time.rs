//! Times: decimal seconds and the stamps of access logs, both exact to the nanosecond.

use crate::line_error::LineError;

/// Nanoseconds in a second.
pub(crate) const NS_PER_S: u64 = 1_000_000_000;

/// Largest whole second of a time: with any fraction it fits 64 bits of nanoseconds (the year 2554).
pub(crate) const MAX_S: u64 = u64::MAX / NS_PER_S - 1;

/// Nanoseconds of a decimal number of seconds, such as `1349482464` or `12.25`.
///
/// Digits beyond the ninth decimal are cut off. Numbers with an exponent go through a double.
pub(crate) fn parse_seconds(text: &[u8]) -> Result<u64, LineError> {
    let mut seconds = 0u64;
    let mut at = 0;
    while let Some(digit) = text.get(at).map(|b| b.wrapping_sub(b'0')).filter(|&d| d < 10) {
        seconds = seconds * 10 + u64::from(digit);
        if seconds > MAX_S {
            return Err(LineError::Text("time in seconds is beyond the year 2554"));
        }
        at += 1;
    }
    if at > 0 && at == text.len() {
        return Ok(seconds * NS_PER_S);
    }
    match text.get(at) {
        Some(b'.') if text.len() > 1 => {}
        _ => return parse_unusual(text),
    }
    let mut fraction = 0u64;
    let mut unit = NS_PER_S;
    for &byte in &text[at + 1..] {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return parse_unusual(text);
        }
        if unit > 1 {
            unit /= 10;
            fraction += u64::from(digit) * unit;
        }
    }
    Ok(seconds * NS_PER_S + fraction)
}

/// Parses numbers with signs or exponents, and refuses everything else.
fn parse_unusual(text: &[u8]) -> Result<u64, LineError> {
    let value: f64 = std::str::from_utf8(text)
        .ok()
        .and_then(|t| t.parse().ok())
        .ok_or(LineError::Text("time is not a number of seconds"))?;
    seconds_to_ns(value)
}

/// Nanoseconds of a number of seconds held as a double.
pub(crate) fn seconds_to_ns(value: f64) -> Result<u64, LineError> {
    if !value.is_finite() {
        Err(LineError::Text("time is not finite"))
    } else if value < 0.0 {
        Err(LineError::Text("time is negative"))
    } else if value > MAX_S as f64 {
        Err(LineError::Text("time in seconds is beyond the year 2554"))
    } else {
        // Whole part first: it is exact, so that whole seconds stay whole.
        let whole = value.trunc();
        Ok(whole as u64 * NS_PER_S + ((value - whole) * 1e9).round() as u64)
    }
}

/// Days since 1970-01-01 of a date of the Gregorian calendar (proleptic; `month` from 1).
///
/// Counts whole 400-year eras of 146,097 days, years starting in March so that the leap day is last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Reads stamps such as `01/Jul/1995:00:00:01 -0400`, remembering the last date and zone because
/// they seldom change from line to line.
#[derive(Debug, Default)]
pub(crate) struct StampReader {
    date: [u8; 11],
    zone: [u8; 5],
    /// Seconds since the epoch of the remembered date's midnight in the remembered zone.
    midnight_s: i64,
}

/// Length of a stamp without its brackets.
pub(crate) const STAMP_BYTES: usize = 26;

impl StampReader {
    /// Seconds since the Unix epoch of `stamp`.
    pub(crate) fn parse(&mut self, stamp: &[u8; STAMP_BYTES]) -> Result<u64, LineError> {
        const BAD: LineError = LineError::Text("time stamp is not of the form dd/Mon/yyyy:hh:mm:ss +hhmm");
        if stamp[11] != b':' || stamp[14] != b':' || stamp[17] != b':' || stamp[20] != b' ' {
            return Err(BAD);
        }
        if self.date[..] != stamp[..11] || self.zone[..] != stamp[21..] {
            self.midnight_s = midnight(stamp).ok_or(BAD)?;
            self.date.copy_from_slice(&stamp[..11]);
            self.zone.copy_from_slice(&stamp[21..]);
        }
        let hour = two(stamp, 12).filter(|&h| h < 24).ok_or(BAD)?;
        let minute = two(stamp, 15).filter(|&m| m < 60).ok_or(BAD)?;
        // 60 is a leap second.
        let second = two(stamp, 18).filter(|&s| s <= 60).ok_or(BAD)?;
        let time_s = u64::try_from(self.midnight_s + hour * 3600 + minute * 60 + second)
            .map_err(|_| LineError::Text("time stamp is before 1970"))?;
        if time_s > MAX_S {
            return Err(LineError::Text("time is beyond the year 2554"));
        }
        Ok(time_s)
    }
}

fn midnight(stamp: &[u8; STAMP_BYTES]) -> Option<i64> {
    const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    if stamp[2] != b'/' || stamp[6] != b'/' {
        return None;
    }
    let month = MONTHS.chunks_exact(3).position(|m| *m == stamp[3..6])? as i64 + 1;
    let year = two(stamp, 7)? * 100 + two(stamp, 9)?;
    let day = two(stamp, 0)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_days = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if day < 1 || day > month_days {
        return None;
    }
    let offset_s = two(stamp, 22)? * 3600 + two(stamp, 24).filter(|&m| m < 60)? * 60;
    let offset_s = match stamp[21] {
        b'+' => offset_s,
        b'-' => -offset_s,
        _ => return None,
    };
    Some(days_since_epoch(year, month, day) * 86_400 - offset_s)
}

fn two(stamp: &[u8; STAMP_BYTES], at: usize) -> Option<i64> {
    let (tens, ones) = (stamp[at].wrapping_sub(b'0'), stamp[at + 1].wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| i64::from(tens) * 10 + i64::from(ones))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(text: &str) -> Option<u64> {
        let bytes: &[u8; STAMP_BYTES] = text.as_bytes().try_into().unwrap();
        StampReader::default().parse(bytes).ok()
    }

    #[test]
    fn stamps_agree_with_date() {
        // date -u -d '1995-07-01 00:00:01 -0400' +%s, and so on.
        assert_eq!(stamp("01/Jul/1995:00:00:01 -0400"), Some(804_571_201));
        assert_eq!(stamp("17/May/2015:10:05:03 +0000"), Some(1_431_857_103));
        assert_eq!(stamp("29/Feb/2000:23:59:60 +0530"), Some(951_849_000));
        assert_eq!(stamp("01/Jan/1970:00:00:00 +0000"), Some(0));
        assert_eq!(stamp("31/Dec/2099:23:59:59 -1200"), Some(4_102_487_999));
    }

    #[test]
    fn impossible_stamps_are_refused() {
        for text in [
            "29/Feb/1900:00:00:00 +0000",
            "31/Apr/2015:00:00:00 +0000",
            "00/Apr/2015:00:00:00 +0000",
            "01/Foo/2015:00:00:00 +0000",
            "01/Apr/2015:24:00:00 +0000",
            "01/Apr/2015:00:60:00 +0000",
            "01/Apr/2015:00:00:61 +0000",
            "01/Apr/2015 00:00:00 +0000",
            "01/Apr/2015:00:00:00 *0000",
            "01/Jan/1970:00:00:00 +0100",
            "01/Jul/9995:00:00:00 +0000",
        ] {
            assert_eq!(stamp(text), None, "{text}");
        }
    }

    #[test]
    fn decimals_are_exact() {
        let ok = |t: &str| parse_seconds(t.as_bytes()).unwrap();
        assert_eq!(ok("1349482464"), 1_349_482_464_000_000_000);
        assert_eq!(ok("1349482464.123456789"), 1_349_482_464_123_456_789);
        assert_eq!(ok("0.0000000019"), 1);
        assert_eq!(ok("7."), 7_000_000_000);
        assert_eq!(ok(".5"), 500_000_000);
        assert_eq!(ok("1.5e3"), 1_500_000_000_000);
        assert_eq!(ok("1.349482464000000000e+09"), 1_349_482_464_000_000_000);
    }

    #[test]
    fn impossible_times_are_refused_with_their_reason() {
        let reason = |t: &str| parse_seconds(t.as_bytes()).unwrap_err().to_string();
        assert_eq!(reason("-1"), "time is negative");
        assert_eq!(reason("-0.5"), "time is negative");
        assert_eq!(reason("NaN"), "time is not finite");
        assert_eq!(reason("inf"), "time is not finite");
        assert_eq!(reason("99999999999"), "time in seconds is beyond the year 2554");
        assert_eq!(reason("1e300"), "time in seconds is beyond the year 2554");
        for text in ["", ".", "1.2.3", "12a", "a", "1,5", "+"] {
            assert_eq!(reason(text), "time is not a number of seconds", "{text}");
        }
    }
}
