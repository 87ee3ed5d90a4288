//! The time of day as the protocols write it, made once a second.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// One second, in three notations.
#[derive(Debug, Clone)]
pub(crate) struct Dates {
    second: i64,
    /// RFC 9110, section 5.6.7: `Sun, 06 Nov 1994 08:49:37 GMT`.
    pub(crate) http: [u8; 29],
    /// `06/Nov/1994:08:49:37 +0000`, as access logs have it.
    pub(crate) common_log: String,
    /// `1994-11-06T08:49:37Z`.
    pub(crate) rfc3339: String,
}

impl Dates {
    /// The present second.
    pub(crate) fn now() -> Self {
        Self::of(unix_second())
    }

    /// The present second, when it is another than `last`.
    pub(crate) fn if_changed(last: &Self) -> Option<Self> {
        let second = unix_second();
        (second != last.second).then(|| Self::of(second))
    }

    fn of(second: i64) -> Self {
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
            rfc3339: time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        }
    }
}

fn unix_second() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_notations() {
        let dates = Dates::of(784_111_777);
        assert_eq!(&dates.http, b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(dates.common_log, "06/Nov/1994:08:49:37 +0000");
        assert_eq!(dates.rfc3339, "1994-11-06T08:49:37Z");
    }
}
