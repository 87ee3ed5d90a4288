//! The time of day as the protocols write it, made once a second.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// One second, in three notations.
#[derive(Debug, Clone)]
pub struct Dates {
    second: i64,
    /// RFC 9110, section 5.6.7: `Sun, 06 Nov 1994 08:49:37 GMT`.
    pub http: [u8; 29],
    /// `06/Nov/1994:08:49:37 +0000`, as access logs have it.
    pub common_log: String,
    /// `1994-11-06T08:49:37`.
    rfc3339: String,
    /// The same instant twice.
    made: (Instant, Duration),
}

impl Dates {
    /// The present second.
    pub fn now() -> Self {
        let made = (Instant::now(), unix_time());
        Self::of(second_of(made.1), made)
    }

    /// The present second, when it is another than `last`.
    pub fn if_changed(last: &Self) -> Option<Self> {
        (second_of(unix_time()) != last.second).then(Self::now)
    }

    /// `1994-11-06T08:49:37.042000Z` (RFC 3339): the time of day at `at`.
    pub fn rfc3339_us(&self, at: Instant) -> [u8; 27] {
        let (made, unix) = self.made;
        let unix = match at.checked_duration_since(made) {
            Some(later) => unix.saturating_add(later),
            None => unix.saturating_sub(made.saturating_duration_since(at)),
        };
        let second = second_of(unix);
        // Rare: dates are made anew each second.
        let other = (second != self.second).then(|| Self::of(second, self.made));
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let seconds = &other.as_ref().unwrap_or(self).rfc3339;
        for (to, from) in text.iter_mut().zip(seconds.bytes()).take(19) {
            *to = from;
        }
        write_decimals(unix.subsec_micros(), &mut text[20..26]);
        text
    }

    fn of(second: i64, made: (Instant, Duration)) -> Self {
        let time = Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::UTC);
        let mut http = [b' '; 29];
        let text = time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        for (to, from) in http.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        Self {
            second,
            http,
            common_log: time.strftime("%d/%b/%Y:%H:%M:%S +0000").to_string(),
            rfc3339: time.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
            made,
        }
    }
}

/// Writes a number over all of `digits`, with leading zeros.
pub fn write_decimals(mut number: u32, digits: &mut [u8]) {
    for place in digits.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn second_of(unix: Duration) -> i64 {
    i64::try_from(unix.as_secs()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_notations() {
        let at = Instant::now() + Duration::from_secs(10);
        let dates = Dates::of(784_111_777, (at, Duration::from_millis(784_111_777_900)));
        assert_eq!(&dates.http, b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(dates.common_log, "06/Nov/1994:08:49:37 +0000");
        let text = |at| String::from_utf8(dates.rfc3339_us(at).to_vec()).unwrap();
        assert_eq!(text(at), "1994-11-06T08:49:37.900000Z");
        assert_eq!(text(at + Duration::from_millis(99)), "1994-11-06T08:49:37.999000Z");
        assert_eq!(text(at + Duration::from_millis(142)), "1994-11-06T08:49:38.042000Z");
        assert_eq!(text(at - Duration::from_millis(901)), "1994-11-06T08:49:36.999000Z");
    }
}
